/** What a run comes to: one line when it is closed; target, figures and chips when it is open. */

import { marks, steadyNs, type IMark, type IRun } from '../run.js';
import { h } from './dom.js';
import { count, quantity } from './format.js';
import { icon, type IconName } from './marks.js';
import type { ITexts } from './texts.js';

/** A kind of mark with its number in the run. */
interface ITally {
  readonly kind: IMark['kind'];
  readonly count: number;
  readonly label: string;
}

function tallies(run: IRun, texts: ITexts): ITally[] {
  const t = run.totals;
  const all = marks(run);
  const failures = all.filter(mark => mark.kind === 'error').length;
  const interrupts = all.filter(mark => mark.kind === 'interrupt').length;
  return [
    { kind: 'error', count: failures, label: texts._n('%1 exception', '%1 exceptions', failures) },
    ...(interrupts
      ? [
          {
            kind: 'interrupt' as const,
            count: interrupts,
            label: texts._n('%1 interrupt', '%1 interrupts', interrupts)
          }
        ]
      : []),
    {
      kind: 'graph_break',
      count: t.graph_breaks,
      label: texts._n('%1 graph break', '%1 graph breaks', t.graph_breaks)
    },
    {
      kind: 'recompile',
      count: t.recompiles,
      label: texts._n('%1 recompile', '%1 recompiles', t.recompiles)
    },
    {
      kind: 'fallback',
      count: t.fallbacks,
      label: texts._n('%1 CPU fallback', '%1 CPU fallbacks', t.fallbacks)
    },
    { kind: 'sync', count: t.syncs, label: texts._n('%1 host sync', '%1 host syncs', t.syncs) },
    ...(run.flushes.length
      ? [
          {
            kind: 'flush' as const,
            count: run.flushes.length,
            label: texts._n('%1 flush', '%1 flushes', run.flushes.length)
          }
        ]
      : [])
  ];
}

export const markIcon = (kind: IMark['kind']): IconName =>
  kind === 'note' ? 'chevron' : kind === 'interrupt' ? 'error' : kind;

const severity = (kind: IMark['kind']): string =>
  kind === 'error'
    ? 'tl-mod-wrong'
    : kind === 'flush' || kind === 'interrupt'
      ? 'tl-mod-note'
      : 'tl-mod-cost';

/** `47 → 12`, with `≥` where the number of kernels is a lower bound. */
function opsToKernels(run: IRun): string {
  const { ops, kernels, kernels_exact } = run.totals;
  return `${count(ops)} → ${kernels_exact ? '' : '≥ '}${count(kernels)}`;
}

/** The closed run: a button that opens it. */
export function runLine(run: IRun, texts: ITexts): HTMLButtonElement {
  const shown = tallies(run, texts).filter(tally => tally.count > 0);
  const words = run.comparison
    ? [run.comparison.modes.map(mode => mode.mode).join(texts.__(' against '))]
    : [quantity('time', steadyNs(run.timing)), opsToKernels(run)];
  return h(
    'button',
    { class: 'tl-RunLine', type: 'button', 'aria-expanded': 'false' },
    icon('chevron'),
    h('b', {}, run.target),
    h('span', { class: 'tl-muted' }, run.mode),
    words.map(text => h('span', { class: 'tl-num' }, text)),
    shown.map(tally =>
      h(
        'span',
        { class: severity(tally.kind), title: tally.label, role: 'img', 'aria-label': tally.label },
        icon(markIcon(tally.kind))
      )
    )
  );
}

/** Target and figures of an open run. */
export function summary(run: IRun, texts: ITexts): HTMLElement {
  const { timing, totals, memory } = run;
  const repeats = timing.later_ns.length;
  const measured = h('span', { class: 'tl-Measured' }, texts.__('measured'));
  const figure = (label: (string | Node)[], value: string, title: string, note = ''): HTMLElement =>
    h(
      'div',
      { class: 'tl-Figure', title },
      h('div', { class: 'tl-Figure-label' }, label),
      h('div', { class: 'tl-Figure-value' }, value, note && h('small', {}, ` ${note}`))
    );
  const built = totals.builds ? texts.__('%1 compiling', quantity('time', totals.build_ns)) : '';
  const first = texts.__('first %1', quantity('time', timing.first_ns));
  return h(
    'div',
    { class: 'tl-Summary' },
    h(
      'div',
      { class: 'tl-Target' },
      h('span', { class: 'tl-muted' }, modeWords(run, texts)),
      h('strong', {}, run.target)
    ),
    !run.comparison && [
      figure(
        [
          repeats ? texts._n('Later run', 'Median of %1 later runs', repeats) : texts.__('Whole cell'),
          measured
        ],
        quantity('time', steadyNs(timing)),
        texts.__('Wall time of the cell, until the device was done'),
        repeats ? first : built
      ),
      figure(
        [texts.__('Ops → kernels')],
        opsToKernels(run),
        texts.__('Operators that Python called, and kernels that ran for them')
      ),
      figure(
        [texts.__('Peak memory')],
        `${memory.exact ? '' : '≥ '}${quantity('bytes', totals.peak_bytes)}`,
        texts.__('Most bytes alive at once: %1 B', count(totals.peak_bytes))
      )
    ]
  );
}

function modeWords(run: IRun, texts: ITexts): string {
  const name = run.name ? ` · ${run.name}` : '';
  const words: Record<string, string> = {
    eager: texts.__('eager on'),
    fuse: texts.__('fused for'),
    compile: texts.__('compiled for'),
    compare: texts.__('compared on')
  };
  return `${run.id}${name}${run.id || name ? ' · ' : ''}${words[run.mode] ?? run.mode}`;
}

/** A chip per kind of mark that occurs; what does not is said in muted words (a comparison counts by mode). `show` goes to the first line of a kind. */
export function chips(run: IRun, texts: ITexts, show: (mark: IMark) => void): HTMLElement | null {
  const all = marks(run);
  const some = tallies(run, texts).filter(tally => tally.count > 0);
  const none = run.comparison
    ? []
    : tallies(run, texts).filter(tally => tally.count === 0 && tally.kind !== 'error');
  if (!some.length && !none.length) {
    return null;
  }
  return h(
    'div',
    { class: 'tl-Chips' },
    some.map(tally => {
      const first = all.find(mark => mark.kind === tally.kind && mark.place !== null);
      const chip = h(
        'button',
        {
          class: `tl-Count ${severity(tally.kind)}`,
          type: 'button',
          disabled: !first,
          'data-kind': tally.kind
        },
        icon(markIcon(tally.kind)),
        tally.label
      );
      if (first) {
        chip.addEventListener('click', () => show(first));
      }
      return chip;
    }),
    h('span', { class: 'tl-muted' }, none.map(tally => tally.label).join(' · '))
  );
}
