/** Shows a Run in the output of a cell, also in a saved notebook that nobody trusts and without a Jupyter kernel. */

import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import { PLUGIN, RUN_MIME_TYPE } from './tokens.js';
import { ENGLISH } from './view/texts.js';
import { renderRun } from './view/runview.js';

class RunOutput extends Widget implements IRenderMime.IRenderer {
  constructor(private readonly options: IRenderMime.IRendererOptions) {
    super();
    this.addClass('tl-RunOutput');
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.clear();
    const texts = this.options.translator?.load('tpu_lab') ?? ENGLISH;
    this.clear = renderRun(this.node, model.data[this.options.mimeType], texts);
    return Promise.resolve();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.clear();
    }
    super.dispose();
  }

  private clear = (): void => undefined;
}

const extension: IRenderMime.IExtension = {
  id: PLUGIN.mime,
  description: 'Shows recorded runs.',
  // Data only: the view builds text, never markup.
  rendererFactory: {
    safe: true,
    mimeTypes: [RUN_MIME_TYPE],
    createRenderer: options => new RunOutput(options)
  },
  // Before text/html, which the same output carries for other readers.
  rank: 10,
  dataType: 'json'
};

export default extension;
