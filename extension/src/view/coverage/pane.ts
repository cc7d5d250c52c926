/**
 * The pane of one overload: statuses, what verified them, a call to try, schema, lowering, decomposition, program. `nothing` is
 * shown in place of details that cannot be read.
 */

import { EXECUTORS, shortDtype, type ICoverage, type IDetails, type IOverload } from '../../coverage.js';
import { h, type Child } from '../dom.js';
import { clip } from '../format.js';
import { highlight } from '../highlight.js';
import type { ITexts } from '../texts.js';
import { hereIcon, hereWords, thereWords, triedWords } from './status.js';

/** Asks whoever holds the notebook for a new cell; `detail` is its text. Nobody takes it outside JupyterLab. */
export const INSERT_CELL = 'tl-insert-cell';
const TRY = '%%tpu compare eager compile cpu';

export function pane(
  table: ICoverage,
  row: IOverload,
  details: IDetails | null,
  nothing: string,
  texts: ITexts
): HTMLElement[] {
  return [
    block(
      row.family,
      h('h3', {}, h('code', {}, `aten.${row.name}`)),
      h('p', {}, hereIcon(row.here), ' ', hereWords(row.here, texts), details?.note && `: ${details.note}`),
      facts(table, row, details, texts)
    ),
    ...(details
      ? parts(details, texts)
      : [h('p', { class: 'tl-Empty tl-muted' }, nothing || texts.__('Reading …'))])
  ];
}

function facts(table: ICoverage, row: IOverload, details: IDetails | null, texts: ITexts): HTMLElement {
  const tried = [...row.tried];
  const samples = tried.filter(letter => letter !== '-').length;
  const off = table.dtypes.filter((_, i) => tried[i] === 'f' || tried[i] === 'd').map(shortDtype);
  const needs = details?.needs ? texts.__(', needs aten.%1', details.needs) : '';
  const passes = texts.__('%1 of %2', tried.filter(letter => letter === 'p').length, samples);
  const pairs: [string, Child][] = [
    ['TorchTPU 0.2.0', thereWords(row.there, texts) + needs],
    [
      texts.__('used by'),
      row.models ? texts._n('%1 model type', '%1 model types', row.models) : texts.__('none that was counted')
    ],
    [texts.__('dtypes that pass'), samples ? passes : texts.__('no sample')],
    ...(off.length ? [[texts.__('differ or fail'), off.join(', ')] as [string, Child]] : []),
    ...EXECUTORS.map((name, i): [string, Child] => [name, triedWords(row.executors[i]!, texts)]),
    [
      texts.__('verified by'),
      details?.tests.length ? h('code', {}, clip(details.tests.join(', '), 120)) : texts.__('no test')
    ],
    [texts.__('on'), table.verified]
  ];
  return h(
    'dl',
    { class: 'tl-Pairs' },
    pairs.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])
  );
}

function parts(details: IDetails, texts: ITexts): HTMLElement[] {
  const found: HTMLElement[] = [];
  if (details.example) {
    found.push(
      block(texts.__('Try it'), code(details.example), tryButton(`${TRY}\n${details.example}`, texts))
    );
  }
  if (details.schema) {
    found.push(block(texts.__('Schema'), code(details.schema, 'tl-mod-wrapped')));
  }
  if (details.source) {
    found.push(folded(texts.__('Lowering'), details.where, details.source));
  }
  if (details.calls.length) {
    found.push(folded(texts.__('Decomposition'), '', details.calls.map(name => `aten.${name}`).join('\n')));
  }
  if (details.program) {
    const stablehlo = details.program.startsWith('module');
    const title = stablehlo ? texts.__('StableHLO of the example') : texts.__('Decomposition of the example');
    found.push(folded(title, '', details.program));
  }
  return found;
}

function block(title: string, ...children: Child[]): HTMLElement {
  return h('section', { class: 'tl-Pane-block' }, h('div', { class: 'tl-Pane-title' }, title), children);
}

function folded(title: string, note: string, text: string): HTMLElement {
  return h(
    'details',
    { class: 'tl-Pane-block' },
    h('summary', {}, title, note && h('span', { class: 'tl-muted' }, ` ${note}`)),
    code(text)
  );
}

function code(text: string, kind = ''): HTMLElement {
  const lines = text
    .split('\n')
    .map((line, i) => [
      i > 0 && '\n',
      highlight(line).map(token =>
        token.kind === 'text' ? token.text : h('span', { class: `tl-Code-${token.kind}` }, token.text)
      )
    ]);
  return h('pre', { class: `tl-Pane-code ${kind}`, tabindex: 0 }, lines);
}

/** In a notebook it inserts a cell; in a page of its own it copies the text. */
function tryButton(text: string, texts: ITexts): HTMLElement {
  const said = h('span', { class: 'tl-muted', role: 'status' });
  const inNotebook = document.querySelector('.jp-Notebook') !== null;
  const words = inNotebook ? texts.__('Insert below') : texts.__('Copy');
  const insert = h('button', { type: 'button', class: 'tl-Button' }, words);
  insert.addEventListener('click', () => {
    const taken = !insert.dispatchEvent(
      new CustomEvent(INSERT_CELL, { detail: text, bubbles: true, cancelable: true })
    );
    if (taken) {
      said.textContent = texts.__('a cell was inserted');
      return;
    }
    void navigator.clipboard.writeText(text).then(
      () => (said.textContent = texts.__('copied')),
      () => (said.textContent = texts.__('the clipboard cannot be written here'))
    );
  });
  return h('p', { class: 'tl-Pane-try' }, insert, ' ', said);
}
