/**
 * What the last run of a cell knows of its lines, in the gutter of the editor: time with a bar, and marks. Everything is tied to
 * the text of a line, so an edited line loses its mark instead of lending it to another.
 */

import type { ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import type { TranslationBundle } from '@jupyterlab/translation';
import { RangeSet, StateEffect, StateField, type Extension, type Range } from '@codemirror/state';
import {
  EditorView,
  gutter,
  GutterMarker,
  hoverTooltip,
  keymap,
  showTooltip,
  ViewPlugin,
  type Tooltip
} from '@codemirror/view';

import { anchored, cellLines, type ICellLine } from './celllines.js';
import { unpacked } from './packed.js';
import { readRun, RunError, type IMark, type IRun } from './run.js';
import { RUN_MIME_TYPE } from './tokens.js';
import { h } from './view/dom.js';
import { inUnit, quantity, unitFor, type IUnit } from './view/format.js';
import { icon } from './view/marks.js';
import { markCard } from './view/markcard.js';
import { markIcon } from './view/summary.js';

/** Width of the longest bar in px. */
const BAR = 34;
const MARKS = 2;

/** What an editor shows beside its lines; null: nothing. */
interface IShown {
  readonly lines: readonly ICellLine[];
  readonly unit: IUnit;
  readonly longest: number;
}

const show = StateEffect.define<IShown | null>();

const shownField = StateField.define<IShown | null>({
  create: () => null,
  update: (value, transaction) =>
    transaction.effects.reduce<IShown | null>(
      (found, effect) => (effect.is(show) ? effect.value : found),
      value
    )
});

/** By line number of the document, what is known of it: recomputed when text or run change. */
const anchors = StateField.define<ReadonlyMap<number, ICellLine>>({
  create: () => new Map(),
  update: (value, transaction) => {
    const shown = transaction.state.field(shownField);
    const changed = transaction.docChanged || transaction.effects.some(effect => effect.is(show));
    return changed
      ? shown
        ? anchored(shown.lines, transaction.state.doc.toString().split('\n'))
        : new Map()
      : value;
  }
});

const pin = StateEffect.define<Tooltip | null>();

/** The card that was asked for by a click or a key: it stays until the text or the cursor changes, or Escape. */
const pinned = StateField.define<Tooltip | null>({
  create: () => null,
  update: (value, transaction) => {
    for (const effect of transaction.effects) {
      if (effect.is(pin)) {
        return effect.value;
      }
    }
    return transaction.docChanged || transaction.selection ? null : value;
  },
  provide: field => showTooltip.from(field)
});

/** Opens the card of the marks on the line at a position. False: there is none. */
export function pinMarks(view: EditorView, position: number, trans: TranslationBundle): boolean {
  const tooltip = cardAt(view, position, trans);
  view.dispatch({ effects: pin.of(tooltip) });
  return tooltip !== null;
}

function cardAt(view: EditorView, position: number, trans: TranslationBundle): Tooltip | null {
  const line = view.state.doc.lineAt(position);
  const known = view.state.field(anchors, false)?.get(line.number);
  return known?.marks.length
    ? { pos: line.from, end: line.to, above: false, create: () => ({ dom: popover(known.marks, trans) }) }
    : null;
}

class LineMarker extends GutterMarker {
  constructor(
    private readonly line: ICellLine,
    private readonly shown: IShown
  ) {
    super();
  }

  override eq(other: LineMarker): boolean {
    return other.line === this.line && other.shown === this.shown;
  }

  override toDOM(): Node {
    const { line, shown } = this;
    const { timeNs } = line;
    const title = [timeNs === null ? '' : quantity('time', timeNs), ...line.marks.map(mark => mark.title)]
      .filter(Boolean)
      .join('; ');
    return h(
      'div',
      { class: 'tl-Gutter-line', title, role: 'img', 'aria-label': title },
      h('span', { class: timeNs ? null : 'tl-muted' }, timeNs === null ? '' : inUnit(timeNs, shown.unit)),
      h('i', {
        style: `width:${timeNs ? Math.max(1.5, (BAR * timeNs) / shown.longest).toFixed(1) : 0}px`
      }),
      h(
        'b',
        {},
        line.marks
          .slice(0, MARKS)
          .map(mark => h('u', { class: `tl-mod-${mark.severity}` }, icon(markIcon(mark.kind)))),
        line.marks.length > MARKS && h('small', {}, `+${line.marks.length - MARKS}`)
      )
    );
  }
}

/** The extension for the editor of one cell. */
export function costGutter(model: ICellModel, trans: TranslationBundle): Extension {
  const outputs = (model as ICodeCellModel).outputs;
  const follow = ViewPlugin.fromClass(
    class {
      constructor(private readonly view: EditorView) {
        outputs.changed.connect(this.refresh, this);
        this.refresh();
      }

      destroy(): void {
        outputs.changed.disconnect(this.refresh, this);
        this.turn = -1;
      }

      private refresh(): void {
        const turn = ++this.turn;
        void lastRun(model).then(run => {
          if (turn === this.turn) {
            this.view.dispatch({ effects: show.of(shownOf(run)) });
          }
        });
      }

      private turn = 0;
    }
  );
  return [
    shownField,
    anchors,
    follow,
    gutter({
      class: 'tl-Gutter',
      domEventHandlers: {
        click: (view, line) => pinMarks(view, line.from, trans)
      },
      markers
    }),
    pinned,
    keymap.of([
      {
        key: 'Escape',
        run: view => {
          const open = view.state.field(pinned) !== null;
          if (open) {
            view.dispatch({ effects: pin.of(null) });
          }
          return open;
        }
      }
    ]),
    hoverTooltip((view, position) => (view.state.field(pinned) ? null : cardAt(view, position, trans)), {
      hoverTime: 300
    }),
    // An empty gutter would be a grey stripe.
    EditorView.editorAttributes.compute([anchors], state => ({
      class: state.field(anchors).size ? 'tl-mod-costs' : ''
    }))
  ];
}

function markers(view: EditorView): RangeSet<GutterMarker> {
  const shown = view.state.field(shownField);
  const ranges: Range<GutterMarker>[] = [];
  if (shown) {
    for (const [number, line] of view.state.field(anchors)) {
      if (number <= view.state.doc.lines) {
        ranges.push(new LineMarker(line, shown).range(view.state.doc.line(number).from));
      }
    }
  }
  return RangeSet.of(ranges, true);
}

function popover(marks: readonly IMark[], trans: TranslationBundle): HTMLElement {
  return h(
    'div',
    { class: 'tl-RunView tl-Popover' },
    marks.map(mark => markCard(mark, trans))
  );
}

function shownOf(run: IRun | null): IShown | null {
  const lines = run ? cellLines(run) : [];
  const longest = Math.max(0, ...lines.map(line => line.timeNs ?? 0));
  return lines.length ? { lines, unit: unitFor('time', longest), longest: Math.max(1, longest) } : null;
}

const known = new WeakMap<object, Promise<IRun | null>>();

/** The last run among the outputs of a cell; null without one, or if it cannot be read. */
export function lastRun(model: ICellModel): Promise<IRun | null> {
  const { outputs } = model as ICodeCellModel;
  for (let i = outputs.length - 1; i >= 0; i--) {
    const data = outputs.get(i).data[RUN_MIME_TYPE];
    if (typeof data === 'object' && data !== null) {
      let run = known.get(data);
      if (run === undefined) {
        run = readOrNull(data);
        known.set(data, run);
      }
      return run;
    }
  }
  return Promise.resolve(null);
}

async function readOrNull(data: unknown): Promise<IRun | null> {
  try {
    return readRun(await unpacked(data));
  } catch (error) {
    // The output below the cell says what is wrong with it.
    if (error instanceof RunError) {
      return null;
    }
    throw error;
  }
}

/** Lines of a cell's text that carry a mark of its last run, from 0. */
export async function markedLines(model: ICellModel): Promise<number[]> {
  const run = await lastRun(model);
  if (!run) {
    return [];
  }
  const found = anchored(cellLines(run), model.sharedModel.getSource().split('\n'));
  return [...found]
    .flatMap(([number, line]) => (line.marks.length ? [number - 1] : []))
    .sort((a, b) => a - b);
}
