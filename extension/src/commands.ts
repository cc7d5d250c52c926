/** Commands for the active cell, and their places in the command palette. The shortcut is in `schema/plugin.json`. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ICellModel } from '@jupyterlab/cells';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { cellMode, setCellMode, takesMode } from './cellmode.js';
import { MODES, nextMode, type Mode } from './magic.js';
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
    caption: trans.__('Off, eager, compile, compare, and off again'),
    isEnabled: () => active() !== null,
    execute: () => {
      const model = active();
      if (model) {
        setCellMode(model, nextMode(cellMode(model)));
      }
    },
    describedBy: { args: { type: 'object', properties: {} } }
  });

  if (palette) {
    const category = trans.__('TPU Lab');
    [...MODES, 'off'].forEach((mode, rank) =>
      palette.addItem({ command: CommandIDs.setMode, category, args: { mode }, rank })
    );
    palette.addItem({ command: CommandIDs.cycleMode, category, rank: MODES.length + 1 });
  }
}
