/** Places in the sources of a run. Pure functions. */

import type { IRun } from './schema.js';

/** A line of a source, as costs and findings name it. */
export interface IPlace {
  readonly source: number;
  readonly line: number;
}

export const samePlace = (a: IPlace | null, b: IPlace | null): boolean =>
  a !== null && b !== null && a.source === b.source && a.line === b.line;

/** The line that is charged for something: in the cell if a cell called it. Null: not known. */
export function placeOf(
  run: IRun,
  at: { readonly location: number; readonly cell_location: number }
): IPlace | null {
  const location = run.locations[at.cell_location] ?? run.locations[at.location];
  return location && run.sources[location.source] ? { source: location.source, line: location.line } : null;
}
