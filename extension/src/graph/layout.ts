/**
 * Places boxes and routes links: by Graphviz's dot where it can be had, else by a quick layered layout of our own. Boxes are
 * laid out closed; an open box pushes down what stands below it, so nothing else moves. Pure functions.
 */

import type { IBox, IFusionGraph, ILink } from './model.js';

export const BOX_WIDTH = 236;
export const BOX_HEIGHT = 44;
export const PILL_HEIGHT = 22;
export const ROW_HEIGHT = 22;
/** Height of the label between two boxes. */
export const LABEL_HEIGHT = 20;
const MARGIN = 24;
/** Links with more company than this get their label where the line is, without room of its own. */
const MOST_LABELS = 250;

export interface IPoint {
  readonly x: number;
  readonly y: number;
}

/** Centres of boxes and control points of cubic splines, in px; x to the right, y down. */
export interface ILayout {
  readonly boxes: readonly IPoint[];
  readonly links: readonly (readonly IPoint[])[];
  readonly labels: readonly IPoint[];
  readonly width: number;
  readonly height: number;
  /** Who made it. */
  readonly by: 'dot' | 'quick';
}

export function boxSize(box: IBox): { readonly width: number; readonly height: number } {
  return box.kind === 'kernel'
    ? { width: BOX_WIDTH, height: BOX_HEIGHT }
    : { width: Math.min(BOX_WIDTH, 40 + 6.6 * (box.title.length + 9)), height: PILL_HEIGHT };
}

/** Width of the pill on a link. */
export const labelWidth = (text: string): number => 20 + 6.4 * text.length;

/** The graph as DOT for layout only: sizes, no words of the program. */
export function layoutDot(graph: IFusionGraph, labels: readonly string[]): string {
  const inch = (px: number): string => (px / 72).toFixed(3);
  const roomy = graph.links.length <= MOST_LABELS;
  const lines = [
    'digraph {',
    `graph [rankdir=TB, nodesep=0.35, ranksep=${roomy ? '0.25' : '0.5'}, splines=true, nslimit=1, nslimit1=1, mclimit=0.1]`,
    'node [shape=box, fixedsize=true, label=""]',
    'edge [dir=none]'
  ];
  graph.boxes.forEach((box, i) => {
    const { width, height } = boxSize(box);
    lines.push(`${i} [width=${inch(width)}, height=${inch(height)}]`);
  });
  graph.links.forEach((link, i) => {
    const pill =
      roomy &&
      labels[i] &&
      graph.boxes[link.from]!.kind === 'kernel' &&
      graph.boxes[link.to]!.kind === 'kernel';
    const label = pill
      ? `, label=<<TABLE BORDER="0" FIXEDSIZE="TRUE" WIDTH="${Math.ceil(labelWidth(labels[i]!))}" HEIGHT="${LABEL_HEIGHT}"><TR><TD></TD></TR></TABLE>>`
      : '';
    // Earlier boxes run first: what runs first stands higher.
    const back = link.from > link.to && graph.boxes[link.from]!.kind === 'kernel' ? ', constraint=false' : '';
    lines.push(`${link.from} -> ${link.to} [id=${i}, weight=${weight(link, graph)}${label}${back}]`);
  });
  return `${lines.join('\n')}\n}`;
}

/** Links to the next kernel are kept straight, and heavy ones short. */
function weight(link: ILink, graph: IFusionGraph): number {
  const pill = graph.boxes[link.from]!.kind !== 'kernel' || graph.boxes[link.to]!.kind !== 'kernel';
  return pill ? 1 : (link.to === link.from + 1 ? 8 : 2) + Math.round(Math.log10(1 + link.bytes / 1e4));
}

interface IDotOutput {
  readonly bb?: string;
  readonly objects?: readonly { readonly name: string; readonly pos?: string }[];
  readonly edges?: readonly { readonly id?: string; readonly pos?: string; readonly lp?: string }[];
}

