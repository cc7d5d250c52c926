/** The detailed drawing of a fusion graph: SVG for the boxes and links in sight. */

import { LABEL_HEIGHT, labelWidth, ROW_HEIGHT, BOX_HEIGHT, type IPoint } from '../../graph/layout.js';
import { shortPlace, type IBox, type ILink } from '../../graph/model.js';
import type { IRect, IScene } from '../../graph/scene.js';
import { s } from '../dom.js';
import { quantity } from '../format.js';
import { hatch } from '../hatch.js';
import {
  boxFigure,
  fitted,
  largest,
  linkLabel,
  linkWidth,
  shareOf,
  tint,
  widthOf,
  type ColourBy
} from './paint.js';

const BAND = 8;

export interface ILook {
  readonly colour: ColourBy;
  readonly open: ReadonlySet<number>;
  /** Index of the selected box or link; -1: none. */
  readonly box: number;
  readonly link: number;
  readonly found: ReadonlySet<number>;
}

/** The fonts of the drawing as CSS shorthands, to measure with. */
interface IFonts {
  readonly title: string;
  readonly note: string;
  readonly op: string;
}

export interface IFills {
  readonly defs: SVGElement;
  readonly hbm: string;
  readonly ovh: string;
  readonly font: IFonts;
}

/** Patterns and fonts for one SVG. `host` is an element of the view, where the theme's fonts hold. */
export function fills(host: Element): IFills {
  const [hbm, ovh] = [hatch('hbm'), hatch('ovh')];
  const style = getComputedStyle(host);
  const family = style.fontFamily || 'sans-serif';
  const mono = style.getPropertyValue('--tl-mono') || 'monospace';
  return {
    defs: s('defs', {}, hbm.pattern, ovh.pattern),
    hbm: hbm.fill,
    ovh: ovh.fill,
    font: { title: `600 12.5px ${family}`, note: `11px ${family}`, op: `11.5px ${mono}` }
  };
}

/** What touches a part of the drawing: links below, boxes above. */
export function drawPart(scene: IScene, part: IRect, look: ILook, fill: IFills): SVGGElement {
  const { graph } = scene;
  const most = largest(graph);
  const mostBytes = Math.max(1, ...graph.links.map(link => link.bytes));
  const touches = (rect: IRect): boolean =>
    rect.right >= part.left && rect.left <= part.right && rect.bottom >= part.top && rect.top <= part.bottom;
  const links = graph.links.flatMap((link, i) =>
    touches(boundsOf(scene.links[i]!)) ? [{ link, i, points: scene.links[i]! }] : []
  );
  return s(
    'g',
    {},
    links.map(({ link, i, points }) => line(points, linkWidth(link, mostBytes), i === look.link)),
    links.map(({ link, i }) => pill(scene, link, i, i === look.link)),
    graph.boxes.flatMap((box, i) =>
      touches(scene.rects[i]!) ? [drawBox(box, i, scene.rects[i]!, look, most, fill)] : []
    )
  );
}

export function boundsOf(points: readonly IPoint[]): IRect {
  const xs = points.map(point => point.x);
  const ys = points.map(point => point.y);
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
}

function line(points: readonly IPoint[], width: number, selected: boolean): SVGElement {
  const at = (point: IPoint): string => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
  const [first, ...rest] = points;
  const last = points[points.length - 1];
  if (!first || !last) {
    return s('g');
  }
  const size = 4 + width / 2;
  return s(
    'g',
    { class: selected ? 'tl-Link tl-mod-selected' : 'tl-Link' },
    s('path', { d: `M${at(first)}C${rest.map(at).join(' ')}`, 'stroke-width': width.toFixed(2) }),
    s('path', { class: 'tl-Arrow', d: `M${last.x - size} ${last.y - size - 1}h${2 * size}L${at(last)}Z` })
  );
}

function pill(scene: IScene, link: ILink, index: number, selected: boolean): SVGElement | null {
  const { boxes } = scene.graph;
  if (boxes[link.from]!.kind !== 'kernel' || boxes[link.to]!.kind !== 'kernel') {
    return null;
  }
  const text = linkLabel(link);
  const at = scene.labels[index]!;
  const width = labelWidth(text);
  return s(
    'g',
    {
      class: `tl-Pill${selected ? ' tl-mod-selected' : ''}${link.why.length ? ' tl-mod-why' : ''}`,
      'data-link': index
    },
    s('title', {}, `${quantity('bytes', link.bytes)}: ${boxes[link.from]!.title} → ${boxes[link.to]!.title}`),
    s('rect', {
      x: at.x - width / 2,
      y: at.y - LABEL_HEIGHT / 2,
      width,
      height: LABEL_HEIGHT,
      rx: LABEL_HEIGHT / 2
    }),
    s('text', { x: at.x, y: at.y + 4, 'text-anchor': 'middle' }, text)
  );
}

