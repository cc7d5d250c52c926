import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { liveBytes, peakRows, stretches } from '../src/memory.js';
import { groupOps, tableRows } from '../src/opgroups.js';
import { opRows, readRun, type IRun } from '../src/run.js';

const text = readFileSync(new URL('../../../test/runs.json', import.meta.url), 'utf8');
const compiled = (): IRun => readRun(JSON.parse(text).compiled);

test('layers add up to the curve at every point', () => {
  const run = compiled();
  const live = liveBytes(run);
  assert.equal(live.end, 49);
  for (const [i, point] of live.points.entries()) {
    assert.equal(point.before + point.made + point.marked + point.scratch, run.memory.curve[i]!.nbytes);
  }
  const peak = live.points.find(point => point.op === 8)!;
  assert.equal(peak.marked, 537_000_000);
  assert.equal(peak.scratch, 12_000_000);
  assert.equal(peak.before, 193_100_000);
});

test('without the lives of storages there are two layers', () => {
  const run = compiled();
  const empty = { nbytes: [], made_by: [], born: [], died: [], spec: [] };
  const live = liveBytes({ ...run, storages: empty });
  assert.equal(live.layered, false);
  assert.equal(live.marked, -1);
  assert.ok(live.points.every(point => point.before + point.made === point.total));
});

test('the peak by tensor, line and module', () => {
  const run = compiled();
  const tensors = peakRows(run, 'tensor', 49);
  assert.deepEqual(tensors[0]!.life, [8, 9]);
  assert.equal(tensors[0]!.place!.line, 11);
  assert.deepEqual(tensors.at(-1)!.life, [0, 49]);
  const lines = peakRows(run, 'line', 49);
  const bytes = (rows: typeof lines): number => rows.reduce((sum, row) => sum + row.nbytes, 0);
  assert.equal(bytes(lines), bytes(tensors));
  // What the run made without a module, and what was there before it, stand in one row.
  assert.deepEqual(
    peakRows(run, 'module', 49).map(row => [row.label, row.nbytes]),
    [
      ['', 730_100_000],
      ['Block.attn', 268_000_000],
      ['Block.qkv', 100_700_000]
    ]
  );
});

test('stretches of ops cover each op once', () => {
  const run = compiled();
  const found = stretches(run);
  assert.equal(
    found.reduce((sum, stretch) => sum + stretch.to - stretch.from, 0),
    run.ops.id.length
  );
  assert.ok(found.every((stretch, i) => i === 0 || stretch.from === found[i - 1]!.to));
});

test('groups hold every op once, the dearest group first', () => {
  const rows = opRows(compiled());
  for (const by of ['name', 'module', 'line', 'kind'] as const) {
    const groups = groupOps(rows, by);
    assert.equal(
      groups.reduce((sum, group) => sum + group.rows.length, 0),
      rows.length
    );
    assert.ok(groups.every((group, i) => i === 0 || group.timeNs <= groups[i - 1]!.timeNs));
  }
  assert.equal(groupOps(rows, 'kind').find(group => group.key === 'fallback')!.flops, null);
});

test('only open groups show their ops', () => {
  const rows = opRows(compiled());
  assert.equal(tableRows(rows, 'none', new Set()).length, 49);
  assert.ok(tableRows(rows, 'kind', new Set()).every(row => row.group !== null));
  const open = tableRows(rows, 'kind', new Set(['view']));
  assert.equal(open.filter(row => row.op !== null).length, 4);
});
