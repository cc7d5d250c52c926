/** The lines that ran with what each cost, and a mark where something wants to be seen. */

import { sourceBlocks, type ILineRow, type IRun } from '../run.js';
import { h } from './dom.js';
import { clip, count, inUnit, quantity, unitFor, type IUnit } from './format.js';
import { highlight } from './highlight.js';
import { icon } from './marks.js';
import { markCard } from './markcard.js';
import { SHOWN, type Selection } from './selection.js';
import { markIcon } from './summary.js';
import type { ITexts } from './texts.js';

/** Width of the longest time bar in px; the shortest that shows is 1.5. */
const BAR = 48;
/** Marks side by side; more become a number. */
const MARKS = 2;

export function sourceView(run: IRun, selection: Selection, texts: ITexts): HTMLElement {
  const blocks = sourceBlocks(run);
  if (!blocks.length) {
    return h(
      'p',
      { class: 'tl-Empty' },
      texts.__('No source line of this run is known. It was recorded outside a cell, or without lines.')
    );
  }
  const costs = blocks.flatMap(block => block.rows.flatMap(row => row.cost ?? []));
  const longest = Math.max(0, ...costs.map(cost => cost.time_ns));
  const time = unitFor('time', longest);
  const bytes = unitFor('bytes', Math.max(0, ...costs.map(cost => cost.new_bytes)));

  const rows: { row: ILineRow; element: HTMLTableRowElement }[] = [];
  const table = h(
    'table',
    { class: 'tl-Source' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h(
          'th',
          {
            class: 'tl-num',
            scope: 'col',
            title: run.blocking
              ? texts.__('Time of the ops of the line')
              : texts.__('Ops were only queued: times of the host')
          },
          costs.length > 0 && time.name
        ),
        h(
          'th',
          { class: 'tl-num', scope: 'col', title: texts.__('Bytes of the tensors the line made') },
          costs.length > 0 && texts.__('%1 new', bytes.name)
        ),
        h('th', { scope: 'col', 'aria-label': texts.__('Marks') }),
        h('th', { class: 'tl-num', scope: 'col', 'aria-label': texts.__('Line') }),
        h(
          'th',
          { scope: 'col' },
          blocks[0]!.source.kind === 'cell' ? texts.__('Cell as it ran') : blocks[0]!.source.name
        ),
        h(
          'th',
          { class: 'tl-num', scope: 'col', title: texts.__('Ops that ran for the line') },
          texts.__('ops')
        )
      )
    ),
    blocks.map((block, i) =>
      h(
        'tbody',
        {},
        i > 0 &&
          h('tr', { class: 'tl-Source-name' }, h('th', { colspan: 6, scope: 'rowgroup' }, block.source.name)),
        block.rows.map(row => {
          const element = lineRow(row, longest, time, bytes, texts);
          element.addEventListener('click', () => selection.set({ source: row.source, line: row.line }));
          rows.push({ row, element });
          return element;
        })
      )
    )
  );

  let card: HTMLTableRowElement | null = null;
  const refresh = (): void => {
    card?.remove();
    card = null;
    const current = rows.find(({ row }) => selection.has(row)) ?? null;
    for (const { element } of rows) {
      element.tabIndex = element === (current ?? rows[0])?.element ? 0 : -1;
      element.setAttribute('aria-selected', String(element === current?.element));
    }
    if (current?.row.marks.length) {
      card = h(
        'tr',
        { class: 'tl-Source-cards' },
        h(
          'td',
          { colspan: 6 },
          current.row.marks.map(mark => markCard(mark, texts))
        )
      );
      current.element.after(card);
    }
  };
  selection.onChange(refresh);
  refresh();
  table.addEventListener('keydown', event => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const at = rows.findIndex(({ element }) => element === document.activeElement);
    const next = step === undefined || at < 0 ? undefined : rows[at + step];
    if (next) {
      event.preventDefault();
      selection.set({ source: next.row.source, line: next.row.line });
      next.element.focus();
    }
  });
  const outside = timeSentence(run, texts);
  const view = h(
    'div',
    { class: 'tl-Scroll' },
    table,
    outside && h('p', { class: 'tl-Note tl-muted' }, outside)
  );
  view.addEventListener(SHOWN, () =>
    rows
      .find(({ element }) => element.getAttribute('aria-selected') === 'true')
      ?.element.scrollIntoView({ block: 'nearest' })
  );
  return view;
}

/** From this share of a run's time on, and this time, what line times leave out is told. As `views/sentences.py` has it. */
const UNEXPLAINED = 0.1;
const UNEXPLAINED_NS = 100_000_000;

/** What the times of lines leave out, where that is much; empty otherwise. */
function timeSentence(run: IRun, texts: ITexts): string {
  const t = run.totals;
  const outside = Math.max(t.wall_ns - t.op_ns - t.build_ns - t.sync_ns - t.fallback_ns, 0);
  const much = outside + t.build_ns >= Math.max(UNEXPLAINED * t.wall_ns, UNEXPLAINED_NS);
  if (!run.blocking || !t.ops || t.flushes || !much) {
    return '';
  }
  const traced = run.graphs.length > 0 || run.mode === 'compile';
  const python = traced
    ? texts.__(
        "%1 in Python (the cell's own code, torch.compile's tracing, in a first cell loading the device)",
        quantity('time', outside)
      )
    : texts.__(
        "%1 in Python (the cell's own code, in a first cell loading the device)",
        quantity('time', outside)
      );
  return t.build_ns
    ? texts.__(
        'Line times are those of the ops: %1 compiling and %2 are not in them.',
        quantity('time', t.build_ns),
        python
      )
    : texts.__('Line times are those of the ops: %1 are not in them.', python);
}

function lineRow(
  row: ILineRow,
  longest: number,
  time: IUnit,
  bytes: IUnit,
  texts: ITexts
): HTMLTableRowElement {
  const { cost } = row;
  const shown = row.marks.slice(0, MARKS);
  const title = row.marks.map(mark => mark.title).join('; ');
  return h(
    'tr',
    { 'data-line': row.line, class: row.marks.length ? 'tl-mod-marked' : null },
    h(
      'td',
      { class: 'tl-num tl-Source-time', title: cost ? quantity('time', cost.time_ns) : null },
      cost && h('span', { class: cost.time_ns ? null : 'tl-muted' }, inUnit(cost.time_ns, time)),
      cost &&
        cost.time_ns > 0 &&
        h('i', { style: `width:${Math.max(1.5, (BAR * cost.time_ns) / longest).toFixed(1)}px` })
    ),
    h(
      'td',
      { class: 'tl-num', title: cost?.new_bytes ? texts.__('%1 B', count(cost.new_bytes)) : null },
      cost?.new_bytes ? inUnit(cost.new_bytes, bytes) : null
    ),
    h(
      'td',
      { class: 'tl-Source-marks' },
      title &&
        h(
          'span',
          { role: 'img', 'aria-label': title, title },
          shown.map(mark => h('span', { class: `tl-mod-${mark.severity}` }, icon(markIcon(mark.kind)))),
          row.marks.length > MARKS && h('small', {}, `+${row.marks.length - MARKS}`)
        )
    ),
    h('td', { class: 'tl-num tl-muted' }, row.line),
    h('td', { class: 'tl-Code' }, codeLine(row.text)),
    h('td', { class: 'tl-num tl-muted' }, cost?.ops ? count(cost.ops) : null)
  );
}

function codeLine(text: string): (HTMLElement | string)[] {
  return highlight(clip(text, 4000)).map(token =>
    token.kind === 'text' ? token.text : h('span', { class: `tl-Code-${token.kind}` }, token.text)
  );
}
