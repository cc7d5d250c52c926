/** The controls above a fusion graph. */

import type { Collapse } from '../../graph/model.js';
import { h } from '../dom.js';
import { segments } from '../segments.js';
import type { ITexts } from '../texts.js';
import { FILES, type FileKind } from './export.js';
import { programLabel } from './head.js';
import type { ColourBy } from './paint.js';
import type { GraphState } from './state.js';

export interface IBarActions {
  readonly collapse: (by: Collapse) => void;
  readonly colour: (by: ColourBy) => void;
  readonly showAs: (kind: 'graph' | 'table') => void;
  readonly save: (kind: FileKind) => void;
  readonly target: (index: number) => void;
}

export interface IBar {
  readonly element: HTMLElement;
  /** The switch between programs; null where there is one. */
  readonly targets: HTMLElement | null;
}

export function graphBar(
  state: GraphState,
  search: readonly HTMLElement[],
  actions: IBarActions,
  texts: ITexts
): IBar {
  const colours: [ColourBy, string][] = [
    ['bound', texts.__('bound by')],
    ['time', texts.__('time')],
    ['bytes', texts.__('bytes')],
    ['none', texts.__('nothing')]
  ];
  const labels = state.programs.map(
    (program, i) => [String(i), programLabel(program, state.programs)] as const
  );
  const targets =
    labels.length > 1
      ? segments(texts.__('Target'), labels, String(state.current), chosen => actions.target(Number(chosen)))
      : null;
  const element = h(
    'div',
    { class: 'tl-Bar tl-mod-ruled' },
    [...search],
    choice<Collapse>(
      texts.__('Collapse by'),
      [
        ['kernel', texts.__('kernel')],
        ['module', texts.__('module')],
        ['line', texts.__('line')]
      ],
      state.collapse,
      actions.collapse
    ),
    choice<ColourBy>(
      texts.__('Colour'),
      state.program.time_s > 0 ? colours : colours.slice(2),
      state.colour,
      actions.colour
    ),
    h('span', { class: 'tl-Space' }),
    segments<'graph' | 'table'>(
      texts.__('Show as'),
      [
        ['graph', texts.__('Graph')],
        ['table', texts.__('Table')]
      ],
      'graph',
      actions.showAs
    ),
    saveChoice(actions.save, texts)
  );
  return { element, targets };
}

function choice<T extends string>(
  label: string,
  options: readonly (readonly [T, string])[],
  value: T,
  change: (chosen: T) => void
): HTMLElement {
  const select = h(
    'select',
    { class: 'tl-Select' },
    options.map(([key, text]) => h('option', { value: key, selected: key === value }, text))
  );
  select.addEventListener('change', () => change(options[select.selectedIndex]![0]));
  return h('label', { class: 'tl-muted' }, `${label} `, select);
}

function saveChoice(save: (kind: FileKind) => void, texts: ITexts): HTMLElement {
  const select = h(
    'select',
    { class: 'tl-Select', 'aria-label': texts.__('Export') },
    h('option', { value: '' }, texts.__('Export')),
    FILES.map(kind => h('option', { value: kind }, kind))
  );
  select.addEventListener('change', () => {
    const kind = FILES[select.selectedIndex - 1];
    select.selectedIndex = 0;
    if (kind) {
      save(kind);
    }
  });
  return select;
}
