/** Ops in groups, for the table of ops. Pure functions. */

import type { IOpRow } from './run.js';

export type OpGrouping = 'none' | 'name' | 'module' | 'line' | 'kind';

/** The ops of one name, module, line or way to run, with their sums. */
export interface IOpGroup {
  readonly key: string;
  readonly rows: readonly IOpRow[];
  readonly timeNs: number;
  /** null: not known for any of them. */
  readonly flops: number | null;
  readonly bytes: number | null;
}

/** A row of the table: a group, or an op. */
export type TableRow =
  { readonly group: IOpGroup; readonly op: null } | { readonly group: null; readonly op: IOpRow };

export function groupKey(row: IOpRow, by: OpGrouping): string {
  switch (by) {
    case 'name':
      return row.name;
    case 'module':
      return row.module;
    case 'line':
      return row.place ? `${row.place.source}:${row.place.line}` : '';
    case 'kind':
      return row.kind;
    default:
      return '';
  }
}

/** Groups of rows, the dearest first; rows keep their order within. */
export function groupOps(rows: readonly IOpRow[], by: OpGrouping): IOpGroup[] {
  const groups = new Map<string, IOpRow[]>();
  for (const row of rows) {
    const key = groupKey(row, by);
    const group = groups.get(key);
    if (group) {
      group.push(row);
    } else {
      groups.set(key, [row]);
    }
  }
  return [...groups]
    .map(([key, members]) => ({
      key,
      rows: members,
      timeNs: members.reduce((sum, row) => sum + row.timeNs, 0),
      flops: sum(members.map(row => row.flops)),
      bytes: sum(members.map(row => row.bytes))
    }))
    .sort((a, b) => b.timeNs - a.timeNs || (a.key < b.key ? -1 : 1));
}

/** The rows to show: each group, and below it its ops where it is open. Without grouping just the ops. */
export function tableRows(rows: readonly IOpRow[], by: OpGrouping, open: ReadonlySet<string>): TableRow[] {
  if (by === 'none') {
    return rows.map(op => ({ group: null, op }));
  }
  return groupOps(rows, by).flatMap((group): TableRow[] => [
    { group, op: null },
    ...(open.has(group.key) ? group.rows.map(op => ({ group: null, op })) : [])
  ]);
}

function sum(values: readonly (number | null)[]): number | null {
  const known = values.filter(value => value !== null);
  return known.length ? known.reduce((total, value) => total + value, 0) : null;
}
