import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deflateSync } from 'node:zlib';

import { isPacked, unpacked } from '../src/packed.js';
import { readRun, RunError } from '../src/run.js';

const packed = (text: string): Record<string, string> => ({
  format: 'tpu-lab-packed',
  schema: '1.0',
  deflate: deflateSync(Buffer.from(text)).toString('base64')
});

test('what is packed comes back, letters of every kind included', async () => {
  const data = { words: 'größer → ≥ 🙂', numbers: [1, 2.5, -3] };
  assert.deepEqual(await unpacked(packed(JSON.stringify(data))), data);
});

test('what is not packed comes back as it is', async () => {
  for (const data of [{ format: 'tpu-lab-run' }, null, 'text', [1]]) {
    assert.equal(await unpacked(data), data);
    assert.equal(isPacked(data), false);
  }
});

test('damage and newer versions are told in a sentence', async () => {
  const sound = packed('{}');
  const wrong = [
    { ...sound, deflate: '%%%' },
    { ...sound, deflate: sound.deflate!.slice(0, -8) },
    { ...sound, deflate: 3 },
    packed('{"a": '),
    { ...sound, schema: '2.0' }
  ];
  for (const data of wrong) {
    await assert.rejects(unpacked(data), RunError);
  }
});

test('a small text that unpacks to very much is refused', async () => {
  const bomb = { ...packed(''), deflate: deflateSync(Buffer.alloc(80_000_000, 32)).toString('base64') };
  await assert.rejects(unpacked(bomb), /too large/);
});

test('an error that stands for a run is what reading the run throws', () => {
  const error = new RunError('This output is damaged.');
  assert.throws(() => readRun(error), error);
});