function drawBox(
  box: IBox,
  index: number,
  rect: IRect,
  look: ILook,
  most: { readonly time: number; readonly bytes: number },
  fill: IFills
): SVGElement {
  const { left, top } = rect;
  const { font } = fill;
  const width = rect.right - rect.left;
  const height = rect.bottom - rect.top;
  const state = [
    'tl-Box',
    index === look.box ? 'tl-mod-selected' : '',
    look.found.has(index) ? 'tl-mod-found' : ''
  ].join(' ');
  if (box.kind !== 'kernel') {
    return s(
      'g',
      { class: `${state} tl-mod-end`, 'data-box': index },
      s('title', {}, `${box.title}: ${quantity('bytes', box.bytes)}`),
      s('rect', { class: 'tl-Box-frame', x: left, y: top, width, height, rx: height / 2 }),
      s(
        'text',
        { x: left + width / 2, y: top + 15, 'text-anchor': 'middle' },
        `${fitted(box.title, width - 90, font.note)} · ${quantity('bytes', box.bytes)}`
      )
    );
  }
  const share = shareOf(box, look.colour, most);
  const figure = boxFigure(box);
  const bound = { mxu: 'MXU', hbm: 'HBM', ovh: 'on chip', '': '' }[box.bound];
  const open = look.open.has(index);
  return s(
    'g',
    { class: state, 'data-box': index },
    s('title', {}, `${box.title}\n${box.subtitle}\n${figure}`),
    s('rect', { class: 'tl-Box-frame', x: left, y: top, width, height, rx: 4 }),
    band(box, look.colour, share, left, top, height, fill),
    s('path', {
      class: 'tl-Box-caret',
      d: open ? `M${left + 15} ${top + 12}h8l-4 6Z` : `M${left + 17} ${top + 10}l6 4l-6 4Z`
    }),
    s(
      'text',
      { class: 'tl-Box-title', x: left + 28, y: top + 18 },
      fitted(box.title, width - 46 - widthOf(figure, font.title), font.title)
    ),
    s('text', { class: 'tl-Box-figure', x: rect.right - 8, y: top + 18, 'text-anchor': 'end' }, figure),
    s(
      'text',
      { class: 'tl-Box-note', x: left + 28, y: top + 34 },
      fitted(box.subtitle, width - 46 - widthOf(bound, font.note), font.note)
    ),
    s('text', { class: 'tl-Box-note', x: rect.right - 8, y: top + 34, 'text-anchor': 'end' }, bound),
    open && rows(box, left, top, width, font),
    share > 0 &&
      s('rect', {
        class: `tl-Box-share ${colourClass(box, look.colour, share)}`,
        x: left + BAND,
        y: rect.bottom - 3,
        width: Math.max(2, (width - BAND - 1) * share),
        height: 2.5
      })
  );
}

/** The left edge: bound by what (solid, hatched, dotted), or how much (five tints). */
function band(
  box: IBox,
  colour: ColourBy,
  share: number,
  left: number,
  top: number,
  height: number,
  fill: IFills
): SVGElement | null {
  if (colour === 'none' || (colour === 'bound' && !box.bound)) {
    return null;
  }
  const pattern =
    colour === 'bound' && box.bound !== 'mxu' ? (box.bound === 'hbm' ? fill.hbm : fill.ovh) : null;
  return s('rect', {
    class: `tl-Box-band ${pattern ? '' : colourClass(box, colour, share)}`,
    x: left + 1,
    y: top + 1,
    width: BAND - 1,
    height: height - 2,
    fill: pattern
  });
}

export function colourClass(box: IBox, colour: ColourBy, share: number): string {
  if (colour === 'time' || colour === 'bytes') {
    return `tl-Tint-${tint(share)}`;
  }
  return box.bound ? `tl-Bound-${box.bound}` : 'tl-Bound-none';
}

function rows(box: IBox, left: number, top: number, width: number, font: IFonts): SVGElement[] {
  return box.rows.map((row, i) => {
    const y = top + BOX_HEIGHT + i * ROW_HEIGHT;
    const place = fitted(shortPlace(row.place), 100, font.note);
    return s(
      'g',
      { class: 'tl-Box-row', 'data-op': row.op },
      s('title', {}, `${row.op} ${row.place}`),
      s('rect', { x: left + 17, y, width: width - 28, height: ROW_HEIGHT - 4, rx: 2 }),
      s(
        'text',
        { class: 'tl-Box-op', x: left + 24, y: y + 13 },
        fitted(row.name, width - 50 - widthOf(place, font.note), font.op)
      ),
      s('text', { class: 'tl-Box-note', x: left + width - 17, y: y + 13, 'text-anchor': 'end' }, place)
    );
  });
}