/** Reads dot's `json0` output for a graph written by `layoutDot`. Throws if a box has no place. */
export function readDot(text: string, graph: IFusionGraph, words: readonly string[]): ILayout {
  const output = JSON.parse(text) as IDotOutput;
  const [, , width, height] = (output.bb ?? '0,0,0,0').split(',').map(Number);
  const place = (pair: string): IPoint => {
    const [x, y] = pair.split(',').map(Number);
    return { x: x! + MARGIN, y: height! - y! + MARGIN };
  };
  const boxes = graph.boxes.map((_, i) => {
    const pos = output.objects?.find(object => object.name === String(i))?.pos ?? output.objects?.[i]?.pos;
    if (!pos) {
      throw new Error(`dot gave box ${i} no place`);
    }
    return place(pos);
  });
  const links: IPoint[][] = graph.links.map(() => []);
  const labels: IPoint[] = graph.links.map(() => ({ x: 0, y: 0 }));
  for (const edge of output.edges ?? []) {
    const i = Number(edge.id);
    if (!edge.pos || !links[i]) {
      continue;
    }
    // `e,x,y` and `s,x,y` mark the ends of arrows; without them the points are the spline.
    links[i] = edge.pos
      .split(' ')
      .filter(pair => !/^[es],/.test(pair))
      .map(place);
    // dot keeps the room of a label to the right of its line; the pill sits on the line.
    const room = edge.lp ? place(edge.lp) : null;
    labels[i] = room ? { x: room.x - labelWidth(words[i] ?? '') / 2, y: room.y } : middle(links[i]);
  }
  return { boxes, links, labels, width: width! + 2 * MARGIN, height: height! + 2 * MARGIN, by: 'dot' };
}

/** Boxes in layers by the longest way to them, ordered by where their neighbours are; links as plain curves. */
export function quickLayout(graph: IFusionGraph): ILayout {
  const { boxes, links } = graph;
  const order = boxes.map((_, i) => i);
  const rankOf = new Array<number>(boxes.length).fill(0);
  const inputs: number[][] = boxes.map(() => []);
  const outputs: number[][] = boxes.map(() => []);
  // Kernels stand in the order they run, so links that go back would make a circle; they do not count.
  const key = (i: number): number =>
    boxes[i]!.kind === 'input' ? -1 : boxes[i]!.kind === 'output' ? boxes.length : i;
  for (const link of links) {
    if (key(link.from) < key(link.to)) {
      inputs[link.to]!.push(link.from);
      outputs[link.from]!.push(link.to);
    }
  }
  for (const i of order.sort((a, b) => key(a) - key(b))) {
    for (const to of outputs[i]!) {
      rankOf[to] = Math.max(rankOf[to]!, rankOf[i]! + 1);
    }
  }
  boxes.forEach((box, i) => {
    if (box.kind === 'input' && outputs[i]!.length) {
      rankOf[i] = Math.max(0, Math.min(...outputs[i]!.map(to => rankOf[to]!)) - 1);
    }
  });
  const layers: number[][] = [];
  for (const i of boxes.keys()) {
    (layers[rankOf[i]!] ??= []).push(i);
  }
  const x = arranged(layers, inputs, outputs, boxes);
  const gap = 56;
  const points = boxes.map((_, i) => ({
    x: x[i]!,
    y: MARGIN + BOX_HEIGHT / 2 + rankOf[i]! * (BOX_HEIGHT + gap)
  }));
  const left = Math.min(...points.map((point, i) => point.x - boxSize(boxes[i]!).width / 2), 0);
  const placed = points.map(point => ({ x: point.x - left + MARGIN, y: point.y }));
  const curves = links.map(link => {
    const [a, b] = [placed[link.from]!, placed[link.to]!];
    const from = { x: a.x, y: a.y + boxSize(boxes[link.from]!).height / 2 };
    const to = { x: b.x, y: b.y - boxSize(boxes[link.to]!).height / 2 };
    const far = Math.abs(rankOf[link.to]! - rankOf[link.from]!) > 1;
    const bend = far ? BOX_HEIGHT : Math.max(24, Math.abs(to.y - from.y) / 2);
    // A link that passes other layers goes around them, to the right.
    const aside = far ? BOX_WIDTH * 0.8 : 0;
    return [from, { x: from.x + aside, y: from.y + bend }, { x: to.x + aside, y: to.y - bend }, to];
  });
  return {
    boxes: placed,
    links: curves,
    labels: curves.map(middle),
    width: Math.max(...placed.map((point, i) => point.x + boxSize(boxes[i]!).width / 2), 0) + MARGIN,
    height: layers.length * (BOX_HEIGHT + gap) + 2 * MARGIN - gap,
    by: 'quick'
  };
}

