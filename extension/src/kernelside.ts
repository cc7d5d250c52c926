/**
 * The part of TPU Lab in the Jupyter kernel: loaded by itself into notebooks that have a `%%tpu` cell, once for each start of
 * the Jupyter kernel; the status bar says what came of it.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal, type ISignal } from '@lumino/signaling';

import { parseMagic } from './magic.js';

/** What is known of the Jupyter kernel of a notebook. `none`: no cell asks for TPU Lab. */
export type Side = 'none' | 'loading' | 'loaded' | 'missing' | 'failed';

/** Loads the extension where it is not loaded yet and says how that went; leaves no name and no history behind. */
const LOAD = "get_ipython().run_line_magic('load_ext', 'tpu_lab')";

export class KernelSides {
  constructor(private readonly tracker: INotebookTracker) {
    tracker.widgetAdded.connect((_, panel) => this.follow(panel));
    tracker.forEach(panel => this.follow(panel));
    tracker.currentChanged.connect(() => this.signal.emit());
  }

  /** The state of the current notebook, or of what it says, has changed. */
  get changed(): ISignal<this, void> {
    return this.signal;
  }

  get current(): Side {
    const id = this.tracker.currentWidget?.sessionContext.session?.kernel?.id;
    return (id !== undefined && this.sides.get(id)) || 'none';
  }

  private follow(panel: NotebookPanel): void {
    const { sessionContext } = panel;
    const check = (): void => this.check(panel);
    // A restart forgets what was loaded.
    const restarted = (_: ISessionContext, status: Kernel.Status): void => {
      const id = sessionContext.session?.kernel?.id;
      if (id && (status === 'restarting' || status === 'autorestarting' || status === 'dead')) {
        this.set(id, 'none');
      }
      if (status === 'idle') {
        check();
      }
    };
    sessionContext.statusChanged.connect(restarted);
    sessionContext.kernelChanged.connect(check);
    panel.content.modelContentChanged.connect(check);
    panel.disposed.connect(() => {
      sessionContext.statusChanged.disconnect(restarted);
      sessionContext.kernelChanged.disconnect(check);
    });
    check();
  }

  /** Loads the kernel side if a cell asks for it and this start of the Jupyter kernel has not seen it. */
  private check(panel: NotebookPanel): void {
    const kernel = panel.sessionContext.session?.kernel;
    if (
      !kernel ||
      (this.sides.get(kernel.id) ?? 'none') !== 'none' ||
      (kernel.status !== 'idle' && kernel.status !== 'busy') ||
      !/python/i.test(panel.content.codeMimetype) ||
      !panel.content.widgets.some(
        cell => cell.model.type === 'code' && parseMagic(cell.model.sharedModel.getSource())
      )
    ) {
      return;
    }
    this.set(kernel.id, 'loading');
    const future = kernel.requestExecute({
      code: LOAD,
      silent: true,
      store_history: false,
      stop_on_error: false
    });
    future.done.then(
      reply => {
        const { content } = reply;
        const absent = content.status === 'error' && content.ename === 'ModuleNotFoundError';
        this.set(kernel.id, content.status === 'ok' ? 'loaded' : absent ? 'missing' : 'failed');
      },
      // The Jupyter kernel went away meanwhile; its next start is checked again.
      () => this.set(kernel.id, 'none')
    );
  }

  private set(id: string, side: Side): void {
    this.sides.set(id, side);
    this.signal.emit();
  }

  private readonly sides = new Map<string, Side>();
  private readonly signal = new Signal<this, void>(this);
}

/** What the status bar says: words and what stands behind them. */
export function sideWords(side: Side, trans: TranslationBundle): { label: string; caption: string } {
  switch (side) {
    case 'loading':
      return { label: trans.__('TPU Lab: loading'), caption: trans.__('The Jupyter kernel loads tpu_lab') };
    case 'loaded':
      return {
        label: trans.__('TPU Lab: tpu on XLA:CPU'),
        caption: trans.__('tpu_lab is loaded in this Jupyter kernel; %tpu status tells more')
      };
    case 'missing':
      return {
        label: trans.__('TPU Lab: not installed'),
        caption: trans.__('This Jupyter kernel has no tpu_lab. Next: %pip install tpu-lab')
      };
    case 'failed':
      return {
        label: trans.__('TPU Lab: not loaded'),
        caption: trans.__('Loading tpu_lab failed. Next: run %load_ext tpu_lab to see why')
      };
    case 'none':
      return { label: '', caption: '' };
  }
}
