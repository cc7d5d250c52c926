/** The views for a page of their own and for widgets: what `tpu_lab/static/page.js` exports. */

import { LayoutEngine } from './graph/engine.js';
import { renderCoverage } from './view/coverage/explorerview.js';
import { renderGraph } from './view/graph/graphtab.js';
import { renderRun } from './view/runview.js';

/** Shows one thing. `engine` gives the text of the layout engine when a graph needs it. Returns the function that takes it away. */
export function show(
  host: HTMLElement,
  kind: 'run' | 'graph' | 'coverage',
  data: unknown,
  engine: () => Promise<string>
): () => void {
  if (kind === 'coverage') {
    return renderCoverage(host, data);
  }
  // One engine for a page, however many views are shown.
  const page = globalThis as { tpuLabEngine?: LayoutEngine };
  page.tpuLabEngine ??= new LayoutEngine(engine);
  if (kind === 'graph') {
    return renderGraph(host, data, page.tpuLabEngine);
  }
  const both = data as { run?: unknown; graph?: unknown };
  return renderRun(host, both.run, { engine: page.tpuLabEngine, graph: both.graph, open: true });
}

// A page of its own calls this by name: what stands in one script element cannot be imported by the next.
(globalThis as { tpuLabShow?: typeof show }).tpuLabShow = show;
