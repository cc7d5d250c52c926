/** The one selection of a run, shared by its tabs: a line, an op with its line, or a tensor with the op that made it. */

import { samePlace, type IPlace } from '../run.js';

/** The event that a view gets when it has come into the page: the time to scroll to what is selected. */
export const SHOWN = 'tl-shown';

export class Selection {
  place: IPlace | null = null;
  /** Id of the selected op; null when a whole line is selected. */
  op: number | null = null;
  /** Index of the selected tensor in `run.storages`; null when none is. */
  tensor: number | null = null;

  /** Selects a line (op and tensor null), an op or a tensor. The same selection again changes nothing. */
  set(place: IPlace | null, op: number | null = null, tensor: number | null = null): void {
    const same = samePlace(place, this.place) || place === this.place;
    if (same && op === this.op && tensor === this.tensor) {
      return;
    }
    this.place = place;
    this.op = op;
    this.tensor = tensor;
    this.listeners.forEach(listener => listener());
  }

  has(place: IPlace | null): boolean {
    return samePlace(place, this.place);
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private readonly listeners: (() => void)[] = [];
}
