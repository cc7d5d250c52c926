/** The memory of a cell in several modes, one line each, over the ops from first to last: each line ends in its name. */

import type { IComparison, IModeResult } from '../run.js';
import { atWidth } from './atwidth.js';
import { h, s } from './dom.js';
import { inUnit, quantity, ticks } from './format.js';
import type { ITexts } from './texts.js';

const HEIGHT = 150;
const LEFT = 58;
const RIGHT = 120;
const TOP = 10;
const BOTTOM = 22;
/** Names at the end of lines stand at least this far apart. */
const APART = 13;
const DASHES = ['', '6 3', '2 3', '8 3 2 3', '1 4'];

/** The chart with its sentence; null where fewer than two modes have a curve. */
export function memoryCurves(comparison: IComparison, texts: ITexts): HTMLElement | null {
  const modes = comparison.modes.filter(mode => !mode.failure && mode.curve.length > 0);
  if (modes.length < 2) {
    return null;
  }
  const sentence = peaks(modes, comparison.baseline, texts);
  const chart = h('div', { class: 'tl-Chart tl-mod-short' });
  atWidth(chart, width => chart.replaceChildren(drawing(modes, comparison.baseline, width, sentence, texts)));
  return h('div', { class: 'tl-Compare-part' }, h('h4', {}, sentence), chart);
}

/** `Peak memory: 91.4 MB in eager, 91.2 MB in compile.` */
function peaks(modes: readonly IModeResult[], baseline: string, texts: ITexts): string {
  const size = (mode: IModeResult): string =>
    `${mode.peak_exact ? '' : '≥ '}${quantity('bytes', mode.peak_bytes)}`;
  const order = [...modes].sort((a, b) => Number(b.mode === baseline) - Number(a.mode === baseline));
  return texts.__(
    'Peak memory: %1.',
    order.map(mode => texts.__('%1 in %2', size(mode), mode.mode)).join(', ')
  );
}

function drawing(
  modes: readonly IModeResult[],
  baseline: string,
  width: number,
  title: string,
  texts: ITexts
): SVGSVGElement {
  const highest = Math.max(1, ...modes.flatMap(mode => mode.curve));
  const { steps, unit } = ticks('bytes', highest);
  const top = Math.max(highest, steps[steps.length - 1]!);
  const end = width - RIGHT;
  const y = (nbytes: number): number => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * nbytes) / top;
  const path = (curve: readonly number[]): string => {
    const at = (i: number): string => (LEFT + ((end - LEFT) * i) / curve.length).toFixed(1);
    return curve.map((nbytes, i) => `${i ? 'L' : 'M'}${at(i)} ${y(nbytes).toFixed(1)}H${at(i + 1)}`).join('');
  };
  const places = spread(modes.map(mode => y(mode.curve[mode.curve.length - 1]!)));
  return s(
    'svg',
    { class: 'tl-Chart-svg tl-Curves', width, height: HEIGHT, role: 'img', 'aria-label': title },
    steps.map(step => [
      s('line', { class: 'tl-Grid', x1: LEFT, x2: end, y1: y(step), y2: y(step) }),
      s(
        'text',
        { x: LEFT - 8, y: y(step) + 4, 'text-anchor': 'end' },
        step ? `${inUnit(step, unit)} ${unit.name}` : '0'
      )
    ]),
    modes.map((mode, i) => {
      const chosen = mode.mode === baseline;
      return [
        s(
          'path',
          {
            class: chosen ? 'tl-Curve tl-mod-chosen' : 'tl-Curve',
            d: path(mode.curve),
            'stroke-dasharray': DASHES[i % DASHES.length] || null
          },
          s('title', {}, `${mode.mode}: ${quantity('bytes', mode.peak_bytes)}`)
        ),
        s(
          'text',
          { class: chosen ? 'tl-mod-chosen' : null, x: end + 6, y: places[i]! + 4 },
          `${mode.mode} ${quantity('bytes', mode.peak_bytes)}`
        )
      ];
    }),
    s('text', { x: LEFT, y: HEIGHT - 6 }, texts.__('first op')),
    s('text', { x: end, y: HEIGHT - 6, 'text-anchor': 'end' }, texts.__('last op'))
  );
}

/** Heights moved apart so that names do not lie on each other; they stay in the picture. */
function spread(wanted: readonly number[]): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[b]! - wanted[a]!);
  const found = [...wanted];
  let free = HEIGHT - BOTTOM;
  for (const i of order) {
    found[i] = Math.min(found[i]!, free);
    free = found[i]! - APART;
  }
  return found;
}
