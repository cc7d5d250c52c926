/** The segmented control in the toolbar of a cell. */

import type { ICellModel } from '@jupyterlab/cells';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { cellMagic, setCellMode, takesMode } from './cellmode.js';
import { MODES, type Mode } from './magic.js';
import { modeWords } from './words.js';

/** One radio button per mode and one for off. Hidden where the cell can have no mode. */
export class ModeSwitch extends Widget {
  constructor(
    private readonly model: ICellModel,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('tl-ModeSwitch');
    this.node.setAttribute('role', 'radiogroup');
    this.node.setAttribute('aria-label', trans.__('Mode of this cell'));
    this.buttons = new Map([...MODES, null].map(mode => [mode, this.makeButton(mode)]));
    this.node.append(...this.buttons.values());
    this.node.addEventListener('keydown', this.onKeydown);
    model.contentChanged.connect(this.refresh, this);
    model.mimeTypeChanged.connect(this.refresh, this);
    this.refresh();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.model.contentChanged.disconnect(this.refresh, this);
      this.model.mimeTypeChanged.disconnect(this.refresh, this);
      this.node.removeEventListener('keydown', this.onKeydown);
    }
    super.dispose();
  }

  private makeButton(mode: Mode | null): HTMLButtonElement {
    const words = modeWords(mode, this.trans);
    const button = document.createElement('button');
    button.type = 'button';
    button.setAttribute('role', 'radio');
    button.dataset.mode = mode ?? 'off';
    button.textContent = words.label;
    button.title = words.caption;
    // Keeps the cursor in the editor.
    button.addEventListener('mousedown', event => event.preventDefault());
    button.addEventListener('click', () => setCellMode(this.model, mode));
    return button;
  }

  private refresh(): void {
    this.setHidden(!takesMode(this.model));
    const magic = cellMagic(this.model);
    const current = magic ? magic.mode : null;
    // A %%tpu line with a word that is not on offer is neither off nor one of the modes.
    const known = !magic || magic.mode !== null;
    for (const [mode, button] of this.buttons) {
      const checked = known && mode === current;
      button.setAttribute('aria-checked', String(checked));
      button.tabIndex = checked || (!known && mode === null) ? 0 : -1;
    }
  }

  /** Arrow keys move through the group and choose, as in every radio group. */
  private readonly onKeydown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const modes = [...this.buttons.keys()];
    const at = modes.findIndex(mode => this.buttons.get(mode) === event.target);
    if (step === undefined || at < 0) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const mode = modes[(at + step + modes.length) % modes.length]!;
    setCellMode(this.model, mode);
    this.buttons.get(mode)?.focus();
  };

  private readonly buttons: Map<Mode | null, HTMLButtonElement>;
}
