/** A program as boxes and links: what the viewer of fusion graphs lays out and draws. Pure functions. */

import type { IKernel, INotFused, IProgram, ISourceOp } from '../program.js';

/** What a box stands for: a kernel, the kernels of one module, or those of one source line. */
export type Collapse = 'kernel' | 'module' | 'line';

/** `mxu` bound by compute, `hbm` by memory, `ovh` by neither; empty: the target has no figures. */
export type Bound = 'mxu' | 'hbm' | 'ovh' | '';

/** An op in an open box. */
export interface IBoxRow {
  /** Id of the ATen op. */
  readonly op: string;
  readonly name: string;
  /** `file:line`, or empty. */
  readonly place: string;
}

export interface IBox {
  /** The same for the same ops on another target. */
  readonly id: string;
  readonly kind: 'kernel' | 'input' | 'output';
  readonly title: string;
  readonly subtitle: string;
  /** Indices in `Program.kernels`, in the order they run. */
  readonly kernels: readonly number[];
  readonly rows: readonly IBoxRow[];
  /** Lower bound in seconds; 0: not known. */
  readonly timeS: number;
  readonly bytes: number;
  readonly flops: number;
  readonly bound: Bound;
  /** What a search looks through, in lower case. */
  readonly words: string;
}

export interface ILink {
  readonly id: string;
  /** Indices of boxes. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
  /** Indices in `Program.edges`. */
  readonly edges: readonly number[];
  /** Why these did not fuse: the reasons for its pairs of ops. */
  readonly why: readonly INotFused[];
}

export interface IFusionGraph {
  readonly boxes: readonly IBox[];
  readonly links: readonly ILink[];
}

/** Programs with more boxes than this are drawn without their inputs and outputs. */
const MOST_WITH_INPUTS = 120;

export function fusionGraph(program: IProgram, by: Collapse): IFusionGraph {
  const ops = new Map(program.ops.map(op => [op.id, op]));
  const groups = new Map<string, number[]>();
  const groupOf: string[] = [];
  program.kernels.forEach((kernel, i) => {
    const key = groupKey(kernel, i, by, ops);
    groupOf.push(key);
    const group = groups.get(key);
    if (group) {
      group.push(i);
    } else {
      groups.set(key, [i]);
    }
  });
  const index = new Map([...groups.keys()].map((key, i) => [key, i]));
  const boxes = [...groups].map(([key, kernels]) => makeBox(program, key, kernels, by, ops));
  const boxOf = (kernel: number): number => index.get(groupOf[kernel]!)!;

  const links = new Map<string, { from: number; to: number; bytes: number; edges: number[] }>();
  program.edges.forEach((edge, i) => {
    if (edge.producer < 0 || edge.consumer < 0) {
      return;
    }
    const [from, to] = [boxOf(edge.producer), boxOf(edge.consumer)];
    if (from === to) {
      return;
    }
    const link = links.get(`${from}>${to}`) ?? { from, to, bytes: 0, edges: [] };
    link.bytes += edge.bytes;
    link.edges.push(i);
    links.set(`${from}>${to}`, link);
  });
  const why = new Map<string, INotFused[]>();
  for (const pair of program.not_fused) {
    const key = `${boxOf(pair.producer_kernel)}>${boxOf(pair.consumer_kernel)}`;
    why.set(key, [...(why.get(key) ?? []), pair]);
  }
  const made = [...links].map(([key, link]): ILink => ({
    ...link,
    id: `${boxes[link.from]!.id}>${boxes[link.to]!.id}`,
    why: why.get(key) ?? []
  }));
  return boxes.length <= MOST_WITH_INPUTS ? withInputs(program, boxes, made, boxOf) : { boxes, links: made };
}

function groupKey(kernel: IKernel, index: number, by: Collapse, ops: ReadonlyMap<string, ISourceOp>): string {
  switch (by) {
    case 'module':
      return `module ${commonModule(kernel.ops.flatMap(id => ops.get(id) ?? []))}`;
    case 'line':
      return `line ${kernel.lines[0] ?? ''}`;
    default:
      return `kernel ${kernel.ops.length ? kernel.ops.join(' ') : kernel.name} ${kernel.ops.length ? '' : index}`;
  }
}

/** The innermost module that holds all of the ops. */
export function commonModule(ops: readonly ISourceOp[]): string {
  const [first, ...rest] = ops.map(op => op.module.split('.'));
  if (!first) {
    return '';
  }
  let length = first.length;
  for (const path of rest) {
    while (length > 0 && !first.slice(0, length).every((part, i) => part === path[i])) {
      length -= 1;
    }
  }
  return first.slice(0, length).join('.');
}

/** `addmm` of `aten.addmm.default`. */
export const opName = (op: string): string =>
  op
    .replace(/^[^.:]*:/, '')
    .replace(/^aten\./, '')
    .replace(/\.default$/, '');

