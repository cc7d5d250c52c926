/** A segmented control: a few choices side by side, one of them pressed. */

import { h } from './dom.js';

export function segments<T extends string>(
  label: string,
  choices: readonly (readonly [T, string])[],
  chosen: T,
  choose: (value: T) => void
): HTMLElement {
  const buttons = choices.map(([value, text]) => {
    const button = h('button', { type: 'button', 'aria-pressed': String(value === chosen) }, text);
    button.addEventListener('click', () => {
      for (const other of buttons) {
        other.setAttribute('aria-pressed', String(other === button));
      }
      choose(value);
    });
    return button;
  });
  return h('div', { class: 'tl-Segments', role: 'group', 'aria-label': label }, buttons);
}
