/** One run: closed it is a line; open it shows summary, tabs and the selection. Plain DOM, used by the lab and by widgets. */

import type { LayoutEngine } from '../graph/engine.js';
import { readPrograms } from '../program.js';
import { marks, readRun, RunError, type IMark, type IRun } from '../run.js';
import { compareView } from './compare.js';
import { h } from './dom.js';
import { count, quantity } from './format.js';
import { graphTab } from './graph/graphtab.js';
import { captureKeys, offerKey } from './keys.js';
import { icon } from './marks.js';
import { memoryView } from './memory.js';
import { opsView } from './ops.js';
import { Selection, SHOWN } from './selection.js';
import { sourceView } from './source.js';
import { chips, runLine, summary } from './summary.js';
import { ENGLISH, type ITexts } from './texts.js';

interface ITab {
  readonly name: string;
  readonly count?: number;
  readonly build: () => HTMLElement;
}

/** What a view of a run may be given beside it. */
export interface IRunOptions {
  readonly texts?: ITexts;
  /** The data of the run's fusion graph, and what lays it out. */
  readonly graph?: unknown;
  readonly engine?: LayoutEngine;
  /** Starts open instead of as one line. */
  readonly open?: boolean;
}

/** Shows a run in an element; data that is no run becomes one message. Returns the function that takes it away. */
export function renderRun(host: HTMLElement, data: unknown, options: IRunOptions = {}): () => void {
  const root = h('div', { class: 'tl-RunView' });
  host.append(root);
  let release = (): void => undefined;
  try {
    release = new RunView(root, readRun(data), options).dispose;
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

class RunView {
  constructor(
    private readonly root: HTMLElement,
    private readonly run: IRun,
    options: IRunOptions
  ) {
    const { comparison } = run;
    const { graph, engine } = options;
    const texts = options.texts ?? ENGLISH;
    this.texts = texts;
    this.tabs = [{ name: texts.__('Source'), build: () => sourceView(run, this.selection, texts) }];
    if (!comparison || run.ops.id.length) {
      this.tabs.push({
        name: texts.__('Ops'),
        count: run.totals.ops,
        build: () => opsView(run, this.selection, texts)
      });
    }
    if (graph !== undefined && engine) {
      const programs = readPrograms(graph);
      this.tabs.push({
        name: texts.__('Graph'),
        count: programs[0]!.kernels.length,
        build: () => graphTab(run, this.selection, programs, engine, texts)
      });
    }
    if (run.memory.peak_bytes) {
      this.tabs.push({ name: texts.__('Memory'), build: () => memoryView(run, this.selection, texts) });
    }
    if (comparison) {
      this.current = this.tabs.length;
      this.tabs.push({ name: texts.__('Compare'), build: () => compareView(comparison, texts) });
    }
    // A comparison is itself the answer; another run is one line until somebody asks.
    this.show(comparison !== null || options.open === true);
    this.dispose = captureKeys(
      root,
      key => this.frame?.isConnected === true && this.act(key),
      () => (this.buttons[this.current] ?? root).focus()
    );
  }

  readonly dispose: () => void;

  /** Shows the whole run, or its line. */
  private show(open: boolean, focus = false): void {
    if (!open) {
      const line = runLine(this.run, this.texts);
      line.addEventListener('click', () => this.show(true, true));
      this.root.replaceChildren(line);
      if (focus) {
        line.focus();
      }
      return;
    }
    this.frame ??= this.build();
    this.root.replaceChildren(this.frame);
    if (focus) {
      this.buttons[this.current]?.focus();
    }
  }

  private build(): HTMLElement {
    const { run, texts } = this;
    const close = h(
      'button',
      { class: 'tl-Close', type: 'button', 'aria-expanded': 'true', title: texts.__('Show as one line') },
      texts.__('Close'),
      icon('chevron')
    );
    close.addEventListener('click', () => this.show(false, true));
    this.buttons = this.tabs.map((tab, i) => {
      const button = h(
        'button',
        { role: 'tab', type: 'button' },
        tab.name,
        tab.count ? h('small', {}, ` ${count(tab.count)}`) : null
      );
      button.addEventListener('click', () => this.open(i));
      return button;
    });
    const list = h(
      'div',
      { class: 'tl-Tabs', role: 'tablist', 'aria-label': texts.__('Views of the run') },
      this.buttons
    );
    list.addEventListener('keydown', event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step !== undefined) {
        event.preventDefault();
        this.open((this.current + step + this.tabs.length) % this.tabs.length);
        this.buttons[this.current]!.focus();
      }
    });
    this.selection.onChange(() => this.tell());
    this.open(this.current);
    this.tell();
    return h(
      'div',
      { class: 'tl-Run' },
      summary(run, texts),
      chips(run, texts, this.showMark),
      h('div', { class: 'tl-Head' }, list, close),
      this.panel,
      h(
        'div',
        { class: 'tl-FootBar' },
        this.foot,
        h('span', { class: 'tl-Keys' }, keys(this.tabs.length, texts))
      )
    );
  }

  private open(index: number): void {
    this.current = index;
    this.buttons.forEach((button, i) => {
      button.setAttribute('aria-selected', String(i === index));
      button.tabIndex = i === index ? 0 : -1;
    });
    this.built[index] ??= this.tabs[index]!.build();
    this.panel.setAttribute('aria-label', this.tabs[index]!.name);
    this.panel.replaceChildren(this.built[index]);
    // Once more when it has its size.
    requestAnimationFrame(() => this.built[index]?.dispatchEvent(new Event(SHOWN)));
  }

  private openNamed(name: string): void {
    const index = this.tabs.findIndex(tab => tab.name === name);
    if (index >= 0) {
      this.open(index);
    }
  }

  /** Goes to the line of a mark. */
  private readonly showMark = (mark: IMark): void => {
    this.openNamed(this.texts.__('Source'));
    this.selection.set(mark.place);
  };

  /** Says in the foot bar what is selected. */
  private tell(): void {
    const { run, selection, texts } = this;
    const { place, op, tensor } = selection;
    if (!place && op === null && tensor === null) {
      this.foot.replaceChildren(texts.__('Nothing selected'));
      return;
    }
    const parts: string[] = [];
    if (tensor !== null) {
      parts.push(texts.__('tensor of %1', quantity('bytes', run.storages.nbytes[tensor] ?? 0)));
    }
    if (op !== null) {
      parts.push(texts.__('op %1', count(op)));
    }
    if (place) {
      const source = run.sources[place.source]!;
      parts.push(source.kind === 'cell' ? texts.__('line %1', place.line) : `${source.name}:${place.line}`);
      const cost = run.lines.find(line => line.source === place.source && line.line === place.line);
      parts.push(
        cost
          ? `${texts._n('%1 op', '%1 ops', cost.ops)}, ${quantity('time', cost.time_ns)}`
          : texts.__('ran no op of the device')
      );
      if (cost?.backward_ns) {
        parts.push(texts.__('%1 in its backward', quantity('time', cost.backward_ns)));
      }
      const here = marks(run).filter(mark => selection.has(mark.place)).length;
      if (here) {
        parts.push(texts._n('%1 finding', '%1 findings', here));
      }
    }
    this.foot.replaceChildren(texts.__('Selected: '), h('span', { class: 'tl-strong' }, parts.join(' · ')));
  }

  private act(key: string): boolean {
    const number = Number(key) - 1;
    if (this.tabs[number]) {
      this.open(number);
      this.buttons[number]!.focus();
      return true;
    }
    if (offerKey(this.built[this.current], key)) {
      return true;
    }
    if (key === '/') {
      this.openNamed(this.texts.__('Ops'));
      this.panel.querySelector<HTMLInputElement>('.tl-Find')?.focus();
      return true;
    }
    if (key === 'Escape') {
      this.show(false, true);
      return true;
    }
    if (key === 'j' || key === 'k') {
      // From outside the table, the first key enters it.
      const rows = this.panel.querySelector<HTMLElement>('tr[tabindex="0"], .tl-Ops-scroll');
      if (rows && !rows.closest('table, .tl-Ops-scroll')?.contains(document.activeElement)) {
        rows.focus();
        return true;
      }
      document.activeElement?.dispatchEvent(
        new KeyboardEvent('keydown', { key: key === 'j' ? 'ArrowDown' : 'ArrowUp', bubbles: true })
      );
      return true;
    }
    return false;
  }

  private readonly texts: ITexts;
  private readonly selection = new Selection();
  private readonly tabs: ITab[];
  private readonly built: HTMLElement[] = [];
  private readonly panel = h('div', { class: 'tl-Panel', role: 'tabpanel' });
  private readonly foot = h('span', { 'aria-live': 'polite' });
  private buttons: HTMLButtonElement[] = [];
  private current = 0;
  private frame: HTMLElement | null = null;
}

function keys(tabs: number, texts: ITexts): (HTMLElement | string)[] {
  const key = (name: string): HTMLElement => h('kbd', {}, name);
  return [
    key('J'),
    key('K'),
    texts.__(' line  '),
    key('/'),
    texts.__(' find  '),
    key('1'),
    '–',
    key(String(tabs)),
    texts.__(' tab  '),
    key('Esc'),
    texts.__(' close')
  ];
}
