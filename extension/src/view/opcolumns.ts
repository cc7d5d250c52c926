/** The columns of the table of ops. */

import type { IOpGroup } from '../opgroups.js';
import type { IOpRow, IRun, OpColumn } from '../run.js';
import { h } from './dom.js';
import { clip, count, inUnit, unitFor, type IUnit } from './format.js';
import type { ITexts } from './texts.js';

export interface IColumn {
  readonly key: OpColumn;
  readonly title: string;
  readonly number: boolean;
  /** CSS width; the columns without one share the rest. */
  readonly width?: string;
  readonly cell: (row: IOpRow) => string | Node | (string | Node)[];
  /** The sum in the row of a group. */
  readonly sum?: (group: IOpGroup) => string;
}

export function opColumns(run: IRun, rows: readonly IOpRow[], texts: ITexts): IColumn[] {
  const unit = (scale: 'time' | 'bytes' | 'flops', value: (row: IOpRow) => number | null): IUnit =>
    unitFor(
      scale,
      rows.reduce((most, row) => Math.max(most, value(row) ?? 0), 0)
    );
  const time = unit('time', row => row.timeNs);
  const bytes = unit('bytes', row => row.bytes);
  const flops = unit('flops', row => row.flops);
  const amount = (value: number | null, of: IUnit): string => (value === null ? '' : inUnit(value, of));
  const many = new Set(rows.map(row => row.place?.source)).size > 1;
  const columns: IColumn[] = [
    { key: 'id', title: texts.__('op'), number: true, width: '52px', cell: row => count(row.id) },
    {
      key: 'name',
      title: texts.__('name'),
      number: false,
      cell: row => [
        h('code', { title: row.name }, clip(row.name, 120)),
        row.backwardOf === null
          ? ''
          : h(
              'span',
              { class: 'tl-muted' },
              row.backwardOf < 0 ? texts.__(' backward') : texts.__(' backward of %1', row.backwardOf)
            )
      ]
    },
    {
      key: 'module',
      title: texts.__('module'),
      number: false,
      width: '17%',
      cell: row => h('span', { class: 'tl-muted', title: row.module }, clip(row.module, 120))
    },
    {
      key: 'line',
      title: texts.__('line'),
      number: true,
      width: many ? '110px' : '48px',
      cell: row =>
        row.place
          ? many && run.sources[row.place.source]!.kind !== 'cell'
            ? `${run.sources[row.place.source]!.name}:${row.place.line}`
            : String(row.place.line)
          : ''
    },
    {
      key: 'result',
      title: texts.__('result'),
      number: false,
      width: '22%',
      cell: row => h('code', { title: row.result }, clip(row.result, 120))
    },
    {
      key: 'kind',
      title: texts.__('ran as'),
      number: false,
      width: '66px',
      cell: row => h('span', { class: row.kind === 'fallback' ? 'tl-mod-cost' : 'tl-muted' }, row.kind)
    },
    {
      key: 'flops',
      title: flops.name,
      number: true,
      width: '66px',
      cell: row => amount(row.flops, flops),
      sum: group => amount(group.flops, flops)
    },
    {
      key: 'bytes',
      title: bytes.name,
      number: true,
      width: '58px',
      cell: row => amount(row.bytes, bytes),
      sum: group => amount(group.bytes, bytes)
    },
    {
      key: 'time',
      title: time.name,
      number: true,
      width: '58px',
      cell: row => inUnit(row.timeNs, time),
      sum: group => inUnit(group.timeNs, time)
    }
  ];
  return columns.filter(
    ({ key }) => !((key === 'flops' || key === 'bytes' || key === 'module') && rows.every(row => !row[key]))
  );
}
