/** The operator table: read from data that may be anything, filtered, counted. Pure functions. */

import { unpacked } from './packed.js';
import { isObject, RunError } from './reader.js';

export const COVERAGE_FORMAT = 'tpu-lab-coverage-view';
export const HERE = ['native', 'decomposed', 'fallback', 'missing'] as const;
export const THERE = ['own', 'composite', 'missing'] as const;
export const EXECUTORS = ['eager', 'fuse', 'compile'] as const;
export type Here = (typeof HERE)[number];
/** What became of the suite's samples: they passed, differ with a declared reason, failed, or there were none. */
export type Tried = 'p' | 'd' | 'f' | '-';

/** One ATen overload. */
export interface IOverload {
  /** Its place in the data, by which its details are found. */
  readonly index: number;
  readonly name: string;
  readonly family: string;
  readonly here: Here;
  readonly there: (typeof THERE)[number];
  readonly models: number;
  /** A letter for each dtype of the table. */
  readonly tried: string;
  /** A letter for each executor. */
  readonly executors: string;
}

export interface ICoverage {
  readonly dtypes: readonly string[];
  readonly families: readonly string[];
  readonly rows: readonly IOverload[];
  /** When and with which versions the samples ran. */
  readonly verified: string;
  /** The details of every row, packed. */
  readonly details: unknown;
}

/** What only the pane of one overload shows. Any of it may be missing. */
export interface IDetails {
  readonly schema: string;
  readonly note: string;
  readonly needs: string;
  readonly tests: readonly string[];
  readonly where: string;
  readonly source: string;
  readonly calls: readonly string[];
  readonly example: string;
  readonly program: string;
}

/** More rows than this are no table of operators. */
const MOST_ROWS = 50_000;

/** The data, checked. Throws RunError for another format, a newer major version, a missing or wrong column. */
export function readCoverage(data: unknown): ICoverage {
  if (data instanceof RunError) {
    throw data;
  }
  if (!isObject(data) || data.format !== COVERAGE_FORMAT) {
    throw new RunError('This is not a table of operators.');
  }
  if (String(data.schema).split('.')[0] !== '1') {
    throw new RunError(
      `This table was saved with schema ${String(data.schema).slice(0, 20)}; this version of TPU Lab reads 1.x. Next: update tpu-lab.`
    );
  }
  const names = strings(data, 'name');
  const dtypes = strings(data, 'dtypes');
  const families = strings(data, 'families');
  if (names.length > MOST_ROWS) {
    throw new RunError('This table is damaged at name: too many rows.');
  }
  const column = <T>(field: string, read: (value: unknown) => T | undefined): T[] => {
    const values = data[field];
    if (!Array.isArray(values) || values.length !== names.length) {
      throw damaged(field);
    }
    return values.map(value => {
      const found = read(value);
      if (found === undefined) {
        throw damaged(field);
      }
      return found;
    });
  };
  const oneOf =
    <T>(list: readonly T[]) =>
    (value: unknown): T | undefined =>
      Number.isInteger(value) ? list[value as number] : undefined;
  const letters =
    (length: number) =>
    (value: unknown): string | undefined =>
      typeof value === 'string' && value.length === length && /^[pdf-]*$/.test(value) ? value : undefined;
  const family = column('family', oneOf(families));
  const here = column('here', oneOf(HERE));
  const there = column('there', oneOf(THERE));
  const models = column('models', value =>
    Number.isInteger(value) && (value as number) >= 0 ? (value as number) : undefined
  );
  const tried = column('tried', letters(dtypes.length));
  const executors = column('executors', letters(EXECUTORS.length));
  const rows = names.map((name, index) => ({
    index,
    name,
    family: family[index]!,
    here: here[index]!,
    there: there[index]!,
    models: models[index]!,
    tried: tried[index]!,
    executors: executors[index]!
  }));
  return {
    dtypes,
    families,
    rows,
    verified: verifiedWords(data.made),
    details: data.details
  };
}

function strings(data: Record<string, unknown>, field: string): string[] {
  const value = data[field];
  if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) {
    throw damaged(field);
  }
  return value;
}

const damaged = (field: string): RunError => new RunError(`This table is damaged at ${field}.`);

/** `2026-12-01 with torch 2.13.0, jax 0.10.2`; empty if the data does not say. */
function verifiedWords(made: unknown): string {
  const run = isObject(made) && isObject(made.conformance) ? made.conformance : {};
  const versions = ['torch', 'jax'].filter(name => typeof run[name] === 'string');
  const date = typeof run.date === 'string' ? run.date : '';
  return date && versions.length
    ? `${date} with ${versions.map(name => `${name} ${String(run[name])}`).join(', ')}`
    : date;
}

/** The details of every row, by index. Rejects with RunError for what cannot be unpacked. */
export async function readDetails(details: unknown): Promise<IDetails[]> {
  const found = await unpacked(details);
  return (Array.isArray(found) ? found : []).map(readDetail);
}

