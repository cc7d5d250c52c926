/** The same cell in several modes: sentences first, then bars with their spread, then the table. */

import { steadyNs, type IComparison, type IModeResult } from '../run.js';
import type { IVerdict } from '../schema.js';
import { h } from './dom.js';
import { clip, count, ordinal, precise, quantity, ratio, small, unitFor } from './format.js';
import { memoryCurves } from './curves.js';
import type { ITexts } from './texts.js';

export function compareView(comparison: IComparison, texts: ITexts): HTMLElement {
  return h(
    'div',
    { class: 'tl-Compare' },
    h(
      'div',
      { class: 'tl-Bar' },
      h('span', { class: 'tl-muted' }, conditions(comparison, texts)),
      h('span', { class: 'tl-Measured' }, texts.__('measured'))
    ),
    h(
      'div',
      { class: 'tl-Compare-part' },
      h(
        'h4',
        {},
        comparison.verdicts.map(verdict => speedSentence(verdict, texts)).join(' ') ||
          texts.__('One mode ran, so there is nothing to compare.')
      ),
      bars(comparison, texts),
      comparison.verdicts
        .filter(verdict => verdict.verdict === 'close')
        .map(verdict => h('p', { class: 'tl-Note' }, closeNote(verdict, texts))),
      comparison.modes.filter(isUnsteady).map(mode => h('p', { class: 'tl-Note' }, unsteadyNote(mode, texts)))
    ),
    comparison.verdicts
      .filter(verdict => verdict.verdict === 'faster' && verdict.break_even !== null)
      .map(verdict =>
        h(
          'div',
          { class: 'tl-Compare-part' },
          h('h4', {}, breakEven(verdict, texts)),
          h('p', { class: 'tl-muted' }, firstCallNote(verdict, texts))
        )
      ),
    memoryCurves(comparison, texts),
    numerics(comparison, texts),
    kernelSentence(comparison, texts),
    h('div', { class: 'tl-Scroll' }, modesTable(comparison, texts))
  );
}

function conditions(comparison: IComparison, texts: ITexts): string {
  if (comparison.recorded) {
    return texts.__('Recorded runs: cells and starting states may differ, and no values were compared');
  }
  return texts._n(
    'Same cell, same starting state, one later run each',
    'Same cell, same starting state, %1 later runs each',
    Math.max(0, ...comparison.modes.map(mode => mode.timing.later_ns.length))
  );
}

/** Whether the longest later run took more than three times the shortest. */
function isUnsteady(mode: IModeResult): boolean {
  const later = mode.timing.later_ns;
  return !mode.failure && later.length > 1 && Math.max(...later) > 3 * Math.min(...later);
}

function unsteadyNote(mode: IModeResult, texts: ITexts): string {
  const later = mode.timing.later_ns;
  const vary = texts.__(
    'The times of %1 vary %2: the machine was busy',
    mode.mode,
    ratio(Math.max(...later) / Math.min(...later))
  );
  const threads = texts.__(', or its threads waited for each other (OMP_NUM_THREADS=1 tells)');
  return `${vary}${mode.device === 'cpu' ? threads : ''}. ${texts.__('Repeat when it is quiet.')}`;
}

function speedSentence(verdict: IVerdict, texts: ITexts): string {
  const { mode, against } = verdict;
  switch (verdict.verdict) {
    case 'faster':
      return texts.__('%1 is %2 faster than %3.', mode, ratio(verdict.ratio ?? 1), against);
    case 'slower':
      return texts.__('%1 is %2 slower than %3.', mode, ratio(verdict.ratio ?? 1), against);
    case 'close':
      return texts.__('%1 against %2 is too close to call.', mode, against);
    default:
      return texts.__('%1 failed.', mode);
  }
}

function closeNote(verdict: IVerdict, texts: ITexts): string {
  const overlap = texts.__('The times of %1 and %2 overlap.', verdict.mode, verdict.against);
  return verdict.repeats_needed === null
    ? overlap
    : `${overlap} ${texts.__('About %1 repeats would separate them: --repeat %1', count(verdict.repeats_needed))}`;
}

function breakEven(verdict: IVerdict, texts: ITexts): string {
  return verdict.break_even === 1
    ? texts.__('%1 pays for itself at once.', verdict.mode)
    : texts.__('%1 pays for itself from the %2 call.', verdict.mode, ordinal(verdict.break_even!));
}

