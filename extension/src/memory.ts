/** Answers about the memory of a run: live bytes over its ops in layers, and what was alive at the peak. Pure functions. */

import { placeOf, samePlace, specText, type IPlace, type IRun } from './run.js';

/** Live bytes from an op position on, until the next point. */
export interface ILivePoint {
  readonly op: number;
  /** Storages that were alive before the run. */
  readonly before: number;
  /** Storages made by the run, without the marked one. */
  readonly made: number;
  /** The largest storage of the peak that the run made. */
  readonly marked: number;
  /** Scratch memory of the op that runs. */
  readonly scratch: number;
  readonly total: number;
}

export interface ILiveBytes {
  readonly points: readonly ILivePoint[];
  /** First op position after the last one. */
  readonly end: number;
  /** Index in `run.memory.largest` of the marked tensor; -1: none. */
  readonly marked: number;
  /** False: lives of storages are not in the record, so `made` holds all that is not from before. */
  readonly layered: boolean;
}

/** The curve of live bytes, split into layers where the record tells the lives of storages. */
export function liveBytes(run: IRun): ILiveBytes {
  const { memory, storages } = run;
  const layered = storages.nbytes.length > 0;
  const marked = layered ? memory.largest.findIndex(tensor => tensor.op !== '' && tensor.storage >= 0) : -1;
  const mark = memory.largest[marked]?.storage ?? -1;
  const end = Math.max(run.totals.ops, (run.ops.id[run.ops.id.length - 1] ?? -1) + 1, 1);
  const curve = memory.curve.length ? memory.curve : [{ op: 0, nbytes: memory.peak_bytes }];
  const points = curve.map(({ op, nbytes }): ILivePoint => {
    if (!layered) {
      const before = Math.min(memory.start_bytes, nbytes);
      return { op, before, made: nbytes - before, marked: 0, scratch: 0, total: nbytes };
    }
    let before = 0;
    let made = 0;
    let own = 0;
    storages.nbytes.forEach((size, i) => {
      if (storages.born[i]! <= op && (storages.died[i]! < 0 || storages.died[i]! > op)) {
        if (i === mark) {
          own += size;
        } else if (storages.born[i]! < 0) {
          before += size;
        } else {
          made += size;
        }
      }
    });
    // The curve keeps the highest value of each stretch, so it may lie above what is alive at its op; never below zero.
    return {
      op,
      before,
      made,
      marked: own,
      scratch: Math.max(0, nbytes - before - made - own),
      total: nbytes
    };
  });
  return { points, end, marked, layered };
}

/** A part of the peak: one tensor, or all of a line. */
export interface IPeakRow {
  readonly label: string;
  readonly madeBy: string;
  readonly place: IPlace | null;
  readonly nbytes: number;
  readonly tensors: number;
  /** Op that made it; null: before the run, or not known. */
  readonly op: number | null;
  /** Index in `run.storages`; -1: not known. */
  readonly storage: number;
  /** Op positions between which it lived; null: not known. */
  readonly life: readonly [number, number] | null;
}

export type PeakGrouping = 'tensor' | 'line' | 'module';

export function peakRows(run: IRun, grouping: PeakGrouping, end: number): IPeakRow[] {
  switch (grouping) {
    case 'line':
      return run.memory.lines.map(line => ({
        label: '',
        madeBy: '',
        place: placeAt(run, line.location),
        nbytes: line.nbytes,
        tensors: line.tensors,
        op: null,
        storage: -1,
        life: null
      }));
    case 'module':
      return byModule(run);
    default:
      return run.memory.largest.map(tensor => {
        const { storage } = tensor;
        const born = run.storages.born[storage];
        const died = run.storages.died[storage];
        const maker = run.storages.made_by[storage];
        return {
          label: tensor.spec ? specText(tensor.spec) : '',
          madeBy: tensor.op.replace(/\.default$/, ''),
          place: placeAt(run, tensor.location),
          nbytes: tensor.nbytes,
          tensors: 1,
          op: maker !== undefined && maker >= 0 ? maker : null,
          storage,
          life: born === undefined || died === undefined ? null : [Math.max(0, born), died < 0 ? end : died]
        };
      });
  }
}

/** What was alive at the peak by the module that made it. Empty where the record does not tell the lives of storages. */
function byModule(run: IRun): IPeakRow[] {
  const at = run.memory.peak_op;
  const { storages, ops } = run;
  const position = new Map(ops.id.map((id, i) => [id, i]));
  const rows = new Map<string, { nbytes: number; tensors: number }>();
  storages.nbytes.forEach((size, i) => {
    if (storages.born[i]! > at || (storages.died[i]! >= 0 && storages.died[i]! <= at)) {
      return;
    }
    const row = position.get(storages.made_by[i]!);
    const path = row === undefined ? '' : (run.modules[ops.module[row]!]?.path ?? '');
    const sum = rows.get(path) ?? { nbytes: 0, tensors: 0 };
    sum.nbytes += size;
    sum.tensors += 1;
    rows.set(path, sum);
  });
  return [...rows]
    .sort((a, b) => b[1].nbytes - a[1].nbytes)
    .map(([label, { nbytes, tensors }]) => ({
      label,
      madeBy: '',
      place: null,
      nbytes,
      tensors,
      op: null,
      storage: -1,
      life: null
    }));
}

function placeAt(run: IRun, location: number): IPlace | null {
  return placeOf(run, { location, cell_location: -1 });
}

/** A stretch of ops that one line of the cell ran. */
export interface IStretch {
  readonly from: number;
  readonly to: number;
  readonly place: IPlace | null;
}

/** The ops of a run as stretches of equal lines, in order. */
export function stretches(run: IRun): IStretch[] {
  const found: { from: number; to: number; place: IPlace | null }[] = [];
  run.ops.id.forEach((id, i) => {
    const place = placeOf(run, { location: run.ops.location[i]!, cell_location: run.ops.cell_location[i]! });
    const last = found[found.length - 1];
    if (last && (samePlace(last.place, place) || last.place === place)) {
      last.to = id + 1;
    } else {
      found.push({ from: id, to: id + 1, place });
    }
  });
  return found;
}
