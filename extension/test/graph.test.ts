import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { Graphviz, type Format } from '@hpcc-js/wasm-graphviz';

import { graphDot } from '../src/graph/dot.js';
import {
  boxSize,
  layoutDot,
  openExtra,
  quickLayout,
  readDot,
  shifted,
  type ILayout
} from '../src/graph/layout.js';
import { commonModule, findBoxes, fusionGraph, type IFusionGraph } from '../src/graph/model.js';
import { boxAt, neighbour, scene } from '../src/graph/scene.js';
import { readProgram, readPrograms, type IProgram } from '../src/program.js';
import { RunError } from '../src/reader.js';
import { fit, start, zoomed } from '../src/view/graph/camera.js';

const text = readFileSync(new URL('../../../test/graphs.json', import.meta.url), 'utf8');
const programs = (): IProgram[] => readPrograms(JSON.parse(text));
const kernelGraph = (): IFusionGraph => fusionGraph(programs()[0]!, 'kernel');
const kernelBoxes = (graph: IFusionGraph): number => graph.boxes.filter(box => box.kind === 'kernel').length;

test('programs are read, and what is none is one message', () => {
  assert.equal(programs().length, 4);
  const sound = JSON.parse(text).programs[0];
  const broken: [unknown, RegExp][] = [
    [null, /not a record of a program/],
    [{ format: 'tpu-lab-fusion-graph', programs: [] }, /at least one program/],
    [{ ...sound, schema: '2.0' }, /schema 2\.0.*reads 1\.x/],
    [{ ...sound, kernels: [{ name: 3 }] }, /damaged at kernels\[0\]\.name/],
    [
      { ...sound, edges: [{ producer: 99, consumer: 0, instruction: 0, bytes: 1, space: '' }] },
      /points nowhere/
    ]
  ];
  for (const [data, message] of broken) {
    assert.throws(
      () => readPrograms(data),
      (error: Error) => error instanceof RunError && message.test(error.message)
    );
  }
});

test('a box for each kernel, a link for each pair that passes a value', () => {
  const program = programs()[0]!;
  const graph = kernelGraph();
  assert.equal(kernelBoxes(graph), program.kernels.length);
  const inner = program.edges.filter(edge => edge.producer >= 0 && edge.consumer >= 0);
  const between = graph.links.filter(
    link => graph.boxes[link.from]!.kind === 'kernel' && graph.boxes[link.to]!.kind === 'kernel'
  );
  assert.equal(
    between.reduce((sum, link) => sum + link.bytes, 0),
    inner.reduce((sum, edge) => sum + edge.bytes, 0)
  );
  assert.equal(between.filter(link => link.why.length).length, 2);
  assert.equal(graph.boxes[2]!.title, 'bmm, mul, masked_fill +1');
  assert.equal(graph.boxes[2]!.subtitle, 'K3 · Block.attn · 4 ops');
});

test('inputs are told once for each kernel that reads them', () => {
  const pills = kernelGraph().boxes.filter(box => box.kind === 'input');
  assert.equal(pills.length, 6);
  assert.equal(pills.find(pill => pill.title === 'qkv.weight, qkv.bias')!.bytes, 25_212_000);
});

test('boxes by module and by line hold every kernel once', () => {
  const program = programs()[0]!;
  for (const by of ['module', 'line'] as const) {
    const graph = fusionGraph(program, by);
    const kernels = graph.boxes.flatMap(box => box.kernels);
    assert.deepEqual(
      [...kernels].sort((a, b) => a - b),
      program.kernels.map((_, i) => i)
    );
    assert.ok(kernelBoxes(graph) < program.kernels.length);
  }
});

test('a box has one id on every target', () => {
  const [v6e, , v5e] = programs();
  const ids = (program: IProgram): string[] => fusionGraph(program, 'kernel').boxes.map(box => box.id);
  assert.deepEqual(ids(v6e!), ids(v5e!));
});

test('the common module of ops', () => {
  const op = (module: string): IProgram['ops'][number] => ({ ...programs()[0]!.ops[0]!, module });
  assert.equal(commonModule([op('h.0.attn.q'), op('h.0.attn.k')]), 'h.0.attn');
  assert.equal(commonModule([op('h.0'), op('ln')]), '');
  assert.equal(commonModule([]), '');
});

