/** The table twin of the graph: each box a row, for readers who do not look at drawings. */

import { shortPlace, type IFusionGraph } from '../../graph/model.js';
import type { IProgram } from '../../program.js';
import { h } from '../dom.js';
import { clip, count, inUnit, unitFor } from '../format.js';
import type { ITexts } from '../texts.js';

/** Rows beyond this are said, not drawn. */
const MOST = 500;

export function kernelTable(
  program: IProgram,
  graph: IFusionGraph,
  selected: number,
  pick: (box: number) => void,
  texts: ITexts
): HTMLElement {
  const boxes = graph.boxes.flatMap((box, i) => (box.kind === 'kernel' ? [{ box, i }] : []));
  const time = unitFor('time', Math.max(0, ...boxes.map(({ box }) => box.timeS * 1e9)));
  const bytes = unitFor('bytes', Math.max(0, ...boxes.map(({ box }) => box.bytes)));
  const flops = unitFor('flops', Math.max(0, ...boxes.map(({ box }) => box.flops)));
  const timed = program.time_s > 0;
  const bound = { mxu: 'MXU', hbm: 'HBM', ovh: texts.__('on chip'), '': '' };
  const head: [string, boolean][] = [
    [texts.__('kernel'), false],
    [texts.__('ops'), false],
    [texts.__('lines'), false]
  ];
  if (timed) {
    head.push([`≥ ${time.name}`, true], [texts.__('bound by'), false]);
  }
  head.push([bytes.name, true], [flops.name, true]);
  const places = (kernels: readonly number[]): string =>
    [...new Set(kernels.flatMap(k => program.kernels[k]!.lines))].slice(0, 4).map(shortPlace).join(', ');
  return h(
    'div',
    { class: 'tl-Scroll tl-KernelTable' },
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          head.map(([title, number]) => h('th', { scope: 'col', class: number ? 'tl-num' : null }, title))
        )
      ),
      h(
        'tbody',
        {},
        boxes.slice(0, MOST).map(({ box, i }) => {
          const row = h(
            'tr',
            { 'aria-selected': String(i === selected), 'data-box': i },
            h('td', {}, clip(box.subtitle, 60)),
            h('td', {}, h('code', { title: box.title }, clip(box.title, 60))),
            h('td', { class: 'tl-muted' }, places(box.kernels)),
            timed && [
              h('td', { class: 'tl-num' }, inUnit(box.timeS * 1e9, time)),
              h('td', {}, bound[box.bound])
            ],
            h('td', { class: 'tl-num' }, inUnit(box.bytes, bytes)),
            h('td', { class: 'tl-num' }, inUnit(box.flops, flops))
          );
          row.addEventListener('click', () => pick(i));
          return row;
        })
      )
    ),
    boxes.length > MOST &&
      h('p', { class: 'tl-Empty' }, texts.__('%1 more rows are not shown.', count(boxes.length - MOST)))
  );
}
