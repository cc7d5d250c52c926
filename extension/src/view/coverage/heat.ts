/** The heat map: a family in each row, a dtype in each column, a button in each cell that filters the table. */

import { heatRows, shortDtype, type ICoverage } from '../../coverage.js';
import { h } from '../dom.js';
import { count } from '../format.js';
import type { ITexts } from '../texts.js';
import { hereIcon } from './status.js';

export class HeatMap {
  readonly element: HTMLElement;

  /** `choose` is told the family and dtype of a cell that is pressed; either may be empty. */
  constructor(table: ICoverage, choose: (family: string, dtype: string) => void, texts: ITexts) {
    const cells: HTMLElement[] = [h('span', {})];
    for (const dtype of table.dtypes) {
      cells.push(
        this.button(
          '',
          dtype,
          [shortDtype(dtype)],
          'tl-Heat-head',
          texts.__('All families, %1', dtype),
          choose
        )
      );
    }
    for (const { family, size, cells: shares } of heatRows(table)) {
      const name = [h('span', {}, family), h('span', { class: 'tl-muted' }, count(size))];
      cells.push(this.button(family, '', name, 'tl-Heat-family', texts.__('%1, all dtypes', family), choose));
      shares.forEach(({ tried, ran }, i) => {
        const dtype = table.dtypes[i]!;
        // Never rounded up to 100.
        const share = tried ? Math.floor((100 * ran) / tried) : 0;
        const label = tried
          ? texts.__('%1, %2: %3 of %4 overloads run on the device', family, dtype, ran, tried)
          : texts.__('%1, %2: no samples', family, dtype);
        const content = !tried ? '·' : ran ? String(share) : hereIcon('missing');
        const button = this.button(family, dtype, [content], 'tl-Heat-cell', label, choose);
        if (ran) {
          button.style.setProperty('--tl-share', `${Math.round(6 + ((share * share) / 100) * 0.46)}%`);
        } else {
          button.classList.add('tl-mod-none');
        }
        cells.push(button);
      });
    }
    this.element = h(
      'div',
      {
        class: 'tl-Heat',
        role: 'group',
        'aria-label': texts.__('Share of operators that run on the device, family by dtype'),
        style: `grid-template-columns: minmax(152px, 1.6fr) repeat(${table.dtypes.length}, minmax(30px, 1fr))`
      },
      cells
    );
  }

  /** Marks the cell of a family and dtype as chosen. */
  mark(family: string, dtype: string): void {
    for (const [key, button] of this.buttons) {
      button.setAttribute(
        'aria-pressed',
        String((family !== '' || dtype !== '') && key === `${family}|${dtype}`)
      );
    }
  }

  private button(
    family: string,
    dtype: string,
    content: (Node | string)[],
    kind: string,
    label: string,
    choose: (family: string, dtype: string) => void
  ): HTMLElement {
    const button = h(
      'button',
      { type: 'button', class: kind, 'aria-label': label, 'aria-pressed': 'false', title: label },
      content
    );
    button.addEventListener('click', () => {
      const again = button.getAttribute('aria-pressed') === 'true';
      choose(again ? '' : family, again ? '' : dtype);
    });
    this.buttons.set(`${family}|${dtype}`, button);
    return button;
  }

  private readonly buttons = new Map<string, HTMLElement>();
}
