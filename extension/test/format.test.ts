import assert from 'node:assert/strict';
import { test } from 'node:test';

import { clip, count, digits, inUnit, ordinal, quantity, ratio, small, unitFor } from '../src/view/format.js';
import { highlight } from '../src/view/highlight.js';
import { ENGLISH } from '../src/view/texts.js';

test('numbers of a column have two or three significant digits', () => {
  const cases: [number, string][] = [
    [0, '0'],
    [0.31, '0.31'],
    [0.0001, '<0.01'],
    [1, '1.0'],
    [9.8, '9.8'],
    [9.96, '10.0'],
    [96.34, '96.3'],
    [358.4, '358'],
    [99.97, '100'],
    [1234, '1,234'],
    [-2.5, '−2.5']
  ];
  for (const [value, text] of cases) {
    assert.equal(digits(value), text);
  }
});

test('a quantity picks its unit, and never writes 1,000 of a smaller one', () => {
  const cases: ['time' | 'bytes', number, string][] = [
    ['time', 0, '0 ns'],
    ['time', 87, '87 ns'],
    ['time', 1950, '1.95 µs'],
    ['time', 999_600, '1.00 ms'],
    ['time', 22_400_000, '22.4 ms'],
    ['time', 5_120_000_000, '5.12 s'],
    ['time', -3_600_000_000, '−3.60 s'],
    ['bytes', 512, '512 B'],
    ['bytes', 1_040_000_000, '1.04 GB'],
    ['bytes', 268_435_456, '268 MB']
  ];
  for (const [scale, value, text] of cases) {
    assert.equal(quantity(scale, value).replace('\u00a0', ' '), text);
  }
});

test('a column has one unit', () => {
  const unit = unitFor('time', 358e6);
  assert.equal(unit.name, 'ms');
  assert.deepEqual(
    [358e6, 310e3, 0].map(ns => inUnit(ns, unit)),
    ['358', '0.31', '0']
  );
  assert.equal(inUnit(131072, unitFor('bytes', 900)), '131,072');
});

test('counts, ratios, ordinals and small numbers', () => {
  assert.equal(count(131072), '131,072');
  assert.equal(ratio(1.53), '1.5×');
  assert.equal(ratio(12.4), '12×');
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 112].map(ordinal), [
    '1st',
    '2nd',
    '3rd',
    '4th',
    '11th',
    '12th',
    '13th',
    '21st',
    '112th'
  ]);
  assert.equal(small(0.0313), '0.0313');
  assert.equal(small(2.4e-7).replaceAll('\u00a0', ' '), '2.4 × 10⁻⁷');
  assert.equal(small(0), '0');
});

test('what is cut shows that it is', () => {
  assert.equal(clip('abcdef', 3), 'abc…');
  assert.equal(clip('abc', 3), 'abc');
});

test('English texts fill in their values', () => {
  assert.equal(ENGLISH.__('%1 is %2 faster than %1', 'a', 'b'), 'a is b faster than a');
  assert.equal(ENGLISH._n('%1 op', '%1 ops', 1), '1 op');
  assert.equal(ENGLISH._n('%1 op', '%1 ops', 0), '0 ops');
});

test('highlighting keeps every character', () => {
  const lines = [
    '%%tpu compile --repeat 3',
    'for i, n in enumerate([1, 2.5e3]):  # count',
    "s = s.masked_fill(mask, float('-inf'))",
    'x = f"a {b}" + r\'\\d\' + """open',
    'unfinished = "no end',
    '',
    'forest = iffy and not_a_keyword1'
  ];
  for (const line of lines) {
    assert.equal(
      highlight(line)
        .map(token => token.text)
        .join(''),
      line
    );
  }
});

test('highlighting tells the kinds apart', () => {
  const kinds = (line: string): string[] =>
    highlight(line)
      .filter(token => token.kind !== 'text')
      .map(token => `${token.kind}:${token.text}`);
  assert.deepEqual(kinds('for x in [1, 2.5]:  # all "of" it'), [
    'keyword:for',
    'keyword:in',
    'number:1',
    'number:2.5',
    'comment:# all "of" it'
  ]);
  assert.deepEqual(kinds('s = "# no comment"'), ['string:"# no comment"']);
  assert.deepEqual(kinds('forest = iffy'), []);
  assert.deepEqual(kinds('%%tpu eager'), ['magic:%%tpu']);
});
