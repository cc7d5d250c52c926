/** The side card of a fusion graph: a kernel with its costs and its HLO, a boundary with why two kernels are two, or the whole. */

import { opName, shortPlace, type IBox, type IFusionGraph, type ILink } from '../../graph/model.js';
import type { IInstruction, INotFused, IProgram } from '../../program.js';
import { specText } from '../../run.js';
import { h, type Child } from '../dom.js';
import { clip, count, precise, quantity } from '../format.js';
import { withCode } from '../markcard.js';
import { programLabel } from './head.js';
import type { ITexts } from '../texts.js';

/** At most this many lines of HLO and reasons are listed. */
const MOST = 60;

export interface ICardActions {
  readonly showLink: (index: number) => void;
  readonly showBox: (index: number) => void;
  readonly showOp: (op: string) => void;
}

const block = (...children: Child[]): HTMLElement => h('section', { class: 'tl-Side-block' }, children);

const figures = (rows: readonly (readonly [string, Child] | null)[]): HTMLElement =>
  h(
    'dl',
    { class: 'tl-Figures' },
    rows.map(row => row && [h('dt', {}, row[0]), h('dd', {}, row[1])])
  );

const predicted = (texts: ITexts): HTMLElement => h('span', { class: 'tl-Predicted' }, texts.__('predicted'));

const bytes = (value: number): string => quantity('bytes', value);

/** What is known of a box. */
export function boxCard(
  program: IProgram,
  graph: IFusionGraph,
  index: number,
  actions: ICardActions,
  texts: ITexts
): HTMLElement[] {
  const box = graph.boxes[index]!;
  const kernels = box.kernels.map(i => program.kernels[i]!);
  const { target } = program;
  const ridge = target.hbm_bandwidth ? target.flops / target.hbm_bandwidth : 0;
  const bound = {
    mxu: texts.__('MXU compute'),
    hbm: texts.__('HBM bandwidth'),
    ovh: texts.__('on chip'),
    '': ''
  };
  const vmem = kernels.reduce((sum, kernel) => sum + kernel.vmem_bytes, 0);
  const places = [...new Set(kernels.flatMap(kernel => kernel.lines))];
  const neighbours = graph.links.flatMap((link, i) =>
    (link.from === index || link.to === index) && link.why.length ? [{ link, i }] : []
  );
  return [
    block(
      h(
        'div',
        { class: 'tl-Label' },
        [box.subtitle, ...places.slice(0, 2).map(shortPlace)].filter(Boolean).join(' · ')
      ),
      h('h4', {}, clip(box.title, 200)),
      kernels.some(kernel => kernel.inherited) &&
        h('p', { class: 'tl-muted' }, texts.__('Added by the compiler; it shows the ops of what it serves.')),
      figures([
        box.timeS > 0
          ? [texts.__('Lower bound'), [`≥ ${quantity('time', box.timeS * 1e9)} `, predicted(texts)]]
          : null,
        box.bound ? [texts.__('Bound by'), bound[box.bound]] : null,
        [texts.__('Compute'), quantity('flops', box.flops)],
        [
          target.hbm_bytes ? texts.__('HBM read and written') : texts.__('Read and written'),
          bytes(box.bytes)
        ],
        box.bytes > 0 && box.flops > 0
          ? [
              texts.__('FLOP per byte'),
              `${precise(box.flops / box.bytes)}${ridge ? texts.__(' (ridge %1)', count(Math.round(ridge))) : ''}`
            ]
          : null,
        vmem > 0 ? [texts.__('VMEM read and written'), bytes(vmem)] : null
      ])
    ),
    neighbours.length
      ? block(
          h('h4', {}, texts.__('Not fused with')),
          neighbours.slice(0, MOST).map(({ link, i }) => {
            const other = graph.boxes[link.from === index ? link.to : link.from]!;
            return linkButton(
              `${link.from === index ? '↓' : '↑'} ${other.title} · ${bytes(link.bytes)}`,
              () => actions.showLink(i)
            );
          })
        )
      : h('div', {}),
    opsBlock(program, box, actions, texts),
    hloBlock(program, box, texts)
  ];
}

function linkButton(text: string, act: () => void): HTMLElement {
  const button = h('button', { type: 'button', class: 'tl-TextButton' }, clip(text, 90));
  button.addEventListener('click', act);
  return button;
}

