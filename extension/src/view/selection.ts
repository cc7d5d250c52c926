/** The one selection of a run, shared by its tabs: a line, or an op and its line. */

import { samePlace, type IPlace } from '../run.js';

export class Selection {
  place: IPlace | null = null;
  /** Id of the selected op; null when a whole line is selected. */
  op: number | null = null;

  /** Selects a line (op null) or an op. The same selection again changes nothing. */
  set(place: IPlace | null, op: number | null = null): void {
    if (op === this.op && (samePlace(place, this.place) || place === this.place)) {
      return;
    }
    this.place = place;
    this.op = op;
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
