/** The table of ops: sorted, filtered, and only the rows in sight are built. */

import { filterOps, opRows, sortOps, type IOpRow, type IRun, type OpColumn } from '../run.js';
import { h } from './dom.js';
import { clip, count, inUnit, unitFor, type IUnit } from './format.js';
import type { Selection } from './selection.js';
import type { ITexts } from './texts.js';

const ROW = 24;
const ROWS_IN_SIGHT = 14;
/** Rows built above and below what is in sight. */
const SPARE = 8;

interface IColumn {
  readonly key: OpColumn;
  readonly title: string;
  readonly number: boolean;
  /** CSS width; the columns without one share the rest. */
  readonly width?: string;
  readonly cell: (row: IOpRow) => string | Node | (string | Node)[];
}

export function opsView(run: IRun, selection: Selection, texts: ITexts): HTMLElement {
  const all = opRows(run);
  if (!all.length) {
    return h(
      'p',
      { class: 'tl-Empty' },
      texts.__('No op was recorded. Run the cell with `--trace light` to see them.')
    );
  }
  const columns = makeColumns(run, all, texts);
  let sort: { key: OpColumn; descending: boolean } = { key: 'id', descending: false };
  let rows: readonly IOpRow[] = all;

  const find = h('input', {
    class: 'tl-Find',
    type: 'search',
    placeholder: texts.__('Find op, module or shape'),
    'aria-label': texts.__('Find in ops')
  });
  const found = h('span', { class: 'tl-muted', 'aria-live': 'polite' });
  const above = h('tr', { 'aria-hidden': 'true' });
  const below = h('tr', { 'aria-hidden': 'true' });
  const body = h('tbody', {});
  const heads = columns.map(column => {
    const button = h('button', { type: 'button' }, column.title);
    button.addEventListener('click', () => {
      const same = sort.key === column.key;
      sort = {
        key: column.key,
        descending: same ? !sort.descending : column.number && column.key !== 'id' && column.key !== 'line'
      };
      arrange();
    });
    return h('th', { scope: 'col', class: column.number ? 'tl-num' : null }, button);
  });
  const table = h(
    'table',
    { class: 'tl-Ops' },
    h(
      'colgroup',
      {},
      columns.map(column => h('col', { style: column.width ? `width:${column.width}` : null }))
    ),
    h('thead', {}, h('tr', {}, heads)),
    body
  );
  const scroller = h(
    'div',
    { class: 'tl-Ops-scroll', tabindex: 0, role: 'region', 'aria-label': texts.__('Table of ops') },
    table
  );
  scroller.style.maxHeight = `${(ROWS_IN_SIGHT + 1) * ROW}px`;

  /** Builds the rows in sight. */
  function draw(): void {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - SPARE);
    const last = Math.min(rows.length, first + ROWS_IN_SIGHT + 2 * SPARE);
    above.style.height = `${first * ROW}px`;
    below.style.height = `${(rows.length - last) * ROW}px`;
    body.replaceChildren(
      above,
      ...rows.slice(first, last).map((row, i) => opRow(row, columns, selection, first + i + 2)),
      below
    );
  }

  function arrange(): void {
    rows = sortOps(filterOps(all, find.value), sort.key, sort.descending);
    columns.forEach((column, i) =>
      heads[i]!.setAttribute(
        'aria-sort',
        column.key !== sort.key ? 'none' : sort.descending ? 'descending' : 'ascending'
      )
    );
    table.setAttribute('aria-rowcount', String(rows.length + 1));
    const shown =
      rows.length === all.length
        ? texts._n('%1 op', '%1 ops', rows.length)
        : texts.__('%1 of %2 ops', count(rows.length), count(all.length));
    const dropped = run.ops_dropped
      ? texts.__(', %1 more ran and were not kept', count(run.ops_dropped))
      : '';
    found.textContent = `${shown}${dropped}`;
    draw();
  }

  /** Scrolls to the first selected row and marks the selected ones. */
  function follow(): void {
    const at = rows.findIndex(row =>
      selection.op !== null ? row.id === selection.op : selection.has(row.place)
    );
    if (
      at >= 0 &&
      (at * ROW < scroller.scrollTop || at * ROW > scroller.scrollTop + (ROWS_IN_SIGHT - 1) * ROW)
    ) {
      scroller.scrollTop = Math.max(0, (at - 2) * ROW);
    }
    draw();
  }

  find.addEventListener('input', () => {
    scroller.scrollTop = 0;
    arrange();
  });
  scroller.addEventListener('scroll', draw, { passive: true });
  scroller.addEventListener('keydown', event => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step === undefined) {
      return;
    }
    event.preventDefault();
    const at = rows.findIndex(row => row.id === selection.op);
    const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next) {
      selection.set(next.place, next.id);
    }
  });
  selection.onChange(follow);
  arrange();
  const view = h('div', {}, h('div', { class: 'tl-Bar' }, find, found), scroller);
  // The table has no height before it stands in the page.
  requestAnimationFrame(follow);
  return view;
}

function opRow(
  row: IOpRow,
  columns: readonly IColumn[],
  selection: Selection,
  index: number
): HTMLTableRowElement {
  const selected = selection.op !== null ? row.id === selection.op : selection.has(row.place);
  const element = h(
    'tr',
    { 'aria-selected': String(selected), 'aria-rowindex': index, 'data-op': row.id },
    columns.map(column => {
      const content = column.cell(row);
      return h(
        'td',
        {
          class: column.number ? 'tl-num' : null,
          title: typeof content === 'string' && content.length > 12 ? content : null
        },
        content
      );
    })
  );
  element.addEventListener('click', () => selection.set(row.place, row.id));
  return element;
}

function makeColumns(run: IRun, rows: readonly IOpRow[], texts: ITexts): IColumn[] {
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
    { key: 'flops', title: flops.name, number: true, width: '66px', cell: row => amount(row.flops, flops) },
    { key: 'bytes', title: bytes.name, number: true, width: '58px', cell: row => amount(row.bytes, bytes) },
    { key: 'time', title: time.name, number: true, width: '58px', cell: row => inUnit(row.timeNs, time) }
  ];
  return columns.filter(
    ({ key }) => !((key === 'flops' || key === 'bytes' || key === 'module') && rows.every(row => !row[key]))
  );
}
