/** Commands for the active cell, and their places in the command palette. The shortcut is in `schema/plugin.json`. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ICellModel } from '@jupyterlab/cells';
import { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { cellMode, cycleCellMode, setCellMode, takesMode } from './cellmode.js';
import { markedLines, pinMarks } from './gutter.js';
import { MODES, type Mode } from './magic.js';
import { CommandIDs } from './tokens.js';
import { modeWords } from './words.js';

export function addCommands(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  trans: TranslationBundle
): void {
  const active = (): ICellModel | null => {
    const model = tracker.currentWidget?.content.activeCell?.model;
    return model && takesMode(model) ? model : null;
  };
  const asked = (value: unknown): Mode | null => MODES.find(mode => mode === value) ?? null;

  app.commands.addCommand(CommandIDs.setMode, {
    label: args => trans.__('Cell Mode: %1', modeWords(asked(args.mode), trans).label),
    caption: args => modeWords(asked(args.mode), trans).caption,
    isEnabled: () => active() !== null,
    isToggleable: true,
    isToggled: args => {
      const model = active();
      return model !== null && cellMode(model) === asked(args.mode);
    },
    execute: args => {
      const model = active();
      if (model) {
        setCellMode(model, asked(args.mode));
      }
    },
    describedBy: {
      args: {
        type: 'object',
        properties: {
          mode: {
            type: 'string',
            enum: [...MODES, 'off'],
            description: trans.__('The mode of the active cell')
          }
        }
      }
    }
  });

  app.commands.addCommand(CommandIDs.cycleMode, {
    label: trans.__('Cell Mode: Next'),
    caption: trans.__('Off, the default mode, the others in their order, and off again'),
    isEnabled: () => active() !== null,
    execute: () => {
      const model = active();
      if (model) {
        cycleCellMode(model);
      }
    },
    describedBy: { args: { type: 'object', properties: {} } }
  });

  for (const [command, step, label] of [
    [CommandIDs.nextMark, 1, trans.__('Next Mark of a Run')],
    [CommandIDs.previousMark, -1, trans.__('Previous Mark of a Run')]
  ] as const) {
    app.commands.addCommand(command, {
      label,
      caption: trans.__('Graph breaks, recompiles, fallbacks, syncs and exceptions in this notebook'),
      isEnabled: () => tracker.currentWidget !== null,
      execute: () => goToMark(tracker, step, trans),
      describedBy: { args: { type: 'object', properties: {} } }
    });
  }

  if (palette) {
    const category = trans.__('TPU Lab');
    [...MODES, 'off'].forEach((mode, rank) =>
      palette.addItem({ command: CommandIDs.setMode, category, args: { mode }, rank })
    );
    [CommandIDs.cycleMode, CommandIDs.nextMark, CommandIDs.previousMark].forEach((command, i) =>
      palette.addItem({ command, category, rank: MODES.length + 1 + i })
    );
  }
}

/** Puts the cursor on the next or previous line with a mark, through all cells of the notebook and around its end. */
async function goToMark(tracker: INotebookTracker, step: 1 | -1, trans: TranslationBundle): Promise<void> {
  const notebook = tracker.currentWidget?.content;
  if (!notebook) {
    return;
  }
  const marked = await Promise.all(
    notebook.widgets.map(async ({ model }) => (model.type === 'code' ? markedLines(model) : []))
  );
  const all = marked.flatMap((lines, index) => lines.map(line => ({ index, line })));
  const { activeCellIndex } = notebook;
  const cursor = notebook.activeCell?.editor?.getCursorPosition().line ?? -1;
  const here = notebook.mode === 'edit' ? cursor : step > 0 ? -1 : Infinity;
  const after = (mark: { index: number; line: number }): boolean =>
    mark.index !== activeCellIndex ? mark.index > activeCellIndex : mark.line > here;
  const before = (mark: { index: number; line: number }): boolean =>
    mark.index !== activeCellIndex ? mark.index < activeCellIndex : mark.line < here;
  const next =
    step > 0 ? (all.find(after) ?? all[0]) : ([...all].reverse().find(before) ?? all[all.length - 1]);
  if (next) {
    notebook.activeCellIndex = next.index;
    notebook.mode = 'edit';
    const editor = notebook.activeCell?.editor;
    editor?.setCursorPosition({ line: next.line, column: 0 });
    editor?.focus();
    void notebook.scrollToItem(next.index);
    if (editor instanceof CodeMirrorEditor) {
      const view = editor.editor;
      pinMarks(view, view.state.doc.line(next.line + 1).from, trans);
    }
  }
}
