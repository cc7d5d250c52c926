/** The item in the status bar: device and target of the current notebook; while a `%%tpu` cell runs its mode, how long, and Cancel. */

import type { ICellModel } from '@jupyterlab/cells';
import { NotebookActions, type INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { sideWords, type KernelSides } from './kernelside.js';
import { parseMagic, targetOf } from './magic.js';
import { h } from './view/dom.js';

/** A shorter run is not worth a change of the line. */
const QUICK_MS = 500;

interface IRunning {
  readonly model: ICellModel;
  readonly mode: string;
  /** null: it waits for the cell before it. */
  since: number | null;
}

export class StatusItem extends Widget {
  constructor(
    private readonly tracker: INotebookTracker,
    private readonly sides: KernelSides,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('tl-Status');
    this.node.append(this.words);
    this.cancel.textContent = trans.__('Cancel');
    this.cancel.title = trans.__('Interrupts the Jupyter kernel');
    this.cancel.addEventListener('click', () => {
      void this.tracker.currentWidget?.sessionContext.session?.kernel?.interrupt();
    });
    sides.changed.connect(this.refresh, this);
    NotebookActions.executionScheduled.connect(this.scheduled, this);
    NotebookActions.executed.connect(this.executed, this);
    this.refresh();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.sides.changed.disconnect(this.refresh, this);
      NotebookActions.executionScheduled.disconnect(this.scheduled, this);
      NotebookActions.executed.disconnect(this.executed, this);
      clearInterval(this.clock);
    }
    super.dispose();
  }

  private scheduled(_: unknown, { cell }: { cell: { model: ICellModel } }): void {
    const magic = cell.model.type === 'code' ? parseMagic(cell.model.sharedModel.getSource()) : null;
    this.running.push({ model: cell.model, mode: magic?.word ?? '', since: null });
    this.startNext();
    this.clock ??= setInterval(() => this.refresh(), 250);
  }

  private executed(_: unknown, { cell }: { cell: { model: ICellModel } }): void {
    const at = this.running.findIndex(one => one.model === cell.model);
    if (at >= 0) {
      this.running.splice(at, 1);
    }
    this.startNext();
    if (!this.running.length) {
      clearInterval(this.clock);
      this.clock = undefined;
    }
    this.refresh();
  }

  /** The clock of a cell starts when its turn comes: one at a time in each notebook. */
  private startNext(): void {
    const busy = new Set<NotebookPanel | null>();
    for (const one of this.running) {
      const panel = this.panelOf(one.model);
      if (!busy.has(panel)) {
        one.since ??= Date.now();
        busy.add(panel);
      }
    }
  }

  private panelOf(model: ICellModel): NotebookPanel | null {
    return this.tracker.find(panel => panel.content.widgets.some(cell => cell.model === model)) ?? null;
  }

  private refresh(): void {
    const { trans } = this;
    const current = this.tracker.currentWidget;
    const { label, caption } = sideWords(this.sides.current, trans);
    const one = this.running.find(
      ({ model, since }) => since !== null && current !== null && this.panelOf(model) === current
    );
    const ms = one?.since ? Date.now() - one.since : 0;
    const shown = one !== undefined && one.mode !== '' && ms >= QUICK_MS;
    const target = current ? this.targets(current) : '';
    this.words.textContent = shown
      ? trans.__('TPU Lab: %1 runs, %2 s', one.mode, Math.floor(ms / 1000))
      : label && target && this.sides.current === 'loaded'
        ? trans.__('%1, asks %2', label, target)
        : label;
    this.node.title = shown
      ? trans.__(
          'A cell runs or is compiled. How long a compile for a target still takes stands below the cell.'
        )
      : caption;
    if (!shown) {
      this.cancel.remove();
    } else if (!this.cancel.isConnected) {
      this.node.append(this.cancel);
    }
  }

  /** The targets that cells of a notebook name: `v6e, v5e`. */
  private targets(panel: NotebookPanel): string {
    const named = panel.content.widgets.flatMap(({ model }) =>
      model.type === 'code' ? targetOf(model.sharedModel.getSource()) : []
    );
    return [...new Set(named)].join(', ');
  }

  private readonly running: IRunning[] = [];
  private readonly words = h('span', {});
  private readonly cancel = h('button', { type: 'button', class: 'tl-Status-cancel' });
  private clock: ReturnType<typeof setInterval> | undefined;
}
