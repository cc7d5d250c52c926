/** The icons: shape says what, colour (by CSS) says how bad. 14 px, drawn in the current colour. */

import { s } from './dom.js';

interface IPath {
  d: string;
  width?: number;
  fill?: boolean;
  surface?: boolean;
}

const PATHS = {
  /** A cut bar. */
  graph_break: [
    { d: 'M2 1v4.2M2 8.8V13M12 1v4.2M12 8.8V13', width: 2 },
    { d: 'M0 8.6 3.5 5.4 7 8.6l3.5-3.2L14 8.6', width: 1.5 }
  ],
  /** Two opposed arrows. */
  sync: [{ d: 'M4 12V2M1.3 4.7 4 2l2.7 2.7M10 2v10M7.3 9.3 10 12l2.7-2.7', width: 1.7 }],
  /** A square leaving its corner. */
  fallback: [
    { d: 'M1 1h9v9H1Z', width: 1.6 },
    { d: 'M13 8v5H8M13 13 6 6', width: 1.7 }
  ],
  /** A turning arrow. */
  recompile: [
    { d: 'M12.2 7A5.2 5.2 0 1 1 10.4 3.1', width: 1.8 },
    { d: 'M10.9 0v4H7', width: 1.6 }
  ],
  /** A bar with an arrow down from it: what was deferred runs. */
  flush: [{ d: 'M2 1.5h10M7 4.5v8M4 9.5l3 3 3-3', width: 1.6 }],
  /** A filled diamond with an N. */
  nan: [
    { d: 'M7 0 14 7 7 14 0 7Z', fill: true },
    { d: 'M5 9.4V4.6l4 4.8V4.6', width: 1.3, surface: true }
  ],
  /** A cross: the cell or an operator raised. */
  error: [{ d: 'm2.5 2.5 9 9m0-9-9 9', width: 2 }],
  chevron: [{ d: 'm3.5 5.5 3.5 3.5 3.5-3.5', width: 1.5 }]
} satisfies Record<string, IPath[]>;

export type IconName = keyof typeof PATHS;

/** An icon for the eye only; the element that holds it carries the words. */
export function icon(name: IconName): SVGSVGElement {
  return s(
    'svg',
    { class: 'tl-Icon', viewBox: '0 0 14 14', width: 14, height: 14, 'aria-hidden': 'true' },
    (PATHS[name] as IPath[]).map(path =>
      s('path', {
        d: path.d,
        fill: path.fill ? 'currentColor' : 'none',
        stroke: path.surface ? 'var(--tl-surface)' : path.fill ? null : 'currentColor',
        'stroke-width': path.width
      })
    )
  );
}