function firstCallNote(verdict: IVerdict, texts: ITexts): string {
  const extra = verdict.extra_first_ns ?? 0;
  const saving = quantity('time', verdict.saving_ns ?? 0);
  return extra > 0
    ? texts.__(
        'It costs %1 more on the first call and saves %2 on each later one.',
        quantity('time', extra),
        saving
      )
    : texts.__('It saves %1 on each later call.', saving);
}

/** What the bars end at: a single late call of a mode does not shrink all others; its whisker ends in an arrow. */
function scaleOf(ran: readonly IModeResult[]): number {
  const slowest = Math.max(1, ...ran.map(mode => steadyNs(mode.timing)));
  return Math.min(2 * slowest, Math.max(slowest, ...ran.flatMap(mode => mode.timing.later_ns)));
}

/** What became of the kernels: `Kernels: 311 in eager, 204 in compile.` */
function kernelSentence(comparison: IComparison, texts: ITexts): HTMLElement | null {
  const own = comparison.modes.filter(mode => !mode.failure && mode.mode !== 'cpu');
  const base = own.find(mode => mode.mode === comparison.baseline);
  const others = own.filter(mode => mode !== base);
  if (!base || !others.length) {
    return null;
  }
  const number = (mode: IModeResult): string => `${mode.kernels_exact ? '' : '≥ '}${count(mode.kernels)}`;
  return h(
    'div',
    { class: 'tl-Compare-part' },
    h(
      'h4',
      {},
      texts.__(
        'Kernels started: %1 in %2, %3.',
        number(base),
        base.mode,
        others.map(mode => texts.__('%1 in %2', number(mode), mode.mode)).join(', ')
      )
    )
  );
}

/** One bar per mode from a common zero: the median, and a whisker from the shortest to the longest later call. */
function bars(comparison: IComparison, texts: ITexts): HTMLElement {
  const ran = comparison.modes.filter(mode => !mode.failure);
  const longest = scaleOf(ran);
  const best = ran.reduce<IModeResult | null>(
    (found, mode) => (found && steadyNs(found.timing) <= steadyNs(mode.timing) ? found : mode),
    null
  );
  const percent = (ns: number): string => `${((100 * Math.min(ns, longest)) / longest).toFixed(2)}%`;
  return h(
    'div',
    { class: 'tl-SpreadBars', role: 'list' },
    comparison.modes.map(mode => {
      const later = mode.timing.later_ns;
      const [low, high] = [Math.min(...later), Math.max(...later)];
      const steady = steadyNs(mode.timing);
      const value = mode.failure ? texts.__('failed') : quantity('time', steady);
      const spread =
        later.length > 1 ? texts.__(', from %1 to %2', quantity('time', low), quantity('time', high)) : '';
      return h(
        'div',
        {
          class: mode === best ? 'tl-SpreadBar tl-mod-best' : 'tl-SpreadBar',
          role: 'listitem',
          'aria-label': `${mode.mode}: ${value}${spread}`,
          title: mode.failure || `${mode.mode}: ${value}${spread}`
        },
        h('b', {}, mode.mode),
        h('span', { class: 'tl-muted' }, mode.target),
        h(
          'span',
          { class: 'tl-SpreadBar-track' },
          !mode.failure && h('i', { style: `width:${percent(steady)}` }),
          !mode.failure &&
            later.length > 1 &&
            h('u', {
              class: high > longest ? 'tl-mod-beyond' : null,
              style: `left:${percent(low)};width:${percent(Math.min(high, longest) - low)}`
            })
        ),
        h('span', { class: mode.failure ? 'tl-num tl-mod-wrong' : 'tl-num' }, value)
      );
    })
  );
}

/** The largest difference of each mode, by the name the cell left. */
function numerics(comparison: IComparison, texts: ITexts): HTMLElement | null {
  const against = comparison.modes.filter(mode => mode.difference !== null && !mode.failure);
  if (!against.length) {
    return null;
  }
  const outside = against.filter(mode => outOfTolerance(mode));
  const sentence = outside.length
    ? texts.__(
        '%1 leaves the tolerance against %2.',
        outside.map(mode => mode.mode).join(', '),
        comparison.reference
      )
    : texts.__('Every value agrees with %1.', comparison.reference);
  return h(
    'div',
    { class: 'tl-Compare-part' },
    h('h4', { class: outside.length ? 'tl-mod-wrong' : null }, sentence),
    h(
      'ul',
      { class: 'tl-Differences' },
      against.map(mode =>
        h('li', {}, h('b', {}, mode.mode), ' ', differenceWords(mode, texts), largestNames(mode, texts))
      )
    )
  );
}

