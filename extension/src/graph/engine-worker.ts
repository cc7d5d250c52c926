/** What runs in the worker: dot from Graphviz. Bundled alone, as text, by `scripts/bundle.mjs`. */

import { Graphviz, type Format } from '@hpcc-js/wasm-graphviz';

const loaded = Graphviz.load();

/** dot's json0 output for a graph. Rejects with Graphviz's message. */
async function layout(dot: string): Promise<string> {
  // Graphviz knows json0; the list of types lacks it.
  return (await loaded).layout(dot, 'json0' as Format, 'dot');
}

if (typeof document === 'undefined') {
  // In a worker. A message without a graph asks whether the engine has started.
  self.addEventListener('message', (event: MessageEvent<{ id: number; dot: string | null }>) => {
    const { id, dot } = event.data;
    (dot === null ? loaded.then(() => '') : layout(dot)).then(
      text => self.postMessage({ id, text }),
      (error: unknown) => self.postMessage({ id, error: String(error) })
    );
  });
} else {
  (globalThis as { tpuLabLayout?: typeof layout }).tpuLabLayout = layout;
}
