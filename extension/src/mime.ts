/** Shows runs, fusion graphs and operator tables in the output of a cell, also in a saved notebook that nobody trusts and without a Jupyter kernel. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { LayoutEngine } from './graph/engine.js';
import { unpacked } from './packed.js';
import { COVERAGE_MIME_TYPE, GRAPH_MIME_TYPE, PLUGIN, RUN_MIME_TYPE } from './tokens.js';
import { renderCoverage } from './view/coverage/explorerview.js';
import { renderGraph } from './view/graph/graphtab.js';
import { renderRun } from './view/runview.js';
import { ENGLISH, type ITexts } from './view/texts.js';

/** One for the page; what it runs is loaded when the first graph is drawn. */
const engine = new LayoutEngine(() => import('./graph/engine-text.js').then(module => module.ENGINE));

/** Shows a model's data in a node and returns the function that takes it away. */
type Show = (node: HTMLElement, data: Readonly<Record<string, unknown>>, texts: ITexts) => () => void;

class Output extends Widget implements IRenderMime.IRenderer {
  constructor(
    private readonly options: IRenderMime.IRendererOptions,
    private readonly view: Show
  ) {
    super();
    this.addClass('tl-RunOutput');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const turn = ++this.turn;
    const texts = this.options.translator?.load('tpu_lab') ?? ENGLISH;
    const data = await unpackedParts(model.data);
    // The output may have changed or gone meanwhile.
    if (turn === this.turn && !this.isDisposed) {
      this.clear();
      this.clear = this.view(this.node, data, texts);
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.clear();
    }
    super.dispose();
  }

  private clear = (): void => undefined;
  private turn = 0;
}

/** Our parts of an output, unpacked. What cannot be unpacked stands for itself: the view says what is wrong with it. */
async function unpackedParts(data: IRenderMime.IMimeModel['data']): Promise<Record<string, unknown>> {
  const types = [RUN_MIME_TYPE, GRAPH_MIME_TYPE, COVERAGE_MIME_TYPE].filter(type => data[type] !== undefined);
  const parts = types.map(async type => [type, await unpacked(data[type]).catch((error: unknown) => error)]);
  return Object.fromEntries(await Promise.all(parts)) as Record<string, unknown>;
}

const showRun: Show = (node, data, texts) =>
  renderRun(node, data[RUN_MIME_TYPE], { texts, engine, graph: data[GRAPH_MIME_TYPE] });

const showGraph: Show = (node, data, texts) => renderGraph(node, data[GRAPH_MIME_TYPE], engine, texts);

const showCoverage: Show = (node, data, texts) => renderCoverage(node, data[COVERAGE_MIME_TYPE], texts);

function renderer(
  id: string,
  description: string,
  mimeType: string,
  rank: number,
  show: Show
): IRenderMime.IExtension {
  return {
    id,
    description,
    // Data only: the views build text, never markup.
    rendererFactory: {
      safe: true,
      mimeTypes: [mimeType],
      createRenderer: options => new Output(options, show)
    },
    // Before text/html, which the same output carries for other readers.
    rank,
    dataType: 'json'
  };
}

export default [
  // A run may carry its graph: the run is shown, with the graph as a tab.
  renderer(PLUGIN.mime, 'Shows recorded runs.', RUN_MIME_TYPE, 10, showRun),
  renderer(PLUGIN.graph, 'Shows fusion graphs.', GRAPH_MIME_TYPE, 11, showGraph),
  renderer(PLUGIN.coverage, 'Shows operator tables.', COVERAGE_MIME_TYPE, 12, showCoverage)
];