function outOfTolerance(mode: IModeResult): boolean {
  const difference = mode.difference;
  return (
    difference !== null &&
    (difference.nonfinite ||
      (difference.max_rel !== null &&
        difference.tolerance !== null &&
        difference.max_rel > difference.tolerance))
  );
}

function differenceWords(mode: IModeResult, texts: ITexts): string {
  const difference = mode.difference!;
  const over = texts._n('one tensor compared', '%1 tensors compared', difference.compared);
  if (difference.nonfinite) {
    return texts.__('NaN or infinity in one of the two only, in %1; %2', clip(difference.name, 80), over);
  }
  if (difference.max_rel === null) {
    return over;
  }
  const tolerance =
    difference.tolerance === null ? '' : texts.__(' (tolerance %1)', small(difference.tolerance));
  const where = difference.name ? texts.__(' in %1', clip(difference.name, 80)) : '';
  return `${texts.__('largest relative difference %1', small(difference.max_rel))}${tolerance}${where}; ${over}`;
}

/** The values that differ most, by name and line. */
function largestNames(mode: IModeResult, texts: ITexts): HTMLElement | null {
  const largest = mode.difference?.largest ?? [];
  return largest.length
    ? h(
        'ol',
        { class: 'tl-Largest' },
        largest.map(one =>
          h(
            'li',
            {},
            h('code', { title: one.name }, clip(one.name, 80)),
            one.line > 0 && h('span', { class: 'tl-muted' }, texts.__(' line %1', one.line)),
            h(
              'span',
              { class: 'tl-num' },
              one.max_rel === null
                ? texts.__('NaN or infinity in one only, or another shape')
                : small(one.max_rel)
            )
          )
        )
      )
    : null;
}

function modesTable(comparison: IComparison, texts: ITexts): HTMLElement {
  const time = unitFor('time', Math.max(...comparison.modes.flatMap(mode => mode.timing.later_ns), 0));
  const zero = (value: number): HTMLElement | string =>
    value ? count(value) : h('span', { class: 'tl-muted' }, '0');
  const spread = (mode: IModeResult): string => {
    const later = mode.timing.later_ns;
    return later.length > 1
      ? `${precise(Math.min(...later) / time.size)}–${precise(Math.max(...later) / time.size)}`
      : '–';
  };
  const columns: [string, (mode: IModeResult) => string | HTMLElement, string][] = [
    [
      texts.__('first'),
      mode => quantity('time', mode.timing.first_ns),
      texts.__('The first call, with all compiling')
    ],
    [
      texts.__('later, median'),
      mode => (mode.timing.later_ns.length ? quantity('time', steadyNs(mode.timing)) : '–'),
      texts.__('The median of the later calls')
    ],
    [texts.__('spread, %1', time.name), spread, texts.__('The shortest and the longest later call')],
    [
      texts.__('peak'),
      mode => `${mode.peak_exact ? '' : '≥ '}${quantity('bytes', mode.peak_bytes)}`,
      texts.__('Most bytes alive at once')
    ],
    [texts.__('ops'), mode => zero(mode.ops), texts.__('Calls of operators that Python made')],
    [
      texts.__('kernels'),
      mode => (mode.kernels_exact ? zero(mode.kernels) : `≥ ${count(mode.kernels)}`),
      texts.__('Programs the device started, or kernels in them')
    ],
    [texts.__('syncs'), mode => zero(mode.syncs), texts.__('Times the host waited for a value')],
    [texts.__('fallbacks'), mode => zero(mode.fallbacks), texts.__('Operators that ran on the host')],
    [texts.__('breaks'), mode => zero(mode.graph_breaks), texts.__('Graph breaks of torch.compile')],
    [
      texts.__('recompiles'),
      mode => zero(mode.recompiles),
      texts.__('Programs compiled again for another shape or value')
    ]
  ];
  return h(
    'table',
    { class: 'tl-Modes' },
    h(
      'thead',
      {},
      h(
        'tr',
        {},
        h('th', { scope: 'col' }, texts.__('mode')),
        columns.map(([name, , title]) => h('th', { scope: 'col', class: 'tl-num', title }, name))
      )
    ),
    h(
      'tbody',
      {},
      comparison.modes.map(mode =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, mode.mode),
          mode.failure
            ? h(
                'td',
                { colspan: columns.length, class: 'tl-mod-wrong', title: mode.failure },
                clip(mode.failure, 300)
              )
            : columns.map(([, cell]) => h('td', { class: 'tl-num' }, cell(mode)))
        )
      )
    )
  );
}
