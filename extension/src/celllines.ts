/** What a run knows of the lines of its cell, and where those lines are in a text that may have been edited since. Pure. */

import { sourceBlocks, type IMark, type IRun } from './run.js';

/** A line of the cell that cost something or carries a mark. */
export interface ICellLine {
  readonly text: string;
  /** Which of the lines with this text it was, from 0. */
  readonly nth: number;
  /** null: no op of the device ran on it. */
  readonly timeNs: number | null;
  readonly marks: readonly IMark[];
}

export function cellLines(run: IRun): ICellLine[] {
  const cell = sourceBlocks(run).find(block => block.source.kind === 'cell');
  const seen = new Map<string, number>();
  const lines = (cell?.rows ?? []).map((row): ICellLine => {
    const nth = seen.get(row.text) ?? 0;
    seen.set(row.text, nth + 1);
    return { text: row.text, nth, timeNs: row.cost?.time_ns ?? null, marks: row.marks };
  });
  return lines.filter(line => line.timeNs !== null || line.marks.length > 0);
}

/**
 * By line number (from 1) of the text as it is now, what the run knows of that line. A line counts as the same if its text is:
 * the second of two equal lines stays the second. Edited lines are not in the answer.
 */
export function anchored(lines: readonly ICellLine[], text: readonly string[]): Map<number, ICellLine> {
  const places = new Map<string, number[]>();
  text.forEach((line, i) => {
    const found = places.get(line);
    if (found) {
      found.push(i + 1);
    } else {
      places.set(line, [i + 1]);
    }
  });
  const found = new Map<number, ICellLine>();
  for (const line of lines) {
    const number = places.get(line.text)?.[line.nth];
    if (number !== undefined && line.text.trim()) {
      found.set(number, line);
    }
  }
  return found;
}
