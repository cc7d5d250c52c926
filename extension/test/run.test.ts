import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import {
  filterOps,
  marks,
  opRows,
  readRun,
  RunError,
  sortOps,
  sourceBlocks,
  steadyNs,
  type IRun
} from '../src/run.js';

// From lib/.test/test/, where this file runs, to test/.
const text = readFileSync(new URL('../../../test/runs.json', import.meta.url), 'utf8');
const sample = (name: 'compiled' | 'compared' | 'failed' | 'fused'): Record<string, never> =>
  JSON.parse(text)[name];
const compiled = (): IRun => readRun(sample('compiled'));

test('a sound run is read as it is', () => {
  const run = compiled();
  assert.equal(run.id, 'r12');
  assert.equal(run.ops.id.length, 49);
  assert.equal(readRun(sample('compared')).comparison?.modes.length, 4);
});

test('fields of a newer minor version are no reason to refuse', () => {
  assert.equal(readRun({ ...sample('compiled'), schema: '1.7', added: { anything: 1 } }).id, 'r12');
});

test('what an older minor version did not have is filled in', () => {
  const newer = new Set(['graphs', 'regions']);
  const old = Object.fromEntries(Object.entries(sample('compiled')).filter(([field]) => !newer.has(field)));
  const run = readRun({ ...old, schema: '1.0', recompiles: [{ reason: 'shape' }] });
  assert.deepEqual([run.graphs, run.regions, run.recompiles[0]!.location], [[], [], -1]);
});

test('anything else is one message', () => {
  const broken: [unknown, RegExp][] = [
    [null, /not a record/],
    ['<script>alert(1)</script>', /not a record/],
    [[], /not a record/],
    [{ format: 'other' }, /not a record/],
    [{ ...sample('compiled'), schema: '2.0' }, /schema 2\.0.*reads 1\.x.*update/],
    [{ ...sample('compiled'), schema: undefined }, /schema undefined/],
    [{ ...sample('compiled'), id: 7 }, /damaged at id: expected string/],
    [{ ...sample('compiled'), ops: undefined }, /damaged at ops/],
    [{ ...sample('compiled'), lines: [{}] }, /damaged at lines\[0\]\.source/],
    [{ ...sample('compiled'), comparison: [] }, /damaged at comparison/],
    [{ ...sample('compiled'), ops: { ...compiled().ops, id: [1] } }, /another length than ops\.id/]
  ];
  for (const [data, message] of broken) {
    assert.throws(
      () => readRun(data),
      (error: Error) => error instanceof RunError && message.test(error.message),
      String(message)
    );
  }
});

test('indices that point nowhere are unknown places, not exceptions', () => {
  const data = JSON.parse(text).compiled;
  data.ops.program.fill(9999);
  data.ops.location.fill(9999);
  data.ops.cell_location.fill(-1);
  data.ops.module.fill(9999);
  const row = opRows(readRun(data))[0]!;
  assert.deepEqual([row.name, row.place, row.module, row.result], ['?', null, '', '']);
});

test('lines carry their costs and marks', () => {
  const [block] = sourceBlocks(compiled());
  const row = (line: number): (typeof block & object)['rows'][number] =>
    block!.rows.find(found => found.line === line)!;
  assert.equal(block!.rows.length, 14);
  assert.equal(row(13).cost?.time_ns, 358e6);
  assert.equal(row(1).cost, null);
  assert.deepEqual(
    row(8).marks.map(mark => mark.kind),
    ['graph_break', 'sync']
  );
  assert.equal(row(8).marks[1]!.remedy, 'Goes away with TL302');
});

test('the cell stands before other sources, and sources without cost are left out', () => {
  const data = JSON.parse(text).compiled;
  data.sources.unshift({ name: 'net.py', kind: 'file', lines: [{ number: 7, text: 'x = 1' }] });
  data.sources.push({ name: 'unused.py', kind: 'file', lines: [{ number: 1, text: '' }] });
  for (const place of [...data.locations, ...data.lines]) {
    place.source += 1;
  }
  data.lines.push({ ...data.lines[0], source: 0, line: 7 });
  const blocks = sourceBlocks(readRun(data));
  assert.deepEqual(
    blocks.map(block => block.source.name),
    ['cell', 'net.py']
  );
});

test('exceptions come before costs', () => {
  const [mark] = marks(readRun(sample('failed')));
  assert.equal(mark?.title, 'aten.mm raised RuntimeError');
  assert.deepEqual(mark?.place, { source: 0, line: 2 });
});

test('an exception of an op that ends the cell is told once', () => {
  const data = JSON.parse(text).failed;
  data.failures.push({ ...data.failures[0], op: '', after_op: -1 });
  assert.deepEqual(
    marks(readRun(data)).map(mark => mark.title),
    ['aten.mm raised RuntimeError']
  );
});

test('ops: a backward op names its forward op', () => {
  const rows = opRows(compiled());
  assert.equal(rows.at(-1)!.backwardOf, 10);
  assert.equal(rows[0]!.backwardOf, null);
  assert.equal(rows[1]!.result, 'bf16[8192,6144]');
});

test('ops: sorting is stable, and what is not known comes last both ways', () => {
  const rows = opRows(compiled());
  for (const descending of [true, false]) {
    const sorted = sortOps(rows, 'flops', descending);
    const known = sorted.filter(row => row.flops !== null).map(row => row.flops!);
    assert.deepEqual(
      known,
      [...known].sort((a, b) => (descending ? b - a : a - b))
    );
    assert.ok(sorted.slice(known.length).every(row => row.flops === null));
  }
  const equal = sortOps(rows, 'name', false).filter(row => row.name === 'aten.bmm');
  assert.deepEqual(
    equal.map(row => row.id),
    equal.map(row => row.id).sort((a, b) => a - b)
  );
});

test('ops: every word must be found', () => {
  const rows = opRows(compiled());
  assert.equal(filterOps(rows, '  ').length, rows.length);
  assert.ok(filterOps(rows, 'BMM attn').every(row => row.name === 'aten.bmm'));
  assert.equal(filterOps(rows, 'bmm mlp').length, 0);
  assert.equal(filterOps(rows, 'fallback').length, 4);
});

test('the steady time is the median of the later calls', () => {
  assert.equal(steadyNs({ first_ns: 9, later_ns: [5, 1, 3] }), 3);
  assert.equal(steadyNs({ first_ns: 9, later_ns: [4, 1] }), 2.5);
  assert.equal(steadyNs({ first_ns: 9, later_ns: [] }), 9);
});

test('flushes are one mark for each reason on a line, with how the clusters ran and what differs', () => {
  const [mark, ...others] = marks(readRun(sample('fused')));
  assert.equal(others.length, 0);
  assert.equal(mark!.kind, 'flush');
  assert.equal(mark!.severity, 'note');
  assert.equal(mark!.title, 'Flushed: .item()');
  assert.match(mark!.reason, /One program: 1 of 2\. Call by call: not seen before: 1 of 2/);
  assert.match(mark!.message, /a size changed: aten\.addmm: 960 rows/);
  assert.equal(mark!.place!.line, 4);
});
