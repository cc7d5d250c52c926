/** Fills that can be told apart without colour: hatched and dotted patterns for SVG. */

import { s } from './dom.js';

/** `marked` the tensor that is meant, `hbm` bound by memory, `ovh` bound by overhead, `host` runs on the host. */
export type HatchKind = 'marked' | 'hbm' | 'ovh' | 'host';

let made = 0;

/** A pattern to put into an SVG, and the value of `fill` that refers to it. Its id is its own: a page has many charts. */
export function hatch(kind: HatchKind): { readonly pattern: SVGPatternElement; readonly fill: string } {
  made += 1;
  const id = `tl-hatch-${kind}-${made}`;
  const size = kind === 'ovh' ? 4 : 6;
  const pattern = s(
    'pattern',
    {
      id,
      width: size,
      height: size,
      patternUnits: 'userSpaceOnUse',
      patternTransform: kind === 'ovh' ? null : 'rotate(45)'
    },
    s('rect', { class: `tl-Hatch-ground-${kind}`, width: size, height: size }),
    kind === 'ovh'
      ? s('circle', { class: 'tl-Hatch-ovh', cx: 2, cy: 2, r: 0.9 })
      : s('rect', { class: `tl-Hatch-${kind}`, width: kind === 'host' ? 1.6 : 2.8, height: size })
  );
  return { pattern, fill: `url(#${id})` };
}
