/** The fusion graph among the tabs of a run, with the run's selection; and alone, in an output or a widget. */

import type { LayoutEngine } from '../../graph/engine.js';
import { readPrograms, type IProgram } from '../../program.js';
import { RunError } from '../../reader.js';
import type { IPlace, IRun } from '../../run.js';
import { h } from '../dom.js';
import { captureKeys, offerKey } from '../keys.js';
import type { Selection } from '../selection.js';
import { ENGLISH, type ITexts } from '../texts.js';
import { GraphView } from './graphview.js';

/** The graph as a tab: a line chosen in it is chosen in the run, and the other way round. */
export function graphTab(
  run: IRun,
  selection: Selection,
  programs: readonly IProgram[],
  engine: LayoutEngine,
  texts: ITexts
): HTMLElement {
  const text = (place: IPlace | null): string =>
    place && run.sources[place.source] ? `${run.sources[place.source]!.name}:${place.line}` : '';
  let own = false;
  const view = new GraphView(
    programs,
    engine,
    {
      picked: place => {
        const [, name, line] = /^(.*):(\d+)$/.exec(place) ?? [];
        const source = run.sources.findIndex(one => one.name === name);
        own = true;
        selection.set(source < 0 ? null : { source, line: Number(line) });
        own = false;
      }
    },
    texts
  );
  selection.onChange(() => {
    if (!own) {
      view.follow(text(selection.place));
    }
  });
  if (selection.place) {
    view.follow(text(selection.place));
  }
  return view.element;
}

/** Shows a fusion graph alone; data that is none becomes one message. Returns the function that takes it away. */
export function renderGraph(
  host: HTMLElement,
  data: unknown,
  engine: LayoutEngine,
  texts: ITexts = ENGLISH
): () => void {
  const root = h('div', { class: 'tl-RunView' });
  host.append(root);
  let release = (): void => undefined;
  try {
    const programs = readPrograms(data);
    const foot = h('span', { 'aria-live': 'polite' }, texts.__('Nothing selected'));
    const view = new GraphView(
      programs,
      engine,
      {
        picked: (_, words) =>
          foot.replaceChildren(words ? texts.__('Selected: %1', words) : texts.__('Nothing selected'))
      },
      texts
    );
    root.append(
      h(
        'div',
        { class: 'tl-Run' },
        view.element,
        h('div', { class: 'tl-FootBar' }, foot, h('span', { class: 'tl-Keys' }, keys(texts)))
      )
    );
    release = captureKeys(
      root,
      key => offerKey(view.element, key),
      () => root.querySelector<HTMLElement>('.tl-Graph-canvas')?.focus()
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

function keys(texts: ITexts): (HTMLElement | string)[] {
  const key = (name: string): HTMLElement => h('kbd', {}, name);
  return [
    key('J'),
    key('K'),
    texts.__(' kernel  '),
    key('/'),
    texts.__(' find  '),
    key('Enter'),
    texts.__(' open  '),
    key('W'),
    texts.__(' why  '),
    key('T'),
    texts.__(' target')
  ];
}
