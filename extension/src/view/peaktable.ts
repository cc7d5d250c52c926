/** What was alive at the peak: by tensor, by line, by module. */

import { peakRows, type ILiveBytes, type IPeakRow, type PeakGrouping } from '../memory.js';
import type { IRun } from '../run.js';
import { h, s } from './dom.js';
import { clip, count, inUnit, quantity, unitFor } from './format.js';
import { lineWords } from './places.js';
import { segments } from './segments.js';
import type { Selection } from './selection.js';
import type { ITexts } from './texts.js';

/** Width of the bar of a life in px. */
const LIFE = 120;

export function peakTable(run: IRun, live: ILiveBytes, selection: Selection, texts: ITexts): HTMLElement {
  let grouping: PeakGrouping = 'tensor';
  const body = h('div', { class: 'tl-Scroll' });
  const total = run.memory.lines.reduce((sum, line) => sum + line.tensors, 0) || run.memory.largest.length;
  const choices: [PeakGrouping, string][] = [
    ['tensor', texts.__('Tensor')],
    ['line', texts.__('Line')]
  ];
  if (live.layered && run.modules.length) {
    choices.push(['module', texts.__('Module')]);
  }
  const draw = (): void => {
    body.replaceChildren(tableOf(run, peakRows(run, grouping, live.end), grouping, live, selection, texts));
  };
  selection.onChange(draw);
  draw();
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'tl-Bar tl-mod-ruled' },
      h('b', {}, texts.__('Live at the peak')),
      h(
        'span',
        { class: 'tl-muted' },
        texts._n('%1 tensor, %2', '%1 tensors, %2', total, quantity('bytes', run.memory.peak_bytes))
      ),
      h('span', { class: 'tl-Space' }),
      segments(texts.__('Group by'), choices, grouping, chosen => {
        grouping = chosen;
        draw();
      })
    ),
    body
  );
}

function tableOf(
  run: IRun,
  rows: readonly IPeakRow[],
  grouping: PeakGrouping,
  live: ILiveBytes,
  selection: Selection,
  texts: ITexts
): HTMLElement {
  const unit = unitFor('bytes', Math.max(0, ...rows.map(row => row.nbytes)));
  const peak = run.memory.peak_bytes;
  const tensor = grouping === 'tensor';
  const head: [string, boolean][] = tensor
    ? [
        [texts.__('tensor'), false],
        [texts.__('made by'), false],
        [texts.__('line'), true]
      ]
    : [
        [grouping === 'line' ? texts.__('line') : texts.__('module'), false],
        [texts.__('tensors'), true]
      ];
  head.push([unit.name, true], [texts.__('share of peak'), false]);
  if (tensor && live.layered) {
    head.push([texts.__('lives, op 0 to %1', count(live.end)), false]);
  }
  const row = (of: IPeakRow, index: number): HTMLElement => {
    const share = peak ? of.nbytes / peak : 0;
    const line = lineWords(run, of.place, texts);
    const selected =
      selection.tensor !== null
        ? tensor && selection.tensor === of.storage
        : of.place !== null && selection.has(of.place);
    const cells = tensor
      ? [
          h('td', {}, h('code', { title: of.label }, clip(of.label, 80))),
          h(
            'td',
            {},
            of.madeBy
              ? h('code', {}, clip(of.madeBy, 80))
              : h('span', { class: 'tl-muted' }, texts.__('before the run'))
          ),
          h('td', { class: 'tl-num' }, line?.replace(/^line /, ''))
        ]
      : [
          h(
            'td',
            {},
            grouping === 'line' ? lineText(run, of, texts) : of.label || texts.__('outside any module')
          ),
          h('td', { class: 'tl-num' }, count(of.tensors))
        ];
    const element = h(
      'tr',
      { 'aria-selected': String(selected), tabindex: index === 0 ? 0 : -1 },
      cells,
      h(
        'td',
        { class: 'tl-num', title: texts.__('%1 B', count(of.nbytes)) },
        h('b', {}, inUnit(of.nbytes, unit))
      ),
      h(
        'td',
        { class: 'tl-Share' },
        h('i', {
          class: tensor && index === live.marked ? 'tl-mod-marked' : null,
          style: `width:${Math.max(1.5, 120 * share).toFixed(1)}px`
        }),
        h('small', {}, `${share >= 0.0995 ? Math.round(100 * share) : (100 * share).toFixed(1)} %`)
      ),
      tensor && live.layered && h('td', {}, of.life && lifeBar(of.life, live.end, run.memory.peak_op, texts))
    );
    element.addEventListener('click', () =>
      selection.set(of.place, tensor ? of.op : null, tensor && of.storage >= 0 ? of.storage : null)
    );
    return element;
  };
  return h(
    'table',
    { class: 'tl-Peak' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        head.map(([title, number]) => h('th', { scope: 'col', class: number ? 'tl-num' : null }, title))
      )
    ),
    h('tbody', {}, rows.map(row))
  );
}

function lineText(run: IRun, row: IPeakRow, texts: ITexts): (HTMLElement | string)[] {
  const words = lineWords(run, row.place, texts);
  if (!words) {
    return [h('span', { class: 'tl-muted' }, texts.__('before the run, or an unknown line'))];
  }
  const text = run.sources[row.place!.source]!.lines.find(line => line.number === row.place!.line)?.text;
  return [`${words}  `, h('code', { class: 'tl-muted' }, clip(text?.trim() ?? '', 100))];
}

/** A thin line over all ops, thick where the tensor lived, with a tick at the peak. */
function lifeBar(life: readonly [number, number], end: number, peak: number, texts: ITexts): SVGElement {
  const x = (op: number): number => (LIFE * Math.max(0, Math.min(op, end))) / end;
  return s(
    'svg',
    {
      class: 'tl-Life',
      width: LIFE + 2,
      height: 12,
      role: 'img',
      'aria-label': texts.__('lives from op %1 to %2', count(life[0]), count(life[1]))
    },
    s('line', { class: 'tl-Grid', x1: 0, x2: LIFE, y1: 6, y2: 6 }),
    s('rect', { x: x(life[0]), y: 3, width: Math.max(2, x(life[1]) - x(life[0])), height: 6 }),
    s('line', { class: 'tl-PeakLine tl-mod-solid', x1: x(peak), x2: x(peak), y1: 0, y2: 12 })
  );
}
