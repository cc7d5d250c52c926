/** What stands above a fusion graph (its target in large type, its figures) and below it (what colours and widths mean). */

import type { IFusionGraph } from '../../graph/model.js';
import type { IProgram } from '../../program.js';
import { h, s } from '../dom.js';
import { count, quantity, ratio } from '../format.js';
import { hatch } from '../hatch.js';
import type { ITexts } from '../texts.js';
import { TINTS, type ColourBy } from './paint.js';

/** How a target is called in large type: `TPU v6e`, `XLA:CPU`. */
export function targetTitle(program: IProgram): string {
  const { target } = program;
  const short = target.title.replace(/ ?\(.*\)$/, '').replace(/,.*$/, '');
  return short || target.name;
}

/** The name on the switch; the mode too where one target is there in two. */
export function programLabel(program: IProgram, all: readonly IProgram[]): string {
  const { name } = program.target;
  const label = name === 'cpu' ? 'XLA:CPU' : name;
  const twins = all.filter(other => other.target.name === name);
  return new Set(twins.map(twin => twin.mode)).size > 1 ? `${label} ${program.mode}` : label;
}

export function graphHead(program: IProgram, all: readonly IProgram[], texts: ITexts): HTMLElement[] {
  const { target, memory } = program;
  const hbm = memory.spaces.find(space => space.space === 'HBM' || space.space === 'RAM');
  const figure = (label: (string | Node)[], value: string, note = ''): HTMLElement =>
    h(
      'div',
      { class: 'tl-Figure' },
      h('div', { class: 'tl-Figure-label' }, label),
      h('div', { class: 'tl-Figure-value' }, value, note && h('small', {}, ` ${note}`))
    );
  const predicted = (): HTMLElement => h('span', { class: 'tl-Predicted' }, texts.__('predicted'));
  const words = program.mode === 'eager' ? texts.__('op by op for') : texts.__('compiled for');
  const twin = all.find(other => other.target.name === target.name && other.mode !== program.mode);
  return [
    h(
      'div',
      { class: 'tl-Target' },
      h('span', { class: 'tl-muted' }, [program.name, words].filter(Boolean).join(' · ')),
      h('strong', {}, targetTitle(program))
    ),
    ...(program.outcome === 'ok'
      ? []
      : [
          h('p', { class: 'tl-Error', role: 'alert' }, `${program.outcome}: ${program.message.slice(0, 400)}`)
        ]),
    ...(program.time_s > 0
      ? [
          figure(
            [texts.__('Lower bound'), predicted()],
            `≥ ${quantity('time', program.time_s * 1e9)}`,
            twin && twin.time_s > 0 ? against(program, twin, texts) : ''
          )
        ]
      : []),
    figure([texts.__('Ops → kernels')], `${count(program.ops.length)} → ${count(program.kernels.length)}`),
    ...(hbm
      ? [
          figure(
            [texts.__('Peak memory'), predicted()],
            quantity('bytes', hbm.peak),
            hbm.capacity ? texts.__('of %1', quantity('bytes', hbm.capacity)) : ''
          )
        ]
      : [])
  ];
}

/** Against the same program on the same target in the other mode: what fusion buys. */
function against(program: IProgram, twin: IProgram, texts: ITexts): string {
  const [slow, fast] = program.time_s > twin.time_s ? [program, twin] : [twin, program];
  const times = ratio(slow.time_s / fast.time_s);
  return program === fast
    ? texts.__('%1 is ≥ %2, %3 as long', twin.mode, quantity('time', twin.time_s * 1e9), times)
    : texts.__('%1 as long as %2', times, twin.mode);
}

export function graphLegend(graph: IFusionGraph, colour: ColourBy, texts: ITexts): HTMLElement[] {
  const swatch = (fill: string | null, kind: string, defs: SVGElement | null = null): SVGElement =>
    s(
      'svg',
      { width: 18, height: 12, 'aria-hidden': 'true' },
      defs && s('defs', {}, defs),
      s('rect', { class: kind, width: 18, height: 12, rx: 1, fill })
    );
  const key = (picture: Element, words: string): HTMLElement => h('span', {}, picture, words);
  const most = Math.max(0, ...graph.links.map(link => link.bytes));
  const width = h(
    'span',
    {},
    s(
      'svg',
      { width: 34, height: 12, 'aria-hidden': 'true' },
      s('path', { class: 'tl-Legend-link', d: 'M0 6h14', 'stroke-width': 1.25 }),
      s('path', { class: 'tl-Legend-link', d: 'M18 6h14', 'stroke-width': 9 })
    ),
    texts.__('up to %1', quantity('bytes', most))
  );
  const keys: HTMLElement[] = [];
  if (colour === 'bound') {
    const [hbm, ovh] = [hatch('hbm'), hatch('ovh')];
    keys.push(
      h('b', {}, texts.__('Bound by')),
      key(swatch(null, 'tl-Bound-mxu'), texts.__('MXU compute')),
      key(swatch(hbm.fill, '', hbm.pattern), texts.__('HBM bandwidth')),
      key(swatch(ovh.fill, '', ovh.pattern), texts.__('on chip'))
    );
  } else if (colour !== 'none') {
    keys.push(
      h('b', {}, colour === 'time' ? texts.__('Time') : texts.__('Bytes')),
      h(
        'span',
        {},
        texts.__('little '),
        Array.from({ length: TINTS }, (_, i) => swatch(null, `tl-Tint-${i + 1}`)),
        texts.__(' much')
      )
    );
  }
  return most ? [...keys, width] : keys;
}