/** The x of each box: layers are sorted by their neighbours' mean twice down and up, then packed around it. */
function arranged(
  layers: number[][],
  inputs: number[][],
  outputs: number[][],
  boxes: readonly IBox[]
): number[] {
  const x = new Array<number>(boxes.length).fill(0);
  const mean = (of: readonly number[], otherwise: number): number =>
    of.length ? of.reduce((total, i) => total + x[i]!, 0) / of.length : otherwise;
  const pack = (layer: number[], neighbours: number[][]): void => {
    const wish = new Map(layer.map(i => [i, mean(neighbours[i]!, x[i]!)]));
    layer.sort((a, b) => wish.get(a)! - wish.get(b)! || a - b);
    const width = (i: number): number => boxSize(boxes[i]!).width + 28;
    const total = layer.reduce((sum, i) => sum + width(i), 0);
    let at = layer.reduce((sum, i) => sum + wish.get(i)!, 0) / layer.length - total / 2;
    for (const i of layer) {
      x[i] = at + width(i) / 2;
      at += width(i);
    }
  };
  for (let sweep = 0; sweep < 2; sweep++) {
    layers.forEach(layer => pack(layer, inputs));
    [...layers].reverse().forEach(layer => pack(layer, outputs));
  }
  layers.forEach(layer => pack(layer, inputs));
  return x;
}

/** The middle of a spline. */
export function middle(points: readonly IPoint[]): IPoint {
  const n = points.length;
  if (n < 4) {
    return points[n >> 1] ?? { x: 0, y: 0 };
  }
  const start = 3 * Math.floor((n - 1) / 6);
  const [a, b, c, d] = points.slice(start, start + 4) as [IPoint, IPoint, IPoint, IPoint];
  const at = (n - 1) % 6 === 3 ? 0.5 : 0;
  const mix = (p: number, q: number, r: number, s: number): number =>
    (1 - at) ** 3 * p + 3 * (1 - at) ** 2 * at * q + 3 * (1 - at) * at ** 2 * r + at ** 3 * s;
  return { x: mix(a.x, b.x, c.x, d.x), y: mix(a.y, b.y, c.y, d.y) };
}

/** How far down a closed layout's y has moved, when boxes are open. `extra` is by how much each box has grown. */
export function shifted(
  layout: ILayout,
  graph: IFusionGraph,
  extra: ReadonlyMap<number, number>
): (y: number) => number {
  // Boxes of one rank share their lower edge; the one that grew most counts.
  const growth = new Map<number, number>();
  for (const [i, by] of extra) {
    const bottom = Math.round(layout.boxes[i]!.y + boxSize(graph.boxes[i]!).height / 2);
    growth.set(bottom, Math.max(growth.get(bottom) ?? 0, by));
  }
  const steps = [...growth].sort((a, b) => a[0] - b[0]);
  return y => steps.reduce((moved, [bottom, by]) => (y + 0.5 >= bottom ? moved + by : moved), y);
}

/** By how much an open box is higher than a closed one. */
export const openExtra = (box: IBox): number => box.rows.length * ROW_HEIGHT + 6;
