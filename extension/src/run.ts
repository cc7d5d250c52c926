/**
 * Reads a Run from data that may be anything, and answers the questions the views ask of it. Pure functions; the types
 * are those of the schema.
 */

import {
  DEFAULTS,
  FORMAT,
  SCHEMA_VERSION,
  SHAPES,
  type ILineCost,
  type IRun,
  type ISource,
  type ITensorSpec
} from './schema.js';

import { readDocument, RunError } from './reader.js';
import { placeOf, type IPlace } from './places.js';
import { marks, type IMark } from './runmarks.js';

export type * from './schema.js';

export { placeOf, samePlace, type IPlace } from './places.js';
export { marks, type IMark } from './runmarks.js';
export { RunError } from './reader.js';

/** Data as a Run. Throws RunError for a newer major schema, a missing or wrong field, or columns that do not fit together. */
export function readRun(data: unknown): IRun {
  const document = {
    format: FORMAT,
    version: SCHEMA_VERSION,
    shapes: SHAPES,
    defaults: DEFAULTS,
    root: 'Run',
    noun: 'run'
  };
  const run = readDocument(data, document) as unknown as IRun;
  for (const columns of ['ops', 'storages'] as const) {
    const lengths = Object.entries<readonly unknown[]>({ ...run[columns] });
    for (const [name, column] of lengths) {
      if (column.length !== lengths[0]![1].length) {
        throw new RunError(
          `This run is damaged at ${columns}.${name}: it has another length than ${columns}.${lengths[0]![0]}.`
        );
      }
    }
  }
  return run;
}

// ---- questions ---------------------------------------------------------------------------------

/** One row of the source view. */
export interface ILineRow extends IPlace {
  readonly text: string;
  readonly cost: ILineCost | null;
  readonly marks: readonly IMark[];
}

/** A source with its rows: the cell that ran first, then the others by what they cost. Sources without cost or mark are left out. */
export interface ISourceBlock {
  readonly source: ISource;
  readonly rows: readonly ILineRow[];
}

export function sourceBlocks(run: IRun): ISourceBlock[] {
  const all = marks(run);
  const blocks = run.sources.map((source, index) => {
    const costs = new Map(run.lines.filter(cost => cost.source === index).map(cost => [cost.line, cost]));
    const here = all.filter(mark => mark.place?.source === index);
    const texts = new Map(source.lines.map(line => [line.number, line.text]));
    const numbers = new Set([...texts.keys(), ...costs.keys(), ...here.map(mark => mark.place!.line)]);
    const rows = [...numbers]
      .filter(number => number > 0)
      .sort((a, b) => a - b)
      .map(line => ({
        source: index,
        line,
        text: texts.get(line) ?? '',
        cost: costs.get(line) ?? null,
        marks: here.filter(mark => mark.place!.line === line)
      }));
    return {
      source,
      rows,
      time: [...costs.values()].reduce((sum, cost) => sum + cost.time_ns, 0),
      busy: costs.size + here.length > 0
    };
  });
  return blocks
    .filter(block => block.rows.length > 0 && (block.busy || block.source.kind === 'cell'))
    .sort((a, b) => Number(b.source.kind === 'cell') - Number(a.source.kind === 'cell') || b.time - a.time)
    .map(({ source, rows }) => ({ source, rows }));
}

/** One row of the table of ops. */
export interface IOpRow {
  readonly id: number;
  readonly name: string;
  /** How it ran: `xla`, `view`, `host` … */
  readonly kind: string;
  readonly module: string;
  readonly place: IPlace | null;
  readonly result: string;
  readonly flops: number | null;
  readonly bytes: number | null;
  readonly timeNs: number;
  /** The forward op of a backward op: its id, -1 if it ran before the recording; null for other ops. */
  readonly backwardOf: number | null;
}

export function opRows(run: IRun): IOpRow[] {
  const { ops } = run;
  return ops.id.map((id, i) => {
    const program = run.programs[ops.program[i]!];
    const forward = ops.forward[i]!;
    return {
      id,
      // Most operators have one overload only, `default`.
      name: program?.op.replace(/\.default$/, '') ?? '?',
      kind: program?.kind ?? '',
      module: run.modules[ops.module[i]!]?.path ?? '',
      place: placeOf(run, { location: ops.location[i]!, cell_location: ops.cell_location[i]! }),
      result: (program?.outputs ?? []).map(specText).join(' '),
      flops: program?.flops ?? null,
      bytes: program?.bytes ?? null,
      timeNs: ops.duration_ns[i]!,
      backwardOf: forward === -2 ? null : forward
    };
  });
}

export type OpColumn = 'id' | 'name' | 'module' | 'line' | 'result' | 'kind' | 'flops' | 'bytes' | 'time';

/** Rows in the order of a column; equal ones, and unknown values last, in the order they ran. */
export function sortOps(rows: readonly IOpRow[], column: OpColumn, descending: boolean): IOpRow[] {
  const key = (row: IOpRow): string | number | null => {
    switch (column) {
      case 'line':
        return row.place ? row.place.source * 1e6 + row.place.line : null;
      case 'time':
        return row.timeNs;
      default:
        return row[column];
    }
  };
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === y) {
      return a.id - b.id;
    }
    if (x === null || y === null) {
      return x === null ? 1 : -1;
    }
    return sign * (x < y ? -1 : 1);
  });
}

/** Rows whose name, module, result or kind contains every word. */
export function filterOps(rows: readonly IOpRow[], words: string): IOpRow[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(row => {
    const text = `${row.name} ${row.module} ${row.result} ${row.kind}`.toLowerCase();
    return wanted.every(word => text.includes(word));
  });
}

const SHORT: Readonly<Record<string, string>> = {
  float64: 'f64',
  float32: 'f32',
  float16: 'f16',
  bfloat16: 'bf16',
  int64: 'i64',
  int32: 'i32',
  int16: 'i16',
  int8: 'i8',
  uint64: 'u64',
  uint32: 'u32',
  uint16: 'u16',
  uint8: 'u8',
  complex64: 'c64',
  complex128: 'c128'
};

/** A tensor's type: `bf16[8,16,1024]`. */
export function specText(spec: ITensorSpec): string {
  return `${SHORT[spec.dtype] ?? spec.dtype}[${spec.shape.join(',')}]`;
}

/** The steady time of a timing: the median of the later calls, or the first call where there is no other. */
export function steadyNs(timing: {
  readonly first_ns: number;
  readonly later_ns: readonly number[];
}): number {
  const sorted = [...timing.later_ns].sort((a, b) => a - b);
  if (!sorted.length) {
    return timing.first_ns;
  }
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
