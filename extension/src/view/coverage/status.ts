/** Statuses to look at: shape says what, colour only repeats it. */

import type { Here, IOverload } from '../../coverage.js';
import { h, s } from '../dom.js';
import type { ITexts } from '../texts.js';

export function hereWords(here: Here, texts: ITexts): string {
  return {
    native: texts.__('native'),
    decomposed: texts.__('decomposed'),
    fallback: texts.__('CPU fallback'),
    missing: texts.__('missing')
  }[here];
}

export function thereWords(there: IOverload['there'], texts: ITexts): string {
  return { own: texts.__('own kernel'), composite: texts.__('composite'), missing: texts.__('missing') }[
    there
  ];
}

export function triedWords(letter: string, texts: ITexts): string {
  return (
    {
      p: texts.__('passes'),
      d: texts.__('differs, with a declared reason'),
      f: texts.__('fails')
    }[letter] ?? texts.__('no sample')
  );
}

/** Disc, half disc, triangle, cross. */
export function hereIcon(here: Here): SVGSVGElement {
  const parts = {
    native: [s('circle', { cx: 7, cy: 7, r: 5.5, fill: 'currentColor' })],
    decomposed: [
      s('circle', { cx: 7, cy: 7, r: 4.8, fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5 }),
      s('path', { d: 'M7 2.2a4.8 4.8 0 0 0 0 9.6Z', fill: 'currentColor' })
    ],
    fallback: [
      s('path', { d: 'M7 1.5 13 12.5H1Z', fill: 'none', stroke: 'currentColor', 'stroke-width': 1.7 })
    ],
    missing: [s('path', { d: 'm2.5 2.5 9 9m0-9-9 9', stroke: 'currentColor', 'stroke-width': 2 })]
  }[here];
  return s(
    'svg',
    {
      class: `tl-Icon tl-Here tl-mod-${here}`,
      viewBox: '0 0 14 14',
      width: 14,
      height: 14,
      'aria-hidden': 'true'
    },
    parts
  );
}

/** One small box for each letter: filled, half filled, crossed, empty; the words stand in the title and for screen readers. */
export function triedBoxes(
  letters: string,
  names: readonly string[],
  label: string,
  texts: ITexts
): HTMLElement {
  const words = names.map((name, i) => `${name} ${triedWords(letters[i]!, texts)}`).join(', ');
  return h(
    'span',
    { class: 'tl-Tried', title: words, role: 'img', 'aria-label': `${label}: ${words}` },
    [...letters].map(letter => h('i', { class: `tl-mod-${letter === '-' ? 'none' : letter}` }))
  );
}
