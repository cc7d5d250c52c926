/**
 * The chip at the end of the `%%tpu` line: shows the mode and opens a menu of modes. It stands in the editor because
 * JupyterLab hides the toolbar of a narrow cell. There a focused cell without a magic shows a chip too, to get one.
 */

import type { ICellModel } from '@jupyterlab/cells';
import type { TranslationBundle } from '@jupyterlab/translation';
import { RangeSet, StateEffect, type Extension } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  ViewPlugin,
  WidgetType,
  type DecorationSet,
  type ViewUpdate
} from '@codemirror/view';
import { CommandRegistry } from '@lumino/commands';
import { Menu } from '@lumino/widgets';

import { cellMode, setCellMode, takesMode } from './cellmode.js';
import { MODES, parseMagic, type Mode } from './magic.js';
import { icon } from './view/marks.js';
import { modeWords } from './words.js';

/** Below this width of the editor in px JupyterLab may hide the toolbar of the cell. */
const NARROW = 600;
/** The magics at the top of a cell are looked for in this many characters. */
const HEAD = 4000;

const redraw = StateEffect.define<null>();

/** The CodeMirror extension for the editor of one cell. */
export function modeChip(model: ICellModel, trans: TranslationBundle): Extension {
  class Chips {
    decorations: DecorationSet;
    private narrow = false;

    constructor(view: EditorView) {
      this.decorations = this.build(view);
      this.measure(view);
    }

    update(update: ViewUpdate): void {
      if (update.geometryChanged) {
        this.measure(update.view);
      }
      if (
        update.docChanged ||
        update.focusChanged ||
        update.transactions.some(t => t.effects.some(e => e.is(redraw)))
      ) {
        this.decorations = this.build(update.view);
      }
    }

    private measure(view: EditorView): void {
      view.requestMeasure({
        key: this,
        read: () => view.dom.clientWidth > 0 && view.dom.clientWidth < NARROW,
        write: narrow => {
          if (narrow !== this.narrow) {
            this.narrow = narrow;
            // An editor may not be changed while it measures.
            queueMicrotask(() => view.dispatch({ effects: redraw.of(null) }));
          }
        }
      });
    }

    private build(view: EditorView): DecorationSet {
      if (!takesMode(model)) {
        return Decoration.none;
      }
      const magic = parseMagic(view.state.sliceDoc(0, HEAD));
      if (!magic && !(this.narrow && view.hasFocus)) {
        return Decoration.none;
      }
      const label = magic ? (magic.mode ?? (magic.word || trans.__('default'))) : trans.__('TPU off');
      const at = view.state.doc.lineAt(magic?.from ?? 0).to;
      return RangeSet.of([
        Decoration.widget({ widget: new Chip(label, magic !== null, model, trans), side: 1 }).range(at)
      ]);
    }
  }
  return ViewPlugin.fromClass(Chips, { decorations: chips => chips.decorations });
}

class Chip extends WidgetType {
  constructor(
    private readonly label: string,
    private readonly on: boolean,
    private readonly model: ICellModel,
    private readonly trans: TranslationBundle
  ) {
    super();
  }

  override eq(other: Chip): boolean {
    return other.label === this.label && other.on === this.on && other.model === this.model;
  }

  override toDOM(view: EditorView): HTMLElement {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = this.on ? 'tl-Chip' : 'tl-Chip tl-mod-off';
    button.setAttribute('aria-haspopup', 'menu');
    button.setAttribute('aria-label', this.trans.__('Mode of this cell: %1', this.label));
    button.append(this.label, icon('chevron'));
    button.addEventListener('mousedown', event => event.preventDefault());
    button.addEventListener('click', () => openMenu(button, view, this.model, this.trans));
    return button;
  }

  override ignoreEvent(): boolean {
    return true;
  }
}

function openMenu(anchor: HTMLElement, view: EditorView, model: ICellModel, trans: TranslationBundle): void {
  // Its own registry: the application's commands act on the active cell, which need not be this one.
  const commands = new CommandRegistry();
  const menu = new Menu({ commands });
  for (const mode of [...MODES, null] as (Mode | null)[]) {
    const command = mode ?? 'off';
    const words = modeWords(mode, trans);
    commands.addCommand(command, {
      label: words.label,
      caption: words.caption,
      isToggleable: true,
      isToggled: () => cellMode(model) === mode,
      execute: () => setCellMode(model, mode),
      describedBy: { args: { type: 'object', properties: {} } }
    });
    menu.addItem({ command });
  }
  menu.aboutToClose.connect(() => view.focus());
  menu.menuRequested.connect(() => menu.close());
  const box = anchor.getBoundingClientRect();
  menu.open(box.left, box.bottom + 2);
}
