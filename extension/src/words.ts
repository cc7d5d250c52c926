/** What the modes are called and what they say about themselves. */

import type { TranslationBundle } from '@jupyterlab/translation';

import type { Mode } from './magic.js';

export interface IModeWords {
  readonly label: string;
  readonly caption: string;
}

export function modeWords(mode: Mode | null, trans: TranslationBundle): IModeWords {
  switch (mode) {
    case 'eager':
      return {
        label: trans.__('Eager'),
        caption: trans.__('Each operator runs alone; an error stops at its own line')
      };
    case 'fuse':
      return {
        label: trans.__('Fuse'),
        caption: trans.__('Operators are deferred; clusters that come back run as one program')
      };
    case 'compile':
      return {
        label: trans.__('Compile'),
        caption: trans.__('The cell is compiled by torch.compile for the tpu device')
      };
    case 'compare':
      return {
        label: trans.__('Compare'),
        caption: trans.__('The cell runs in several modes from the same state')
      };
    case null:
      return { label: trans.__('Off'), caption: trans.__('A plain Python cell') };
  }
}