function opsBlock(program: IProgram, box: IBox, actions: ICardActions, texts: ITexts): HTMLElement {
  const ops = new Map(program.ops.map(op => [op.id, op]));
  if (!box.rows.length) {
    const role = program.kernels[box.kernels[0]!]!.role;
    return block(
      h('p', { class: 'tl-muted' }, role || texts.__('The compiler made this; no op of yours is in it.'))
    );
  }
  return block(
    h('h4', {}, texts.__('PyTorch')),
    h(
      'ul',
      { class: 'tl-List' },
      box.rows.slice(0, MOST).map(row => {
        const op = ops.get(row.op);
        return h(
          'li',
          {},
          linkButton(row.name, () => actions.showOp(row.op)),
          h(
            'span',
            { class: 'tl-muted' },
            ` ${[op?.module, shortPlace(row.place)].filter(Boolean).join(' · ')}`
          )
        );
      }),
      box.rows.length > MOST &&
        h('li', { class: 'tl-muted' }, texts.__('%1 more', count(box.rows.length - MOST)))
    )
  );
}

function hloBlock(program: IProgram, box: IBox, texts: ITexts): HTMLElement {
  const lines = box.kernels.flatMap(i => {
    const kernel = program.kernels[i]!;
    return [kernel.instruction, ...kernel.members.filter(member => member !== kernel.instruction)];
  });
  const body = lines.slice(0, MOST).map((at, i) => {
    const instruction = program.instructions[at]!;
    return h(
      'div',
      {},
      `${i ? '  ' : ''}${hloText(program, instruction)}`,
      instruction.op && h('span', { class: 'tl-muted' }, `  ${opName(instruction.op)}`)
    );
  });
  return block(
    h('h4', {}, texts.__('Optimized HLO')),
    h('pre', { class: 'tl-Hlo', tabindex: 0 }, body),
    lines.length > MOST && h('p', { class: 'tl-muted' }, texts.__('%1 more', count(lines.length - MOST)))
  );
}

/** An instruction as XLA writes it. */
export function hloText(program: IProgram, instruction: IInstruction): string {
  const operands = instruction.operands.map(i => `%${program.instructions[i]?.name ?? '?'}`);
  const type = `${instruction.dtype}[${instruction.shape.join(',')}]${instruction.layout}`;
  return clip(`%${instruction.name} = ${type} ${instruction.opcode}(${operands.join(', ')})`, 400);
}

/** Why what a link joins is not one. */
export function linkCard(
  program: IProgram,
  graph: IFusionGraph,
  index: number,
  actions: ICardActions,
  texts: ITexts
): HTMLElement[] {
  const link = graph.links[index]!;
  const [from, to] = [graph.boxes[link.from]!, graph.boxes[link.to]!];
  const name = (box: IBox): string => (box.kernels.length === 1 ? `K${box.kernels[0]! + 1}` : box.title);
  const reasons = distinct(link.why);
  return [
    block(
      h('div', { class: 'tl-Label' }, texts.__('Boundary %1 → %2', name(from), name(to))),
      h('h4', {}, texts.__('Why these did not fuse')),
      reasons.length
        ? reasons.slice(0, MOST).map(why => reasonText(why, texts))
        : h('p', { class: 'tl-muted' }, texts.__('No reason is recorded for this pair.'))
    ),
    reasons.some(why => why.remedy)
      ? block(
          h('h4', {}, texts.__('What would change it')),
          [...new Set(reasons.map(why => why.remedy).filter(Boolean))].map(remedy =>
            h('p', {}, withCode(clip(remedy)))
          )
        )
      : h('div', {}),
    crossing(program, link, texts),
    block(
      linkButton(`↑ ${from.title}`, () => actions.showBox(link.from)),
      linkButton(`↓ ${to.title}`, () => actions.showBox(link.to))
    )
  ];
}

function distinct(why: readonly INotFused[]): INotFused[] {
  return [...new Map(why.map(one => [`${one.reason}\n${one.evidence}`, one])).values()];
}

function reasonText(why: INotFused, texts: ITexts): HTMLElement {
  const source: Record<string, string> = {
    log: texts.__('In the compiler’s words'),
    pass: texts.__('From the difference the pass made'),
    rule: texts.__('Inferred by the rule')
  };
  return h(
    'div',
    { class: 'tl-Reason' },
    h('p', {}, withCode(clip(why.text))),
    why.evidence && [
      h('div', { class: 'tl-Label' }, source[why.source] ?? texts.__('Evidence')),
      h('pre', { class: 'tl-Quote' }, clip(why.evidence))
    ],
    h('div', { class: 'tl-Label' }, `${opName(why.producer)} → ${opName(why.consumer)} · ${why.reason}`)
  );
}

