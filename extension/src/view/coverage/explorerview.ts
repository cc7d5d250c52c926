/** The operator coverage explorer: filter, heat map, table, and the pane of the chosen overload. */

import {
  coverageCsv,
  EXECUTORS,
  filterRows,
  HERE,
  readCoverage,
  readDetails,
  type Here,
  type ICoverage,
  type IDetails,
  type IOverload
} from '../../coverage.js';
import { RunError } from '../../reader.js';
import { h } from '../dom.js';
import { count } from '../format.js';
import { download } from '../graph/export.js';
import { captureKeys } from '../keys.js';
import { ENGLISH, type ITexts } from '../texts.js';
import { HeatMap } from './heat.js';
import { pane } from './pane.js';
import { hereIcon, hereWords } from './status.js';
import { OverloadTable } from './table.js';

/** Shows a table of operators; data that is none becomes one message. Returns the function that takes it away. */
export function renderCoverage(host: HTMLElement, data: unknown, texts: ITexts = ENGLISH): () => void {
  const root = h('div', { class: 'tl-RunView' });
  host.append(root);
  let release = (): void => undefined;
  try {
    const explorer = new Explorer(readCoverage(data), texts);
    root.append(explorer.element);
    release = captureKeys(
      root,
      key => explorer.key(key),
      () => explorer.focusTable()
    );
  } catch (error) {
    if (!(error instanceof RunError)) {
      throw error;
    }
    root.append(h('p', { class: 'tl-Error', role: 'alert' }, error.message));
  }
  return () => {
    release();
    root.remove();
  };
}

class Explorer {
  readonly element: HTMLElement;

  constructor(
    private readonly table: ICoverage,
    private readonly texts: ITexts
  ) {
    this.heat = new HeatMap(
      table,
      (family, dtype) => {
        this.family = family;
        this.dtype = dtype;
        this.arrange();
      },
      texts
    );
    this.list = new OverloadTable(table, row => this.select(row), texts);
    this.find = h('input', {
      class: 'tl-Find',
      type: 'search',
      placeholder: texts.__('Find, or family:sort'),
      'aria-label': texts.__('Filter operators')
    });
    this.find.addEventListener('input', () => this.arrange());
    this.element = h(
      'div',
      { class: 'tl-Run tl-Coverage' },
      h(
        'div',
        { class: 'tl-Bar' },
        this.find,
        HERE.map(here => this.chip(here)),
        h('span', { class: 'tl-Space' }),
        this.executorChoice()
      ),
      h(
        'div',
        { class: 'tl-Coverage-two' },
        h(
          'div',
          { class: 'tl-Coverage-main' },
          this.heat.element,
          h(
            'p',
            { class: 'tl-Coverage-legend' },
            texts.__(
              'Number: % of the family’s overloads with samples that run on the device and agree with the CPU.  · no samples'
            )
          ),
          h(
            'div',
            { class: 'tl-Bar tl-mod-ruled' },
            this.tally,
            h('span', { class: 'tl-Space' }),
            this.clear(),
            this.exportButton()
          ),
          this.list.element
        ),
        this.side
      ),
      h('div', { class: 'tl-FootBar' }, this.foot, h('span', { class: 'tl-Keys' }, keys(texts)))
    );
    this.arrange();
    void readDetails(table.details).then(
      details => {
        this.details = details;
        this.draw();
      },
      () => {
        this.failed = true;
        this.draw();
      }
    );
  }

