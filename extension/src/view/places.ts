/** How places in the sources of a run are called. */

import { placeOf, type IPlace, type IRun } from '../run.js';
import type { ITexts } from './texts.js';

/** `line 8` in the cell, `net.py:8` elsewhere; null: not known. */
export function lineWords(run: IRun, place: IPlace | null, texts: ITexts): string | null {
  const source = place && run.sources[place.source];
  return source
    ? source.kind === 'cell'
      ? texts.__('line %1', place.line)
      : `${source.name}:${place.line}`
    : null;
}

/** The place of the op at an index of `run.ops`. */
export function placeOfOp(run: IRun, index: number): IPlace | null {
  return placeOf(run, { location: run.ops.location[index]!, cell_location: run.ops.cell_location[index]! });
}
