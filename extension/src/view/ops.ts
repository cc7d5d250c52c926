/** The table of ops: sorted, filtered, grouped, and only the rows in sight are built. */

import { groupKey, tableRows, type IOpGroup, type OpGrouping, type TableRow } from '../opgroups.js';
import { filterOps, opRows, sortOps, type IOpRow, type IRun, type OpColumn } from '../run.js';
import { h } from './dom.js';
import { clip, count } from './format.js';
import { icon } from './marks.js';
import { opColumns, type IColumn } from './opcolumns.js';
import { lineWords } from './places.js';
import { SHOWN, type Selection } from './selection.js';
import type { ITexts } from './texts.js';

const ROW = 24;
const ROWS_IN_SIGHT = 14;
/** Rows built above and below what is in sight. */
const SPARE = 8;

export function opsView(run: IRun, selection: Selection, texts: ITexts): HTMLElement {
  const all = opRows(run);
  if (!all.length) {
    return h(
      'p',
      { class: 'tl-Empty' },
      texts.__('No op was recorded. Run the cell with `--trace light` to see them.')
    );
  }
  const columns = opColumns(run, all, texts);
  let sort: { key: OpColumn; descending: boolean } = { key: 'id', descending: false };
  let grouping: OpGrouping = 'none';
  let found = all;
  let rows: readonly TableRow[] = [];
  const open = new Set<string>();

  const find = h('input', {
    class: 'tl-Find',
    type: 'search',
    placeholder: texts.__('Find op, module or shape'),
    'aria-label': texts.__('Find in ops')
  });
  const tally = h('span', { class: 'tl-muted', 'aria-live': 'polite' });
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
    body.replaceChildren(above, ...rows.slice(first, last).map((row, i) => build(row, first + i + 2)), below);
  }

  function build(row: TableRow, index: number): HTMLTableRowElement {
    return row.op
      ? opRow(row.op, columns, selection, index)
      : groupRow(row.group, columns, groupTitle(run, row.group, grouping, texts), open, index, toggle);
  }

  function toggle(key: string): void {
    if (!open.delete(key)) {
      open.add(key);
    }
    shape();
  }

  /** Groups what was found, and draws. */
  function shape(): void {
    rows = tableRows(found, grouping, open);
    table.setAttribute('aria-rowcount', String(rows.length + 1));
    draw();
  }

  function arrange(): void {
    found = sortOps(filterOps(all, find.value), sort.key, sort.descending);
    columns.forEach((column, i) =>
      heads[i]!.setAttribute(
        'aria-sort',
        column.key !== sort.key ? 'none' : sort.descending ? 'descending' : 'ascending'
      )
    );
    const shown =
      found.length === all.length
        ? texts._n('%1 op', '%1 ops', found.length)
        : texts.__('%1 of %2 ops', count(found.length), count(all.length));
    const dropped = run.ops_dropped
      ? texts.__(', %1 more ran and were not kept', count(run.ops_dropped))
      : '';
    tally.textContent = `${shown}${dropped}`;
    shape();
  }

  /** Scrolls to the first selected op, in its group if it is in one, and marks the selected ones. */
  function follow(): void {
    const chosen = found.find(row =>
      selection.op !== null ? row.id === selection.op : selection.has(row.place)
    );
    if (chosen && grouping !== 'none' && selection.op !== null && !open.has(groupKey(chosen, grouping))) {
      open.add(groupKey(chosen, grouping));
      shape();
    }
    const at = rows.findIndex(row => row.op !== null && row.op === chosen);
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
    const ops = rows.flatMap(row => row.op ?? []);
    const at = ops.findIndex(row => row.id === selection.op);
    const next = ops[at < 0 ? 0 : Math.min(ops.length - 1, Math.max(0, at + step))];
    if (next) {
      selection.set(next.place, next.id);
    }
  });
  selection.onChange(follow);
  arrange();
  const group = groupChoice(texts, chosen => {
    grouping = chosen;
    open.clear();
    scroller.scrollTop = 0;
    shape();
  });
  const bar = h('div', { class: 'tl-Bar' }, find, group, h('span', { class: 'tl-Space' }), tally);
  const view = h('div', {}, bar, scroller);
  view.addEventListener(SHOWN, follow);
  return view;
}

function groupChoice(texts: ITexts, choose: (by: OpGrouping) => void): HTMLElement {
  const choices: [OpGrouping, string][] = [
    ['none', texts.__('nothing')],
    ['name', texts.__('operator')],
    ['module', texts.__('module')],
    ['line', texts.__('line')],
    ['kind', texts.__('how it ran')]
  ];
  const select = h(
    'select',
    { class: 'tl-Select' },
    choices.map(([value, text]) => h('option', { value }, text))
  );
  select.addEventListener('change', () => choose(choices[select.selectedIndex]![0]));
  return h('label', { class: 'tl-muted' }, texts.__('Group by '), select);
}

function groupTitle(run: IRun, group: IOpGroup, by: OpGrouping, texts: ITexts): string {
  const place = group.rows[0]!.place;
  if (by === 'line') {
    return lineWords(run, place, texts) ?? texts.__('unknown line');
  }
  return group.key || (by === 'module' ? texts.__('outside any module') : texts.__('unknown'));
}

function groupRow(
  group: IOpGroup,
  columns: readonly IColumn[],
  title: string,
  open: ReadonlySet<string>,
  index: number,
  toggle: (key: string) => void
): HTMLTableRowElement {
  const sums = columns.filter(column => column.sum);
  const button = h(
    'button',
    { type: 'button', class: 'tl-GroupButton', 'aria-expanded': String(open.has(group.key)) },
    icon('chevron'),
    h('b', { title }, clip(title, 120)),
    h('span', { class: 'tl-muted' }, ` ${count(group.rows.length)}`)
  );
  button.addEventListener('click', () => toggle(group.key));
  return h(
    'tr',
    { class: 'tl-GroupRow', 'aria-rowindex': index },
    h('td', { colspan: columns.length - sums.length }, button),
    sums.map(column => h('td', { class: 'tl-num' }, column.sum!(group)))
  );
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
