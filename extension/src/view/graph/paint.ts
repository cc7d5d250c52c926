/** How boxes and links are coloured and what they say: the same for the detailed drawing, the coarse one and the legend. */

import type { IBox, IFusionGraph, ILink } from '../../graph/model.js';
import { quantity } from '../format.js';

export type ColourBy = 'bound' | 'time' | 'bytes' | 'none';

/** What the share line and the tint of a box are a share of: 0 to 1. */
export function shareOf(
  box: IBox,
  by: ColourBy,
  most: { readonly time: number; readonly bytes: number }
): number {
  const timed = by !== 'bytes' && most.time > 0;
  return timed ? box.timeS / most.time : most.bytes > 0 ? box.bytes / most.bytes : 0;
}

export function largest(graph: IFusionGraph): { readonly time: number; readonly bytes: number } {
  const kernels = graph.boxes.filter(box => box.kind === 'kernel');
  return {
    time: Math.max(0, ...kernels.map(box => box.timeS)),
    bytes: Math.max(0, ...kernels.map(box => box.bytes))
  };
}

/** Width of a link in px: the square root of its bytes, 1.25 to 9. */
export function linkWidth(link: ILink, most: number): number {
  return most > 0 ? Math.max(1.25, 9 * Math.sqrt(link.bytes / most)) : 1.25;
}

/** The pill on a link: its bytes, and the question where there is an answer. */
export function linkLabel(link: ILink): string {
  const bytes = quantity('bytes', link.bytes);
  return link.why.length ? `${bytes} · why two?` : bytes;
}

/** The figure at the right of a box: the lower bound of its time, or its bytes where no time is known. */
export function boxFigure(box: IBox): string {
  return box.timeS > 0 ? `≥ ${quantity('time', box.timeS * 1e9)}` : quantity('bytes', box.bytes);
}

let pencil: CanvasRenderingContext2D | null = null;

/** Text cut to a width in px, as wide as it is in a font (CSS shorthand). The cut shows. */
export function fitted(text: string, width: number, font: string): string {
  pencil ??= document.createElement('canvas').getContext('2d');
  const measure = (part: string): number => pencil?.measureText(part).width ?? 7 * part.length;
  if (pencil) {
    pencil.font = font;
  }
  const short = text.slice(0, 200);
  if (short === text && measure(text) <= width) {
    return text;
  }
  let [low, high] = [1, short.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${short.slice(0, middle)}…`) <= width) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return `${short.slice(0, low)}…`;
}

/** The width of a text in px. */
export function widthOf(text: string, font: string): number {
  pencil ??= document.createElement('canvas').getContext('2d');
  if (pencil) {
    pencil.font = font;
  }
  return pencil?.measureText(text).width ?? 7 * text.length;
}

/** Steps of one hue, from little to much. */
export const TINTS = 5;

export const tint = (share: number): number => Math.min(TINTS, 1 + Math.floor(TINTS * share));