/** The last part of a place: `net.py:8` of `models/net.py:8`; `line 8` of a cell's. */
export const shortPlace = (place: string): string =>
  place.replace(/^cell[^:/]*:/, 'line ').replace(/^.*\//, '');

function makeBox(
  program: IProgram,
  key: string,
  kernels: readonly number[],
  by: Collapse,
  ops: ReadonlyMap<string, ISourceOp>
): IBox {
  const members = kernels.map(i => program.kernels[i]!);
  const known = members.flatMap(kernel => kernel.ops.flatMap(id => ops.get(id) ?? []));
  const names = [...new Set(known.map(op => opName(op.op)))];
  const role = members[0]!.role || members[0]!.kind;
  const listed = names.length
    ? `${names.slice(0, 3).join(', ')}${names.length > 3 ? ` +${names.length - 3}` : ''}`
    : role;
  const module = commonModule(known);
  const place = key.replace(/^line /, '');
  const title =
    by === 'module'
      ? module || 'outside any module'
      : by === 'line'
        ? shortPlace(place) || 'unknown line'
        : listed;
  const phase = members[0]!.phase === 'backward' ? 'backward' : '';
  const tail = module.split('.').slice(-2).join('.');
  const opCount = `${known.length} ${known.length === 1 ? 'op' : 'ops'}`;
  const subtitle =
    by === 'kernel'
      ? [`K${kernels[0]! + 1}`, phase, tail, known.length ? opCount : ''].filter(Boolean).join(' · ')
      : `${kernels.length} ${kernels.length === 1 ? 'kernel' : 'kernels'} · ${opCount}`;
  const time = sum(members.map(kernel => kernel.time_s * kernel.repeats));
  return {
    id: key,
    kind: 'kernel',
    title,
    subtitle,
    kernels,
    rows: known.map(op => ({
      op: op.id,
      name: opName(op.op),
      place: op.file ? `${op.file}:${op.line}` : ''
    })),
    timeS: time,
    bytes: sum(members.map(kernel => kernel.bytes * kernel.repeats)),
    flops: sum(members.map(kernel => kernel.flops * kernel.repeats)),
    bound: boundOf(members),
    words: [
      title,
      subtitle,
      ...members.flatMap(kernel => [kernel.name, kernel.kind, ...kernel.lines]),
      ...known.flatMap(op => [op.op, op.module, op.function])
    ]
      .join(' ')
      .toLowerCase()
  };
}

/** What most of the time is bound by. */
function boundOf(kernels: readonly IKernel[]): Bound {
  const names: Record<string, Bound> = { compute: 'mxu', memory: 'hbm', 'on chip': 'ovh' };
  const times = new Map<Bound, number>();
  for (const kernel of kernels) {
    const bound = names[kernel.bound_by] ?? '';
    times.set(bound, (times.get(bound) ?? 0) + kernel.time_s * kernel.repeats + 1e-15);
  }
  return [...times].sort((a, b) => b[1] - a[1])[0]?.[0] ?? '';
}

/** The graph with a pill for the inputs of each box, so that a weight read in many places draws no lines across; and for the results. */
function withInputs(
  program: IProgram,
  boxes: readonly IBox[],
  links: readonly ILink[],
  boxOf: (kernel: number) => number
): IFusionGraph {
  const labels = new Map(
    program.memory.buffers
      .filter(buffer => buffer.kind === 'argument')
      .map(buffer => [buffer.instruction, buffer.label])
  );
  const ends = new Map<
    string,
    { box: number; input: boolean; edges: number[]; bytes: number; names: Set<string> }
  >();
  program.edges.forEach((edge, i) => {
    const input = edge.producer < 0;
    if (!input && edge.consumer >= 0) {
      return;
    }
    const kernel = input ? edge.consumer : edge.producer;
    if (kernel < 0) {
      return;
    }
    const box = boxOf(kernel);
    const key = `${input ? 'in' : 'out'} ${box}`;
    const end = ends.get(key) ?? { box, input, edges: [], bytes: 0, names: new Set<string>() };
    end.edges.push(i);
    end.bytes += edge.bytes;
    end.names.add(
      input ? labels.get(edge.instruction) || program.instructions[edge.instruction]!.name : 'result'
    );
    ends.set(key, end);
  });
  const all = [...boxes];
  const more = [...links];
  for (const { box, input, edges, bytes, names } of ends.values()) {
    const list = [...names];
    const title = `${list.slice(0, 2).join(', ')}${list.length > 2 ? ` +${list.length - 2}` : ''}`;
    const id = `${input ? 'inputs' : 'results'} of ${boxes[box]!.id}`;
    all.push({
      id,
      kind: input ? 'input' : 'output',
      title,
      subtitle: '',
      kernels: [],
      rows: [],
      timeS: 0,
      bytes,
      flops: 0,
      bound: '',
      words: list.join(' ').toLowerCase()
    });
    const pill = all.length - 1;
    more.push({ id: `${id} link`, from: input ? pill : box, to: input ? box : pill, bytes, edges, why: [] });
  }
  return { boxes: all, links: more };
}

/** Indices of the boxes that contain every word, in drawing order. */
export function findBoxes(graph: IFusionGraph, words: string): number[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) {
    return [];
  }
  return graph.boxes.flatMap((box, i) => (wanted.every(word => box.words.includes(word)) ? [i] : []));
}

/** The box of an op, or -1. */
export function boxOfOp(graph: IFusionGraph, op: string): number {
  return graph.boxes.findIndex(box => box.rows.some(row => row.op === op));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
