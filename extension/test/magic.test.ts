import assert from 'node:assert/strict';
import { test } from 'node:test';

import { applyEdit, canHaveMode, modeEdit, nextMode, parseMagic, targetOf, type Mode } from '../src/magic.js';

const set = (source: string, mode: Mode | null): string => applyEdit(source, modeEdit(source, mode));

test('a plain cell has no magic', () => {
  for (const source of [
    '',
    'x = 1',
    '# %%tpu eager',
    'x = 1\n%%tpu eager',
    ' %%tpu eager',
    '%%tpux eager',
    '%tpu status'
  ]) {
    assert.equal(parseMagic(source), null, source);
  }
});

test('the word, modes and options of the line are told apart', () => {
  const magic = parseMagic('%%tpu compare eager cpu --repeat 5 compile --quiet --name=a  --trace off\nx = 1');
  assert.ok(magic);
  assert.equal(magic.mode, 'compare');
  assert.deepEqual(magic.words, ['eager', 'cpu', 'compile']);
  assert.deepEqual(magic.options, ['--repeat', '5', '--quiet', '--name=a', '--trace', 'off']);
});

test('a mode that is not on offer is read but has no mode', () => {
  const magic = parseMagic('%%tpu trace');
  assert.equal(magic?.word, 'trace');
  assert.equal(magic?.mode, null);
  assert.equal(parseMagic('%%tpu')?.word, '');
});

test('a plain cell gets the magic as its first line', () => {
  assert.equal(set('x = 1', 'eager'), '%%tpu eager\nx = 1');
  assert.equal(set('', 'compile'), '%%tpu compile\n');
});

test('changing the mode keeps the options and the rest of the cell', () => {
  assert.equal(
    set('%%tpu eager --repeat 3 --quiet\nx = 1\n', 'compile'),
    '%%tpu compile --repeat 3 --quiet\nx = 1\n'
  );
  assert.equal(set('%%tpu fuse\nx', 'eager'), '%%tpu eager\nx');
  assert.equal(set('%%tpu\nx', 'eager'), '%%tpu eager\nx');
});

test('the modes after compare go with it', () => {
  assert.equal(set('%%tpu compare eager cpu --repeat 5\nx', 'eager'), '%%tpu eager --repeat 5\nx');
});

test('off takes the whole line', () => {
  assert.equal(set('%%tpu eager --repeat 3\nx = 1', null), 'x = 1');
  assert.equal(set('%%tpu eager', null), '');
  assert.equal(set('x = 1', null), 'x = 1');
});

test('the same mode again is no edit, so there is nothing to undo', () => {
  assert.equal(modeEdit('%%tpu compare eager cpu\nx', 'compare'), null);
});

test('other cell magics: stackable ones may stand around, other languages have no mode', () => {
  assert.equal(set('%%time\nx = 1', 'eager'), '%%tpu eager\n%%time\nx = 1');
  assert.equal(set('%%time\n%%tpu eager\nx = 1', 'compile'), '%%time\n%%tpu compile\nx = 1');
  assert.equal(set('%%time\n%%tpu eager\nx = 1', null), '%%time\nx = 1');
  assert.equal(canHaveMode('%%bash\nls'), false);
  assert.equal(modeEdit('%%bash\nls', 'eager'), null);
  assert.equal(canHaveMode('%%capture out\nx'), true);
});

test('blank lines before the magic are allowed, as in IPython', () => {
  assert.equal(set('\n%%tpu eager\nx', 'compile'), '\n%%tpu compile\nx');
});

test('edits lead from every mode to every other and back', () => {
  const bodies = ['x = 1', '', 'for i in range(3):\n    x = i\n'];
  const modes: (Mode | null)[] = [null, 'eager', 'compile', 'compare'];
  for (const body of bodies) {
    for (const from of modes) {
      for (const to of modes) {
        const start = set(body, from);
        const end = set(start, to);
        assert.equal(parseMagic(end)?.mode ?? null, to);
        assert.equal(set(end, null), body);
      }
    }
  }
});

test('cycling visits every mode and ends where it began', () => {
  const seen: (Mode | null)[] = [null];
  for (let i = 0; i < 5; i++) {
    seen.push(nextMode(seen[i]!));
  }
  assert.deepEqual(seen, [null, 'eager', 'fuse', 'compile', 'compare', null]);
});

test('options that the new mode refuses go, the others stay', () => {
  assert.equal(set('%%tpu compile --target v6e --repeat 3\nx', 'eager'), '%%tpu eager --repeat 3\nx');
  assert.equal(set('%%tpu compile --target=v6e,v5e --quiet\nx', 'fuse'), '%%tpu fuse --quiet\nx');
  assert.equal(set('%%tpu eager --trace off\nx', 'compare'), '%%tpu compare\nx');
  assert.equal(set('%%tpu eager --trace light\nx', 'compare'), '%%tpu compare --trace light\nx');
});

test('the settings say what a new line gets', () => {
  const chosen = { mode: 'compile', target: 'v6e', trace: 'off' } as const;
  const write = (source: string, mode: Mode): string => applyEdit(source, modeEdit(source, mode, chosen));
  assert.equal(write('x', 'compile'), '%%tpu compile --trace off --target v6e\nx');
  assert.equal(write('x', 'eager'), '%%tpu eager --trace off\nx');
  assert.equal(write('x', 'compare'), '%%tpu compare\nx');
  assert.equal(write('%%tpu compare\nx', 'compile'), '%%tpu compile --target v6e\nx');
  assert.deepEqual(
    [null, 'compile', 'compare', 'eager', 'fuse'].map(mode => nextMode(mode as Mode | null, 'compile')),
    ['compile', 'compare', 'eager', 'fuse', null]
  );
});

test('the targets of a line', () => {
  assert.deepEqual(targetOf('%%tpu compile --target v6e,v5e --target=tpu7x\nx'), ['v6e', 'v5e', 'tpu7x']);
  assert.deepEqual(targetOf('%%tpu compile\nx'), []);
});
