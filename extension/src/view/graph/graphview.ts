/** The viewer of fusion graphs: kernels as boxes, why two are two, targets side by side. Plain DOM. */

import type { LayoutEngine } from '../../graph/engine.js';
import { neighbour } from '../../graph/scene.js';
import type { IProgram } from '../../program.js';
import { h } from '../dom.js';
import { count } from '../format.js';
import { KEY } from '../keys.js';
import type { ITexts } from '../texts.js';
import { graphBar } from './bar.js';
import { boxCard, linkCard, wholeCard, type ICardActions } from './card.js';
import { saveGraph } from './export.js';
import { graphHead, graphLegend } from './head.js';
import { kernelTable } from './kerneltable.js';
import { GraphState } from './state.js';
import { Viewport } from './viewport.js';

/** How the viewer and what stands around it tell each other what is selected: places as `file:line`, ops by id. */
export interface IGraphHost {
  /** Something was selected in the graph; place empty: nothing, or no line is known. */
  readonly picked: (place: string, words: string) => void;
  /** The target in sight has changed. */
  readonly target?: (program: IProgram) => void;
}

export class GraphView {
  readonly element: HTMLElement;

  constructor(
    programs: readonly IProgram[],
    engine: LayoutEngine,
    private readonly host: IGraphHost,
    private readonly texts: ITexts
  ) {
    this.state = new GraphState(programs, engine);
    this.viewport = new Viewport(texts.__('Fusion graph'), {
      pick: (box, link, op) => this.pick(box, link, op),
      toggle: box => this.toggle(box)
    });
    this.find = h('input', {
      class: 'tl-Find',
      type: 'search',
      placeholder: texts.__('Find op, line or module'),
      'aria-label': texts.__('Find in graph')
    });
    this.find.addEventListener('input', () => {
      this.state.words = this.find.value;
      this.draw(true);
      this.tally();
    });
    this.find.addEventListener('keydown', event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        event.stopPropagation();
        this.next(event.shiftKey ? -1 : 1);
      }
    });
    const bar = graphBar(
      this.state,
      [this.find, this.found],
      {
        collapse: by => {
          this.state.collapse = by;
          void this.arrange(false);
        },
        colour: by => {
          this.state.colour = by;
          this.draw(true);
        },
        showAs: kind => this.showAs(kind),
        save: kind => {
          saveGraph(kind, this.state, this.main).catch((error: unknown) =>
            this.host.picked('', texts.__('The export failed: %1', String(error)))
          );
        },
        target: index => {
          this.state.current = index;
          void this.arrange(true);
        }
      },
      texts
    );
    this.targets = bar.targets;
    this.main = h('div', { class: 'tl-Graph-main' }, this.viewport.element, this.zoomButtons());
    this.element = h(
      'div',
      { class: 'tl-Graph' },
      h('div', { class: 'tl-Graph-top' }, this.head, this.targets),
      bar.element,
      h('div', { class: 'tl-Graph-panes' }, this.main, this.side),
      this.legend
    );
    this.element.addEventListener(KEY, event => {
      if (this.act((event as CustomEvent<string>).detail)) {
        event.preventDefault();
      }
    });
    void this.arrange(false);
  }

  /** Shows what is selected elsewhere: the box of a place. */
  follow(place: string): void {
    const box = place ? this.state.boxAt(place) : -1;
    if (this.state.select(box < 0 ? null : box, null)) {
      this.draw(true);
      this.reveal();
    }
  }

  // ---- parts ----

  private zoomButtons(): HTMLElement {
    const { texts } = this;
    const button = (text: string, label: string, act: () => void): HTMLElement => {
      const made = h(
        'button',
        { type: 'button', class: 'tl-Button', 'aria-label': label, title: label },
        text
      );
      made.addEventListener('click', act);
      return made;
    };
    return h(
      'div',
      { class: 'tl-Zoom' },
      button('+', texts.__('Zoom in'), () => this.viewport.zoom(1.25)),
      button('−', texts.__('Zoom out'), () => this.viewport.zoom(0.8)),
      button(texts.__('Fit'), texts.__('Show the whole graph'), () => this.viewport.fitAll())
    );
  }

  // ---- drawing ----

  private async arrange(keep: boolean): Promise<void> {
    const { state, texts } = this;
    this.head.replaceChildren(...graphHead(state.program, state.programs, texts));
    this.host.target?.(state.program);
    const slow = setTimeout(() => {
      this.side.replaceChildren(
        h(
          'p',
          { class: 'tl-Empty', role: 'status' },
          texts.__('Laying out %1 kernels', count(state.program.kernels.length))
        )
      );
    }, 500);
    const current = await state.arrange();
    clearTimeout(slow);
    if (current) {
      this.draw(keep);
      this.tally();
    }
  }

  private draw(keep: boolean): void {
    const { state } = this;
    const scene = state.scene();
    if (!scene) {
      return;
    }
    this.main.style.height = `${Math.round(Math.min(690, Math.max(260, scene.height + 16)))}px`;
    this.viewport.show(scene, state.look(), keep);
    this.legend.replaceChildren(...graphLegend(state.graph, state.colour, this.texts));
    this.drawSide();
    if (this.table) {
      this.showAs('table');
    }
  }

  private drawSide(): void {
    const { state, texts } = this;
    const { boxIndex, linkIndex } = state;
    const actions: ICardActions = {
      showLink: link => this.pick(null, link, null, true),
      showBox: box => this.pick(box, null, null, true),
      showOp: op => this.pick(state.boxOf(op), null, op, true)
    };
    const kernel = boxIndex >= 0 && state.graph.boxes[boxIndex]!.kind === 'kernel';
    this.side.replaceChildren(
      ...(linkIndex >= 0
        ? linkCard(state.program, state.graph, linkIndex, actions, texts)
        : kernel
          ? boxCard(state.program, state.graph, boxIndex, actions, texts)
          : wholeCard(state.program, state.programs, state.graph, actions, texts))
    );
    this.side.scrollTop = 0;
  }

  private showAs(kind: 'graph' | 'table'): void {
    const { state, texts } = this;
    this.table?.remove();
    this.table = null;
    this.viewport.element.hidden = kind === 'table';
    if (kind === 'table') {
      this.table = kernelTable(
        state.program,
        state.graph,
        state.boxIndex,
        box => this.pick(box, null, null),
        texts
      );
      this.main.append(this.table);
    }
  }

  // ---- what people do ----

  private pick(box: number | null, link: number | null, op: string | null, reveal = false): void {
    const { state } = this;
    if (state.select(box, link)) {
      this.draw(true);
      this.tell(op);
    }
    if (reveal) {
      this.reveal();
    }
  }

  private tell(op: string | null): void {
    const { state } = this;
    const box = state.graph.boxes[state.boxIndex];
    const link = state.graph.links[state.linkIndex];
    const row = box?.rows.find(one => one.op === op) ?? box?.rows.find(one => one.place);
    const words = link
      ? `${state.graph.boxes[link.from]!.title} → ${state.graph.boxes[link.to]!.title}`
      : box
        ? [box.subtitle, box.title].filter(Boolean).join(' · ')
        : '';
    this.host.picked(row?.place ?? '', words);
  }

  private reveal(): void {
    const scene = this.state.scene();
    const { boxIndex, linkIndex } = this.state;
    if (scene && boxIndex >= 0) {
      this.viewport.reveal(scene.rects[boxIndex]!);
    } else if (scene && linkIndex >= 0) {
      const { x, y } = scene.labels[linkIndex]!;
      this.viewport.reveal({ left: x - 60, right: x + 60, top: y - 40, bottom: y + 40 });
    }
  }

  private toggle(box: number): void {
    const { state } = this;
    const id = state.graph.boxes[box]!.id;
    if (!state.open.delete(id)) {
      state.open.add(id);
    }
    this.draw(true);
  }

  private next(step: 1 | -1): void {
    const { found, boxIndex } = this.state;
    if (found.length) {
      const at = found.indexOf(boxIndex);
      const to = at < 0 ? (step > 0 ? 0 : found.length - 1) : (at + step + found.length) % found.length;
      this.pick(found[to]!, null, null, true);
      this.tally();
    }
  }

  private tally(): void {
    const { found, words, boxIndex } = this.state;
    const at = found.indexOf(boxIndex);
    this.found.textContent = !words.trim()
      ? ''
      : at < 0
        ? this.texts._n('%1 found', '%1 found', found.length)
        : this.texts.__('%1 of %2', count(at + 1), count(found.length));
  }

  /** A key that the view around this one did not take. */
  private act(key: string): boolean {
    const { state } = this;
    const scene = state.scene();
    const ways = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' } as const;
    const kernels = state.graph.boxes.flatMap((box, i) => (box.kind === 'kernel' ? [i] : []));
    const go = (box: number | undefined): boolean => {
      if (box !== undefined && box >= 0) {
        this.pick(box, null, null, true);
      }
      return true;
    };
    if (!scene) {
      return false;
    }
    switch (key) {
      case 'ArrowUp':
      case 'ArrowDown':
      case 'ArrowLeft':
      case 'ArrowRight':
        return (
          this.focused() && go(state.boxIndex < 0 ? kernels[0] : neighbour(scene, state.boxIndex, ways[key]))
        );
      case 'j':
      case 'k': {
        const at = kernels.indexOf(state.boxIndex);
        return go(at < 0 ? kernels[0] : kernels[at + (key === 'j' ? 1 : -1)]);
      }
      case 'Enter':
        if (this.focused() && state.boxIndex >= 0) {
          this.toggle(state.boxIndex);
          return true;
        }
        return false;
      case 'w':
        return this.why();
      case 't':
        this.targets?.querySelectorAll('button')[(state.current + 1) % state.programs.length]?.click();
        return state.programs.length > 1;
      case '+':
      case '=':
        this.viewport.zoom(1.25);
        return true;
      case '-':
        this.viewport.zoom(0.8);
        return true;
      case '0':
        this.viewport.fitAll();
        return true;
      case '/':
        this.find.focus();
        return true;
      case 'Escape':
        if (state.select(null, null)) {
          this.draw(true);
          this.tell(null);
          return true;
        }
        return false;
      default:
        return false;
    }
  }

  private focused(): boolean {
    return document.activeElement === this.viewport.element;
  }

  /** Goes to the boundary of the selected box that has a reason and carries most bytes. */
  private why(): boolean {
    const { state } = this;
    const at = state.boxIndex;
    const near = state.graph.links
      .map((link, i) => ({ link, i }))
      .filter(({ link }) => link.why.length && (at < 0 || link.from === at || link.to === at))
      .sort((a, b) => b.link.bytes - a.link.bytes)[0];
    if (near) {
      this.pick(null, near.i, null, true);
    }
    return near !== undefined;
  }

  private readonly state: GraphState;
  private readonly viewport: Viewport;
  private readonly find: HTMLInputElement;
  private readonly found = h('span', { class: 'tl-muted tl-Found', 'aria-live': 'polite' });
  private readonly head = h('div', { class: 'tl-Graph-head' });
  private readonly side = h('div', { class: 'tl-Side', 'aria-live': 'polite' });
  private readonly legend = h('div', { class: 'tl-Legend tl-Graph-legend' });
  private readonly main: HTMLElement;
  private readonly targets: HTMLElement | null;
  private table: HTMLElement | null = null;
}
