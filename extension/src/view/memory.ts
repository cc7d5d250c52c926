/** Live bytes over the ops of a run, and what was alive at the peak. */

import { liveBytes, stretches, type ILiveBytes } from '../memory.js';
import { samePlace, specText, type IRun } from '../run.js';
import { atWidth } from './atwidth.js';
import { h, s } from './dom.js';
import { clip, count, inUnit, quantity, ticks } from './format.js';
import { hatch } from './hatch.js';
import { peakTable } from './peaktable.js';
import { lineWords, placeOfOp } from './places.js';
import type { Selection } from './selection.js';
import type { ITexts } from './texts.js';

const HEIGHT = 200;
const LEFT = 58;
const RIGHT = 16;
const TOP = 26;
const BOTTOM = 24;

export function memoryView(run: IRun, selection: Selection, texts: ITexts): HTMLElement {
  const { memory } = run;
  if (!memory.peak_bytes) {
    return h(
      'p',
      { class: 'tl-Empty' },
      texts.__('No memory was recorded. Run the cell with `--trace light` to see it.')
    );
  }
  const live = liveBytes(run);
  const sentence = peakSentence(run, texts);
  const chart = h('div', { class: 'tl-Chart' });
  const stop = atWidth(chart, width =>
    chart.replaceChildren(drawing(run, live, width, sentence, selection, texts))
  );
  selection.onChange(() => stop.again());
  return h(
    'div',
    { class: 'tl-Memory' },
    h(
      'div',
      { class: 'tl-Memory-top' },
      h('h4', { class: 'tl-Say' }, sentence),
      legend(run, live, texts),
      chart
    ),
    peakTable(run, live, selection, texts)
  );
}

/** Where the peak is and what makes most of it. */
export function peakSentence(run: IRun, texts: ITexts): string {
  const { memory } = run;
  const size = `${memory.exact ? '' : '≥ '}${quantity('bytes', memory.peak_bytes)}`;
  const at = run.ops.id.indexOf(memory.peak_op);
  const line = at < 0 ? null : lineWords(run, placeOfOp(run, at), texts);
  const where =
    memory.peak_op < 0
      ? texts.__('Peak %1 at the start', size)
      : line
        ? texts.__('Peak %1 at op %2, %3', size, count(memory.peak_op), line)
        : texts.__('Peak %1 at op %2', size, count(memory.peak_op));
  const first = memory.largest[0];
  if (first && first.nbytes * 2 > memory.peak_bytes) {
    const spec = first.spec ? specText(first.spec) : texts.__('one tensor');
    return first.op
      ? texts.__('%1: over half is %2 of %3.', where, spec, clip(first.op, 60))
      : texts.__('%1: over half is %2 from before the run.', where, spec);
  }
  return `${where}.`;
}

function legend(run: IRun, live: ILiveBytes, texts: ITexts): HTMLElement {
  const key = (kind: string, words: string): HTMLElement =>
    h('span', {}, h('i', { class: `tl-Key-${kind}` }), words);
  const marked = run.memory.largest[live.marked];
  return h(
    'div',
    { class: 'tl-Legend' },
    marked && key('marked', marked.spec ? specText(marked.spec) : marked.op),
    live.layered && live.points.some(point => point.scratch > 0) && key('scratch', texts.__('Scratch')),
    key('made', texts.__('Made by the run')),
    key('before', texts.__('There before the run')),
    !live.layered && h('span', { class: 'tl-muted' }, texts.__('lives of tensors are not in this record'))
  );
}

