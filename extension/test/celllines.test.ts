import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { anchored, cellLines, type ICellLine } from '../src/celllines.js';
import { readRun } from '../src/run.js';

const text = readFileSync(new URL('../../../test/runs.json', import.meta.url), 'utf8');
const line = (content: string, nth = 0): ICellLine => ({ text: content, nth, timeNs: 1, marks: [] });
const at = (lines: ICellLine[], now: string[]): number[] => [...anchored(lines, now).keys()];

test('the lines of a run that cost something or carry a mark', () => {
  const lines = cellLines(readRun(JSON.parse(text).compiled));
  assert.equal(lines.length, 12);
  assert.deepEqual(
    lines.filter(one => one.marks.length).map(one => one.text.trim().slice(0, 12)),
    ['x, mask = ba', 'if s.amax().', 'mid = p.floa']
  );
});

test('a line is found by its text wherever it moved', () => {
  const lines = [line('a = 1'), line('b = 2')];
  assert.deepEqual(at(lines, ['a = 1', 'b = 2']), [1, 2]);
  assert.deepEqual(at(lines, ['# new', 'b = 2', 'a = 1']), [3, 2]);
});

test('an edited line loses what was known of it', () => {
  assert.deepEqual(at([line('a = 1'), line('b = 2')], ['a = 10', 'b = 2']), [2]);
});

test('equal lines keep their order, and one less leaves one less', () => {
  const lines = [line('x += 1', 0), line('x += 1', 1)];
  assert.deepEqual(at(lines, ['x += 1', 'y', 'x += 1']), [1, 3]);
  assert.deepEqual(at(lines, ['x += 1']), [1]);
});

test('blank lines carry nothing', () => {
  assert.deepEqual(at([line('')], ['', '']), []);
});
