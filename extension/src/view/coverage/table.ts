/** The table of overloads: only the rows in sight are built. */

import { EXECUTORS, sortRows, type Column, type ICoverage, type IOverload } from '../../coverage.js';
import { h } from '../dom.js';
import { count } from '../format.js';
import type { ITexts } from '../texts.js';
import { hereIcon, hereWords, thereWords, triedBoxes } from './status.js';

const ROW = 24;
const ROWS_IN_SIGHT = 14;
/** Rows built above and below what is in sight. */
const SPARE = 8;

export class OverloadTable {
  readonly element: HTMLElement;

  constructor(
    private readonly table: ICoverage,
    private readonly choose: (row: IOverload) => void,
    private readonly texts: ITexts
  ) {
    const columns: [Column | null, string, string][] = [
      ['name', texts.__('operator aten.'), ''],
      ['here', texts.__('here'), '116px'],
      [null, texts.__('E F C'), '56px'],
      [null, texts.__('dtypes'), `${table.dtypes.length * 12 + 20}px`],
      ['there', 'TorchTPU 0.2.0', '122px'],
      ['models', texts.__('model types'), '100px']
    ];
    this.heads = columns.map(([key, title]) => [key, this.head(key, title)] as const);
    this.grid = h(
      'table',
      { class: 'tl-Ops tl-Overloads' },
      h(
        'colgroup',
        {},
        columns.map(([, , width]) => h('col', { style: width ? `width:${width}` : null }))
      ),
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          this.heads.map(([, head]) => head)
        )
      ),
      this.body
    );
    this.element = h(
      'div',
      { class: 'tl-Ops-scroll', tabindex: 0, role: 'region', 'aria-label': texts.__('Table of operators') },
      this.grid
    );
    this.element.style.maxHeight = `${(ROWS_IN_SIGHT + 1) * ROW}px`;
    this.element.addEventListener('scroll', () => this.draw(), { passive: true });
  }

  /** The rows that are shown, in their order. */
  get rows(): readonly IOverload[] {
    return this.shown;
  }

  /** Shows these rows from the first on; a chosen row that is among them stays in sight. */
  show(rows: readonly IOverload[]): void {
    this.found = rows;
    this.element.scrollTop = 0;
    this.arrange();
  }

  /** Marks a row as chosen and brings it into sight. */
  mark(row: IOverload | null): void {
    this.chosen = row;
    const at = row ? this.shown.indexOf(row) : -1;
    const top = this.element.scrollTop;
    if (at >= 0 && (at * ROW < top || at * ROW > top + (ROWS_IN_SIGHT - 1) * ROW)) {
      this.element.scrollTop = Math.max(0, (at - 2) * ROW);
    }
    this.draw();
  }

  /** The row so many places after the chosen one; the first where none is chosen. */
  neighbour(step: number): IOverload | undefined {
    const at = this.chosen ? this.shown.indexOf(this.chosen) : -1;
    return this.shown[at < 0 ? 0 : Math.min(this.shown.length - 1, Math.max(0, at + step))];
  }

  private head(key: Column | null, title: string): HTMLElement {
    const text =
      title === this.texts.__('E F C') ? { title: this.texts.__('eager, fuse, compile') } : { title: null };
    if (!key) {
      return h('th', { scope: 'col', ...text }, title);
    }
    const button = h('button', { type: 'button' }, title);
    button.addEventListener('click', () => {
      this.sort = {
        key,
        descending: this.sort.key === key ? !this.sort.descending : key === 'models'
      };
      this.arrange();
    });
    return h('th', { scope: 'col', class: key === 'models' ? 'tl-num' : null }, button);
  }

  private arrange(): void {
    this.shown = sortRows(this.found, this.sort.key, this.sort.descending);
    for (const [key, head] of this.heads) {
      if (key) {
        head.setAttribute(
          'aria-sort',
          key !== this.sort.key ? 'none' : this.sort.descending ? 'descending' : 'ascending'
        );
      }
    }
    this.grid.setAttribute('aria-rowcount', String(this.shown.length + 1));
    this.draw();
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.element.scrollTop / ROW) - SPARE);
    const last = Math.min(this.shown.length, first + ROWS_IN_SIGHT + 2 * SPARE);
    this.above.style.height = `${first * ROW}px`;
    this.below.style.height = `${(this.shown.length - last) * ROW}px`;
    const rows = this.shown.slice(first, last).map((row, i) => this.row(row, first + i + 2));
    this.body.replaceChildren(this.above, ...rows, this.below);
  }

  private row(row: IOverload, index: number): HTMLTableRowElement {
    const { texts } = this;
    const element = h(
      'tr',
      { 'aria-selected': String(row === this.chosen), 'aria-rowindex': index, 'data-name': row.name },
      h('td', { title: `aten.${row.name}` }, h('code', {}, row.name)),
      h('td', {}, hereIcon(row.here), ' ', hereWords(row.here, texts)),
      h('td', {}, triedBoxes(row.executors, EXECUTORS, texts.__('executors'), texts)),
      h('td', {}, triedBoxes(row.tried, this.table.dtypes, texts.__('dtypes'), texts)),
      h(
        'td',
        { class: row.there === 'missing' ? null : 'tl-muted' },
        row.there === 'missing' && [hereIcon('missing'), ' '],
        thereWords(row.there, texts)
      ),
      h('td', { class: 'tl-num' }, row.models ? count(row.models) : '')
    );
    element.addEventListener('click', () => this.choose(row));
    return element;
  }

  private readonly body = h('tbody', {});
  private readonly grid: HTMLTableElement;
  private readonly heads: readonly (readonly [Column | null, HTMLElement])[];
  private readonly above = h('tr', { 'aria-hidden': 'true' });
  private readonly below = h('tr', { 'aria-hidden': 'true' });
  private found: readonly IOverload[] = [];
  private shown: readonly IOverload[] = [];
  private chosen: IOverload | null = null;
  private sort: { key: Column; descending: boolean } = { key: 'models', descending: true };
}
