import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';

import {
  coverageCsv,
  filterRows,
  HERE,
  heatRows,
  readCoverage,
  readDetails,
  runsOnDevice,
  sortRows,
  type ICoverage
} from '../src/coverage.js';

const packed = (value: unknown): unknown => ({
  format: 'tpu-lab-packed',
  schema: '1.0',
  deflate: deflateSync(JSON.stringify(value)).toString('base64')
});

const DATA = {
  format: 'tpu-lab-coverage-view',
  schema: '1.0',
  made: { conformance: { date: '2026-12-01', torch: '2.13.0', jax: '0.10.2' } },
  dtypes: ['float32', 'bool'],
  families: ['sort, search', 'pointwise'],
  name: ['topk', 'kthvalue', 'mul.Tensor', 'nonzero'],
  family: [0, 0, 1, 0],
  here: [0, 1, 0, 2],
  there: [0, 2, 0, 0],
  models: [8, 0, 924, 35],
  tried: ['p-', 'f-', 'pp', 'pp'],
  executors: ['p-p', 'f--', 'p--', 'p--'],
  details: packed([{ schema: 'topk(Tensor self)', tests: ['topk', 7] }])
};
const table = (): ICoverage => readCoverage(DATA);
const any = { statuses: new Set(HERE), family: '', dtype: '', executor: '' };
const names = (text: string, choice = {}): string[] =>
  filterRows(table(), text, { ...any, ...choice }).map(row => row.name);

test('rows are read from columns', () => {
  const [topk] = table().rows;
  assert.deepEqual(topk, {
    index: 0,
    name: 'topk',
    family: 'sort, search',
    here: 'native',
    there: 'own',
    models: 8,
    tried: 'p-',
    executors: 'p-p'
  });
  assert.equal(table().verified, '2026-12-01 with torch 2.13.0, jax 0.10.2');
});

test('data that is none, newer or damaged is one message', () => {
  const broken: [Record<string, unknown>, RegExp][] = [
    [{ format: 'else' }, /not a table/],
    [{ schema: '2.0' }, /reads 1\.x/],
    [{ here: [0, 1, 0] }, /damaged at here/],
    [{ here: [0, 1, 0, 9] }, /damaged at here/],
    [{ family: [0, 0, 5, 0] }, /damaged at family/],
    [{ tried: ['p', 'f-', 'pp', 'pp'] }, /damaged at tried/],
    [{ models: [1, 2, -3, 4] }, /damaged at models/],
    [{ name: ['a', 1, 'b', 'c'] }, /damaged at name/]
  ];
  for (const [change, message] of broken) {
    assert.throws(() => readCoverage({ ...DATA, ...change }), message);
  }
  assert.throws(() => readCoverage(null), /not a table/);
});

test('a filter takes parts of names and keys', () => {
  assert.deepEqual(names('aten.kthvalue.default'), ['kthvalue']);
  assert.deepEqual(names('family:sort k'), ['topk', 'kthvalue']);
  assert.deepEqual(names('here:fall'), ['nonzero']);
  assert.deepEqual(names('torchtpu:missing'), ['kthvalue']);
  assert.deepEqual(names('dtype:bool'), ['mul.Tensor', 'nonzero']);
  assert.deepEqual(names('dtype:f32 mul'), ['mul.Tensor']);
  assert.deepEqual(names('no such'), []);
});

test('a choice narrows as well', () => {
  assert.deepEqual(names('', { statuses: new Set(['native']) }), ['topk', 'mul.Tensor']);
  assert.deepEqual(names('', { family: 'sort, search', dtype: 'bool' }), ['nonzero']);
  assert.deepEqual(names('', { executor: 'compile' }), ['topk']);
});

test('the heat map counts what runs on the device', () => {
  const [sort, pointwise] = heatRows(table());
  assert.deepEqual(sort, {
    family: 'sort, search',
    size: 3,
    cells: [
      { tried: 3, ran: 1 },
      { tried: 1, ran: 0 }
    ]
  });
  assert.equal(pointwise!.cells[1]!.ran, 1);
  assert.equal(runsOnDevice(table().rows[3]!, 0), false);
});

test('rows are sorted, equal ones by use', () => {
  const sorted = (key: 'name' | 'here' | 'there' | 'models', down: boolean): string[] =>
    sortRows(table().rows, key, down).map(row => row.name);
  assert.deepEqual(sorted('models', true), ['mul.Tensor', 'nonzero', 'topk', 'kthvalue']);
  assert.deepEqual(sorted('here', false), ['mul.Tensor', 'topk', 'kthvalue', 'nonzero']);
  assert.deepEqual(sorted('name', false), ['kthvalue', 'mul.Tensor', 'nonzero', 'topk']);
});

test('csv has the rows that are shown', () => {
  const lines = coverageCsv(table(), table().rows).split('\n');
  assert.equal(lines[0], 'overload,family,here,eager,fuse,compile,float32,bool,torch_tpu,model_types');
  assert.equal(lines[1], 'aten.topk,"sort, search",native,pass,,pass,pass,,own,8');
});

test('details are unpacked, and what is none is refused', async () => {
  const [first] = await readDetails(DATA.details);
  assert.equal(first!.schema, 'topk(Tensor self)');
  assert.deepEqual(first!.tests, ['topk']);
  assert.equal(first!.program, '');
  assert.deepEqual(await readDetails(packed('text')), []);
  assert.deepEqual(await readDetails(undefined), []);
  await assert.rejects(readDetails({ format: 'tpu-lab-packed', schema: '1.0', deflate: '!!!' }), /damaged/);
});
