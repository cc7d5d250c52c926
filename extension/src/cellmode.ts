/** Reads and edits the mode of a notebook cell through its shared model, so that the editor's undo takes it back. */

import type { ICellModel } from '@jupyterlab/cells';

import {
  canHaveMode,
  modeEdit,
  nextMode,
  parseMagic,
  PLAIN,
  type IMagic,
  type IPreferences,
  type Mode
} from './magic.js';

let preferences: IPreferences = PLAIN;

/** From now on lines are written as these say. */
export function setPreferences(chosen: IPreferences): void {
  preferences = chosen;
}

/** Whether a mode makes sense here: a Python code cell that may be edited and is not written for another language. */
export function takesMode(model: ICellModel): boolean {
  return (
    model.type === 'code' &&
    /python/.test(model.mimeType) &&
    model.getMetadata('editable') !== false &&
    canHaveMode(model.sharedModel.getSource())
  );
}

export function cellMagic(model: ICellModel): IMagic | null {
  return parseMagic(model.sharedModel.getSource());
}

export function cellMode(model: ICellModel): Mode | null {
  return cellMagic(model)?.mode ?? null;
}

/** Gives the cell a mode; null makes it plain Python again. Does nothing where no mode makes sense. */
export function setCellMode(model: ICellModel, mode: Mode | null): void {
  const edit = takesMode(model) ? modeEdit(model.sharedModel.getSource(), mode, preferences) : null;
  if (edit) {
    model.sharedModel.updateSource(edit.from, edit.to, edit.text);
  }
}

/** Goes to the next mode: from off to the preferred one, through the others, and off again. */
export function cycleCellMode(model: ICellModel): void {
  setCellMode(model, nextMode(cellMode(model), preferences.mode));
}