function drawing(
  run: IRun,
  live: ILiveBytes,
  width: number,
  title: string,
  selection: Selection,
  texts: ITexts
): SVGSVGElement {
  const { points, end } = live;
  const highest = Math.max(...points.map(point => point.total), 1);
  const { steps, unit } = ticks('bytes', highest);
  const top = Math.max(highest, steps[steps.length - 1]!);
  const x = (op: number): number => LEFT + ((width - LEFT - RIGHT) * Math.max(0, op)) / end;
  const y = (nbytes: number): number => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * nbytes) / top;
  const area = (low: (i: number) => number, high: (i: number) => number): string => {
    const upper = points.map((point, i) => {
      const to = points[i + 1]?.op ?? end;
      return `${x(i === 0 ? 0 : point.op).toFixed(1)} ${y(high(i)).toFixed(1)}H${x(to).toFixed(1)}`;
    });
    const lower = points.map((_, i) => {
      const n = points.length - 1 - i;
      const to = points[n + 1]?.op ?? end;
      return `${x(to).toFixed(1)} ${y(low(n)).toFixed(1)}H${x(n === 0 ? 0 : points[n]!.op).toFixed(1)}`;
    });
    return `M${[...upper, ...lower].join('L')}Z`;
  };
  const layers: [string, (i: number) => number][] = [
    ['before', i => points[i]!.before],
    ['made', i => points[i]!.made],
    ['scratch', i => points[i]!.scratch],
    ['marked', i => points[i]!.marked]
  ];
  const marked = hatch('marked');
  let below: (i: number) => number = () => 0;
  const areas = layers.flatMap(([kind, of]) => {
    const low = below;
    const high = (i: number): number => low(i) + of(i);
    below = high;
    return points.some((_, i) => of(i) > 0)
      ? [
          s('path', {
            class: `tl-Area tl-Area-${kind}`,
            d: area(low, high),
            fill: kind === 'marked' ? marked.fill : null
          })
        ]
      : [];
  });
  const svg = s(
    'svg',
    { class: 'tl-Chart-svg', width, height: HEIGHT, role: 'img', 'aria-label': title },
    s('defs', {}, marked.pattern),
    steps.map(step => [
      s('line', { class: 'tl-Grid', x1: LEFT, x2: width - RIGHT, y1: y(step), y2: y(step) }),
      s(
        'text',
        { x: LEFT - 8, y: y(step) + 4, 'text-anchor': 'end' },
        step ? `${inUnit(step, unit)} ${unit.name}` : '0'
      )
    ]),
    areas,
    selectedBand(run, selection, x, texts),
    lineAxis(run, x, end, texts),
    peakMark(run, x, y, width, texts)
  );
  svg.addEventListener('click', event => {
    const op = Math.floor(((event.offsetX - LEFT) / (width - LEFT - RIGHT)) * end);
    const at = run.ops.id.findIndex((id, i) => id <= op && (run.ops.id[i + 1] ?? end) > op);
    if (at >= 0) {
      selection.set(placeOfOp(run, at), run.ops.id[at]!);
    }
  });
  return svg;
}

/** The ops of the selected line, as bands. */
function selectedBand(
  run: IRun,
  selection: Selection,
  x: (op: number) => number,
  texts: ITexts
): SVGElement[] {
  if (!selection.place) {
    return [];
  }
  return stretches(run)
    .filter(stretch => samePlace(stretch.place, selection.place))
    .slice(0, 200)
    .map(({ from, to }) =>
      s(
        'rect',
        {
          class: 'tl-Band',
          x: x(from),
          y: TOP,
          width: Math.max(1.5, x(to) - x(from)),
          height: HEIGHT - TOP - BOTTOM
        },
        s('title', {}, lineWords(run, selection.place, texts) ?? '')
      )
    );
}

/** Line numbers under the stretches that are wide enough. */
function lineAxis(run: IRun, x: (op: number) => number, end: number, texts: ITexts): SVGElement[] {
  const labels: SVGElement[] = [
    s('text', { x: LEFT - 8, y: HEIGHT - 8, 'text-anchor': 'end' }, texts.__('line'))
  ];
  let free = LEFT - 8;
  for (const { from, to, place } of stretches(run)) {
    const source = place && run.sources[place.source];
    const text = source?.kind === 'cell' ? String(place!.line) : '';
    const middle = (x(from) + x(Math.min(to, end))) / 2;
    const half = 4 * text.length;
    if (text && middle - half > free + 4) {
      labels.push(s('text', { x: middle, y: HEIGHT - 8, 'text-anchor': 'middle' }, text));
      free = middle + half;
    }
  }
  return labels;
}

function peakMark(
  run: IRun,
  x: (op: number) => number,
  y: (nbytes: number) => number,
  width: number,
  texts: ITexts
): SVGElement[] {
  const { memory } = run;
  const at = x(memory.peak_op);
  const words = texts.__(
    'peak %1 · op %2',
    quantity('bytes', memory.peak_bytes),
    count(Math.max(0, memory.peak_op))
  );
  const anchor = at > width / 2 ? 'end' : 'start';
  return [
    s('line', { class: 'tl-PeakLine', x1: at, x2: at, y1: TOP - 8, y2: y(0) }),
    s('path', { class: 'tl-PeakMark', d: `M${at - 5} ${TOP - 14}h10l-5 7Z` }),
    s(
      'text',
      { class: 'tl-strong', x: at + (anchor === 'end' ? -9 : 9), y: TOP - 7, 'text-anchor': anchor },
      words
    )
  ];
}
