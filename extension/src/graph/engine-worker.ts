/** What runs in the worker: dot from Graphviz. Bundled alone, as text, by `scripts/bundle.mjs`. */

import { Graphviz, type Format } from '@hpcc-js/wasm-graphviz';

const loaded = Graphviz.load();

/** dot's json0 output for a graph. Rejects with Graphviz's message. */
export async function layout(dot: string): Promise<string> {
  // Graphviz knows json0; the list of types lacks it.
  return (await loaded).layout(dot, 'json0' as Format, 'dot');
}

// In a page there is a document, and no messages are for us.
if (typeof document === 'undefined') {
  self.addEventListener('message', (event: MessageEvent<{ id: number; dot: string }>) => {
    const { id, dot } = event.data;
    layout(dot).then(
      text => self.postMessage({ id, text }),
      (error: unknown) => self.postMessage({ id, error: String(error) })
    );
  });
}