test('search finds ops, lines and modules', () => {
  const graph = kernelGraph();
  assert.deepEqual(findBoxes(graph, 'masked_fill'), [2]);
  assert.deepEqual(findBoxes(graph, 'cell:13 gelu'), [8]);
  assert.deepEqual(findBoxes(graph, ''), []);
});

function checkLayout(graph: IFusionGraph, layout: ILayout): void {
  const places = scene(graph, layout, new Set());
  places.rects.forEach((a, i) => {
    assert.ok(
      a.left >= 0 && a.right <= places.width + 1 && a.bottom <= places.height + 1,
      `box ${i} is inside`
    );
    places.rects.slice(i + 1).forEach(b => {
      const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      assert.ok(apart, 'no two boxes overlap');
    });
  });
  for (const link of graph.links.filter(
    one => graph.boxes[one.from]!.kind === 'kernel' && one.from < one.to
  )) {
    if (graph.boxes[link.to]!.kind === 'kernel') {
      assert.ok(
        places.rects[link.from]!.bottom <= places.rects[link.to]!.top,
        'what runs first stands higher'
      );
    }
  }
}

test('dot lays out every box and link', async () => {
  const graph = kernelGraph();
  const labels = graph.links.map(() => '33.6 MB');
  const engine = await Graphviz.load();
  const layout = readDot(engine.layout(layoutDot(graph, labels), 'json0' as Format, 'dot'), graph, labels);
  checkLayout(graph, layout);
  assert.ok(layout.links.every(points => points.length >= 4 && points.length % 3 === 1));
  graph.links.forEach((link, i) => {
    const from = layout.boxes[link.from]!;
    const half = boxSize(graph.boxes[link.from]!).height / 2;
    assert.ok(Math.abs(layout.links[i]![0]!.y - from.y - half) < 24, 'a link starts at its box');
  });
});

test('the quick layout holds without an engine', () => {
  checkLayout(kernelGraph(), quickLayout(kernelGraph()));
});

test('an open box moves only what stands below it, and by its growth', () => {
  const graph = kernelGraph();
  const layout = quickLayout(graph);
  const closed = scene(graph, layout, new Set());
  const open = scene(graph, layout, new Set([2]));
  const grown = openExtra(graph.boxes[2]!);
  assert.equal(open.rects[2]!.bottom - closed.rects[2]!.bottom, grown);
  open.rects.forEach((rect, i) => {
    const below = closed.rects[i]!.top >= closed.rects[2]!.bottom;
    assert.equal(rect.top - closed.rects[i]!.top, below ? grown : 0);
  });
  assert.equal(shifted(layout, graph, new Map())(123), 123);
});

test('keys go along links and to the side', () => {
  const graph = kernelGraph();
  const places = scene(graph, quickLayout(graph), new Set());
  assert.equal(neighbour(places, 3, 'down'), 4);
  assert.equal(neighbour(places, 4, 'up'), 2);
  const { left, top } = places.rects[5]!;
  assert.equal(boxAt(places, left + 3, top + 3), 5);
});

test('the camera fits, starts readable and zooms around a point', () => {
  const view = { width: 600, height: 600 };
  assert.equal(fit({ width: 1200, height: 300 }, view).k, 0.5);
  assert.equal(start({ width: 400, height: 300 }, view, 200).k, 1);
  assert.ok(start({ width: 400, height: 90_000 }, view, 200).k >= 0.7);
  const camera = zoomed({ x: 10, y: 20, k: 1 }, 2, 110, 120);
  assert.deepEqual([(110 - camera.x) / camera.k, (120 - camera.y) / camera.k], [100, 100]);
});

test('DOT text names every box, and words cannot leave their quotes', () => {
  const sound = JSON.parse(text).programs[0];
  sound.ops[0].op = 'aten.x"]; evil [label="y';
  const graph = fusionGraph(readProgram(sound), 'kernel');
  const dot = graphDot(graph, 'a "name"');
  assert.equal(dot.split('\n').filter(line => / -> /.test(line)).length, graph.links.length);
  assert.ok(dot.startsWith('digraph "a \\"name\\""'));
  assert.ok(!/[^\\]"\]; evil/.test(dot));
});
