/** The card of a mark: a finding or an exception in words. */

import type { IMark } from '../run.js';
import { h } from './dom.js';
import { clip, count, quantity } from './format.js';
import { icon } from './marks.js';
import { markIcon } from './summary.js';
import type { ITexts } from './texts.js';

/** What happened, where, what it cost, what to do: in that order. The original words come last. */
export function markCard(mark: IMark, texts: ITexts): HTMLElement {
  const cost = [
    mark.costNs !== null ? quantity('time', mark.costNs) : '',
    mark.bytes !== null ? texts.__('%1 moved', quantity('bytes', mark.bytes)) : ''
  ].filter(Boolean);
  const times = mark.count > 1 ? texts.__('%1 times', count(mark.count)) : '';
  return h(
    'section',
    { class: 'tl-Card' },
    h(
      'h4',
      {},
      h('span', { class: `tl-mod-${mark.severity}` }, icon(markIcon(mark.kind))),
      clip(mark.title, 200)
    ),
    mark.reason && h('p', {}, clip(mark.reason)),
    h(
      'dl',
      {},
      cost.length > 0 && [
        h('dt', {}, texts.__('Cost')),
        h(
          'dd',
          {},
          h('b', {}, cost[0]!),
          [...cost.slice(1), times].filter(Boolean).map(text => `, ${text}`)
        )
      ],
      cost.length === 0 && times && [h('dt', {}, texts.__('Seen')), h('dd', {}, times)],
      mark.remedy && [h('dt', {}, texts.__('Remedy')), h('dd', {}, withCode(clip(mark.remedy)))]
    ),
    mark.message && h('pre', {}, clip(mark.message))
  );
}

/** Text with its `backquoted` parts as code. */
export function withCode(text: string): (HTMLElement | string)[] {
  return text.split('`').map((part, i) => (i % 2 ? h('code', {}, part) : part));
}