function readDetail(value: unknown): IDetails {
  const fields = isObject(value) ? value : {};
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '');
  const list = (name: string): string[] =>
    Array.isArray(fields[name]) ? fields[name].filter(item => typeof item === 'string') : [];
  return {
    schema: text('schema'),
    note: text('note'),
    needs: text('needs'),
    tests: list('tests'),
    where: text('where'),
    source: text('source'),
    calls: list('calls'),
    example: text('example'),
    program: text('program')
  };
}

/** What is chosen beside the text of the filter. */
export interface IChoice {
  readonly statuses: ReadonlySet<Here>;
  /** Empty: any. */
  readonly family: string;
  readonly dtype: string;
  readonly executor: string;
}

/**
 * The rows that have every word of a filter: `family:sort`, `here:missing`, `torchtpu:missing`, `dtype:bool`, else a part of the
 * overload's name.
 */
export function filterRows(table: ICoverage, text: string, choice: IChoice): IOverload[] {
  const tests = text
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word)
    .map(word => wordTest(table, word));
  const dtype = table.dtypes.indexOf(choice.dtype);
  const executor = EXECUTORS.findIndex(name => name === choice.executor);
  return table.rows.filter(
    row =>
      choice.statuses.has(row.here) &&
      (!choice.family || row.family === choice.family) &&
      (dtype < 0 || row.tried[dtype] !== '-') &&
      (executor < 0 || row.executors[executor] === 'p') &&
      tests.every(test => test(row))
  );
}

function wordTest(table: ICoverage, word: string): (row: IOverload) => boolean {
  const [, key, value] = /^(family|here|torchtpu|dtype):(.*)$/.exec(word) ?? [];
  if (key === 'family') {
    return row => row.family.toLowerCase().includes(value!);
  }
  if (key === 'here') {
    return row => row.here.startsWith(value!);
  }
  if (key === 'torchtpu') {
    return row => row.there.startsWith(value!);
  }
  if (key === 'dtype') {
    const columns = table.dtypes.flatMap((name, i) =>
      shortDtype(name) === value || name === value ? [i] : []
    );
    return row => !value || columns.some(i => row.tried[i] !== '-');
  }
  const bare = word.replace(/^(torch\.ops\.)?aten(::|\.)/, '').replace(/\.default$/, '');
  return row => row.name.toLowerCase().includes(bare);
}

/** Whether samples of a dtype passed without leaving the device. */
export function runsOnDevice(row: IOverload, dtype: number): boolean {
  return (row.here === 'native' || row.here === 'decomposed') && row.tried[dtype] === 'p';
}

export interface IHeatRow {
  readonly family: string;
  readonly size: number;
  /** By dtype: how many overloads have samples, and how many of these run on the device. */
  readonly cells: readonly { readonly tried: number; readonly ran: number }[];
}

/** The share of each family that runs on the device, by dtype. */
export function heatRows(table: ICoverage): IHeatRow[] {
  const groups = new Map<string, IOverload[]>(table.families.map(family => [family, []]));
  for (const row of table.rows) {
    groups.get(row.family)!.push(row);
  }
  return [...groups].map(([family, rows]) => ({
    family,
    size: rows.length,
    cells: table.dtypes.map((_, i) => ({
      tried: rows.filter(row => row.tried[i] !== '-').length,
      ran: rows.filter(row => runsOnDevice(row, i)).length
    }))
  }));
}

export type Column = 'name' | 'here' | 'there' | 'models';

/** The rows in the order of a column; equal ones by use in models, then by name. */
export function sortRows(rows: readonly IOverload[], key: Column, descending: boolean): IOverload[] {
  const rank = (row: IOverload): number =>
    key === 'models' ? row.models : key === 'here' ? HERE.indexOf(row.here) : THERE.indexOf(row.there);
  const order = (a: IOverload, b: IOverload): number =>
    key === 'name' ? compareNames(a.name, b.name) : rank(a) - rank(b);
  return [...rows].sort(
    (a, b) => (descending ? -order(a, b) : order(a, b)) || b.models - a.models || compareNames(a.name, b.name)
  );
}

const compareNames = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const SHORT: Readonly<Record<string, string>> = {
  float32: 'f32',
  bfloat16: 'bf16',
  float16: 'f16',
  float64: 'f64',
  int64: 'i64',
  int32: 'i32',
  int16: 'i16',
  int8: 'i8',
  uint8: 'u8',
  complex64: 'c64',
  complex128: 'c128'
};

/** `f32` for `float32`. */
export function shortDtype(name: string): string {
  return SHORT[name] ?? name;
}

/** The rows as CSV, with a line of headers. */
export function coverageCsv(table: ICoverage, rows: readonly IOverload[]): string {
  const words: Readonly<Record<string, string>> = { p: 'pass', d: 'declared', f: 'fail', '-': '' };
  const quoted = (value: string | number): string =>
    /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value);
  const lines = rows.map(row => [
    `aten.${row.name}`,
    row.family,
    row.here,
    ...[...row.executors, ...row.tried].map(letter => words[letter]!),
    row.there,
    row.models
  ]);
  const head = ['overload', 'family', 'here', ...EXECUTORS, ...table.dtypes, 'torch_tpu', 'model_types'];
  return [head, ...lines].map(line => line.map(quoted).join(',')).join('\n') + '\n';
}