function crossing(program: IProgram, link: ILink, texts: ITexts): HTMLElement {
  return block(
    h('div', { class: 'tl-Label' }, texts.__('Crosses the boundary')),
    figures(
      link.edges.slice(0, MOST).map(i => {
        const edge = program.edges[i]!;
        const value = program.instructions[edge.instruction]!;
        const spec = specText({ dtype: value.dtype, shape: value.shape });
        return [
          `${clip(value.name, 40)} ${spec}`,
          `${bytes(edge.bytes)}${edge.space === 'HBM' || !edge.space ? '' : ` ${edge.space}`}`
        ] as const;
      })
    )
  );
}

/** The whole program, while nothing is selected: the dearest kernels and what else there is to know. */
export function wholeCard(
  program: IProgram,
  programs: readonly IProgram[],
  graph: IFusionGraph,
  actions: ICardActions,
  texts: ITexts
): HTMLElement[] {
  const dearest = graph.boxes
    .map((box, i) => ({ box, i }))
    .filter(({ box }) => box.kind === 'kernel')
    .sort((a, b) => b.box.timeS - a.box.timeS || b.box.bytes - a.box.bytes)
    .slice(0, 6);
  const why = new Map<string, { text: string; count: number; bytes: number }>();
  for (const pair of program.not_fused) {
    const one = why.get(pair.reason) ?? { text: pair.text, count: 0, bytes: 0 };
    why.set(pair.reason, { text: one.text, count: one.count + 1, bytes: one.bytes + pair.bytes });
  }
  const reasons = [...why.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 6);
  return [
    programs.length > 1 ? sideBySide(programs, program, texts) : h('div', {}),
    block(
      h('h4', {}, program.time_s > 0 ? texts.__('Where the time goes') : texts.__('Where the bytes go')),
      h(
        'ul',
        { class: 'tl-List' },
        dearest.map(({ box, i }) =>
          h(
            'li',
            {},
            linkButton(box.title, () => actions.showBox(i)),
            h(
              'span',
              { class: 'tl-num' },
              box.timeS > 0 ? `≥ ${quantity('time', box.timeS * 1e9)}` : bytes(box.bytes)
            )
          )
        )
      )
    ),
    reasons.length
      ? block(
          h('h4', {}, texts.__('Why not fewer kernels')),
          reasons.map(reason =>
            h(
              'p',
              {},
              withCode(clip(reason.text)),
              h('span', { class: 'tl-muted' }, ` ${count(reason.count)}×, ${bytes(reason.bytes)}`)
            )
          )
        )
      : h('div', {}),
    program.notes.length || program.lost_ops.length
      ? block(
          h('h4', {}, texts.__('Also')),
          program.notes.slice(0, 8).map(note => h('p', {}, clip(note.text, 300))),
          program.lost_ops.length > 0 &&
            h(
              'p',
              { class: 'tl-muted' },
              texts._n(
                '%1 op is folded away: a view, a constant, or merged with another.',
                '%1 ops are folded away: views, constants, or merged with others.',
                program.lost_ops.length
              )
            )
        )
      : h('div', {}),
    block(
      h(
        'p',
        { class: 'tl-muted' },
        texts.__('Select a kernel for its costs, or the label between two for why they are two.')
      )
    )
  ];
}

/** The programs side by side: lower bound, kernels, peak of memory. */
function sideBySide(programs: readonly IProgram[], current: IProgram, texts: ITexts): HTMLElement {
  return block(
    h('h4', {}, texts.__('Side by side'), ' ', predicted(texts)),
    h(
      'ul',
      { class: 'tl-List' },
      programs.map(one => {
        const name = programLabel(one, programs);
        const kernels = texts._n('%1 kernel', '%1 kernels', one.kernels.length);
        return h(
          'li',
          {},
          one === current ? h('b', {}, name) : name,
          h(
            'span',
            { class: 'tl-num' },
            [kernels, one.time_s > 0 ? `≥ ${quantity('time', one.time_s * 1e9)}` : '']
              .filter(Boolean)
              .join(' · ')
          )
        );
      })
    )
  );
}
