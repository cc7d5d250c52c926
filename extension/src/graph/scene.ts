/** A graph with its layout and open boxes: where everything stands. Pure. */

import { boxSize, openExtra, shifted, type ILayout, type IPoint } from './layout.js';
import type { IFusionGraph } from './model.js';

export interface IRect {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface IScene {
  readonly graph: IFusionGraph;
  readonly rects: readonly IRect[];
  readonly links: readonly (readonly IPoint[])[];
  readonly labels: readonly IPoint[];
  readonly width: number;
  readonly height: number;
}

/** Where boxes, links and labels stand when these boxes (indices) are open. */
export function scene(graph: IFusionGraph, layout: ILayout, open: ReadonlySet<number>): IScene {
  const extra = new Map([...open].map(i => [i, openExtra(graph.boxes[i]!)]));
  const y = shifted(layout, graph, extra);
  const rects = graph.boxes.map((box, i): IRect => {
    const { width, height } = boxSize(box);
    const at = layout.boxes[i]!;
    const top = y(at.y - height / 2);
    return {
      left: at.x - width / 2,
      right: at.x + width / 2,
      top,
      bottom: top + height + (extra.get(i) ?? 0)
    };
  });
  const links = extra.size
    ? layout.links.map(points => points.map(point => ({ x: point.x, y: y(point.y) })))
    : layout.links;
  // A label follows the upper end of its link.
  const labels = extra.size ? layout.labels.map(point => ({ x: point.x, y: y(point.y) })) : layout.labels;
  return { graph, rects, links, labels, width: layout.width, height: y(layout.height) };
}

/** Index of the box at a point, or -1. */
export function boxAt(of: IScene, x: number, y: number): number {
  return of.rects.findIndex(rect => x >= rect.left && x <= rect.right && y >= rect.top && y <= rect.bottom);
}

/** The box to go to from another one: down or up along the link with most bytes, left or right to the nearest beside it. */
export function neighbour(of: IScene, from: number, way: 'up' | 'down' | 'left' | 'right'): number {
  const { links } = of.graph;
  if (way === 'up' || way === 'down') {
    const near = links.filter(link => (way === 'down' ? link.from : link.to) === from);
    const best = near.reduce<(typeof near)[number] | null>(
      (found, link) => (found && found.bytes >= link.bytes ? found : link),
      null
    );
    return best ? (way === 'down' ? best.to : best.from) : -1;
  }
  const here = of.rects[from]!;
  let found = -1;
  let nearest = Infinity;
  of.rects.forEach((rect, i) => {
    const apart = way === 'right' ? rect.left - here.right : here.left - rect.right;
    const level = rect.top < here.bottom && rect.bottom > here.top;
    if (i !== from && level && apart >= 0 && apart < nearest) {
      found = i;
      nearest = apart;
    }
  });
  return found;
}