  /** Takes a key; true means taken. */
  key(key: string): boolean {
    const step = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 }[key];
    const focused = this.element.ownerDocument.activeElement;
    if (step !== undefined && (key.length === 1 || focused === this.list.element)) {
      const next = this.list.neighbour(step);
      if (next) {
        this.select(next);
      }
      return true;
    }
    if (key === '/') {
      this.find.focus();
      return true;
    }
    if (key === 'Escape' && (this.family || this.dtype)) {
      this.family = this.dtype = '';
      this.arrange();
      return true;
    }
    return false;
  }

  focusTable(): void {
    this.list.element.focus();
  }

  private chip(here: Here): HTMLElement {
    const size = this.table.rows.filter(row => row.here === here).length;
    const button = h(
      'button',
      { type: 'button', class: 'tl-StatusChip', 'aria-pressed': 'true' },
      hereIcon(here),
      hereWords(here, this.texts),
      h('span', { class: 'tl-muted' }, count(size))
    );
    button.addEventListener('click', () => {
      if (!this.statuses.delete(here)) {
        this.statuses.add(here);
      }
      button.setAttribute('aria-pressed', String(this.statuses.has(here)));
      this.arrange();
    });
    return button;
  }

  private executorChoice(): HTMLElement {
    const { texts } = this;
    const names = ['', ...EXECUTORS];
    const select = h(
      'select',
      { class: 'tl-Select', 'aria-label': texts.__('Passes in executor') },
      names.map(name =>
        h('option', { value: name }, name ? texts.__('passes in %1', name) : texts.__('all executors'))
      )
    );
    select.addEventListener('change', () => {
      this.executor = names[select.selectedIndex]!;
      this.arrange();
    });
    return select;
  }

  private exportButton(): HTMLElement {
    const button = h('button', { type: 'button', class: 'tl-Button' }, this.texts.__('Export CSV'));
    button.addEventListener('click', () =>
      download(coverageCsv(this.table, this.list.rows), 'operators.csv', 'text/csv')
    );
    return button;
  }

  private clear(): HTMLElement {
    this.all.textContent = this.texts.__('Show all');
    this.all.addEventListener('click', () => {
      this.family = this.dtype = this.find.value = '';
      this.arrange();
    });
    return this.all;
  }

  /** Filters, counts, and shows what is left. */
  private arrange(): void {
    const { family, dtype, executor, statuses, texts } = this;
    const rows = filterRows(this.table, this.find.value, { statuses, family, dtype, executor });
    this.heat.mark(family, dtype);
    this.list.show(rows);
    const words = [family && texts.__('family %1', family), dtype].filter(word => word).join(' · ');
    const many = rows.length === 1 ? texts.__('1 overload') : texts.__('%1 overloads', count(rows.length));
    this.tally.replaceChildren(h('b', {}, many), h('span', { class: 'tl-muted' }, words && ` ${words}`));
    this.all.hidden = !family && !dtype && !this.find.value;
    if (!this.chosen || !rows.includes(this.chosen)) {
      this.select(this.list.rows[0] ?? null);
    } else {
      this.list.mark(this.chosen);
    }
  }

  private select(row: IOverload | null): void {
    this.chosen = row;
    this.list.mark(row);
    this.foot.textContent = row
      ? this.texts.__('Selected: %1', `aten.${row.name}`)
      : this.texts.__('Nothing selected');
    this.draw();
  }

  private draw(): void {
    const { chosen, texts } = this;
    if (!chosen) {
      this.side.replaceChildren(
        h('p', { class: 'tl-Empty tl-muted' }, texts.__('No overload has all of that. Take a word away.'))
      );
      return;
    }
    const nothing = this.failed ? texts.__('The details of this table cannot be read.') : '';
    this.side.replaceChildren(
      ...pane(this.table, chosen, this.details?.[chosen.index] ?? null, nothing, texts)
    );
  }

  private readonly heat: HeatMap;
  private readonly list: OverloadTable;
  private readonly find: HTMLInputElement;
  private readonly tally = h('span', { 'aria-live': 'polite' });
  private readonly side = h('div', { class: 'tl-Coverage-side', 'aria-live': 'polite' });
  private readonly foot = h('span', {});
  private readonly all = h('button', { type: 'button', class: 'tl-Button' });
  private readonly statuses = new Set<Here>(HERE);
  private family = '';
  private dtype = '';
  private executor = '';
  private chosen: IOverload | null = null;
  private details: readonly IDetails[] | null = null;
  private failed = false;
}

function keys(texts: ITexts): (HTMLElement | string)[] {
  const key = (name: string): HTMLElement => h('kbd', {}, name);
  return [
    key('J'),
    key('K'),
    texts.__(' overload  '),
    key('/'),
    texts.__(' find  '),
    key('Esc'),
    texts.__(' all families')
  ];
}
