/**
 * The mode of a cell, as its text says it. The `%%tpu` line among the cell magics at the top of the cell is the only
 * truth; everything else (switch, chip, commands) reads and edits that line. Pure functions of text.
 */

export type Mode = 'eager' | 'fuse' | 'compile' | 'compare';

/** The modes on offer, in the order people meet them. */
export const MODES: readonly Mode[] = ['eager', 'fuse', 'compile', 'compare'];

/** What a line gets that the switch writes, as the settings say. */
export interface IPreferences {
  /** The mode that comes first after off. */
  readonly mode: Mode;
  /** A TPU generation for the mode compile; '': none. */
  readonly target: string;
  readonly trace: 'light' | 'off';
}

export const PLAIN: IPreferences = { mode: 'eager', target: '', trace: 'light' };

/** What a `%%tpu` line says. */
export interface IMagic {
  /** Offsets of the line in the cell, without its newline. */
  readonly from: number;
  readonly to: number;
  /** The word after `%%tpu`, or '' when there is none. */
  readonly word: string;
  /** Its mode, or null for a word that is not on offer here. */
  readonly mode: Mode | null;
  /** Words that are not options: the modes after `compare`. */
  readonly words: readonly string[];
  /** Options with their values, as they were written. */
  readonly options: readonly string[];
}

/** Replace the characters from `from` to `to` by `text`. */
export interface ITextEdit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const FLAGS = new Set(['--no-default-device', '--quiet', '--help']);
/** Cell magics that run their cell as Python in the user's namespace, so that `%%tpu` may stand above them. */
const STACKABLE = new Set(['capture', 'time', 'timeit', 'prun']);

/** The `%%tpu` line of a cell, or null. Other cell magics may stand before it, blank lines too. */
export function parseMagic(source: string): IMagic | null {
  for (const line of leadingMagics(source)) {
    const match = /^%%tpu(?:[ \t]+(.*))?$/.exec(line.text.trimEnd());
    if (match) {
      const { words, options } = split((match[1] ?? '').split(/\s+/).filter(Boolean));
      const word = words[0] ?? '';
      return {
        from: line.from,
        to: line.from + line.text.length,
        word,
        mode: isMode(word) ? word : null,
        words: words.slice(1),
        options
      };
    }
  }
  return null;
}

/** Whether the cell may be given a mode: false under a cell magic of another language, such as `%%bash`. */
export function canHaveMode(source: string): boolean {
  if (parseMagic(source)) {
    return true;
  }
  return leadingMagics(source).every(line => STACKABLE.has(/^%%(\S*)/.exec(line.text)?.[1] ?? ''));
}

/**
 * The edit that gives a cell a mode (null: plain Python). Options of the line are kept, except those that the new mode
 * refuses; the modes named after `compare` go when the mode does. A new line gets the options of the preferences.
 * Returns null when there is nothing to change or the cell can have no mode.
 */
export function modeEdit(
  source: string,
  mode: Mode | null,
  preferences: IPreferences = PLAIN
): ITextEdit | null {
  const magic = parseMagic(source);
  if (!magic) {
    const options = preferences.trace === 'off' ? ['--trace', 'off'] : [];
    return mode && canHaveMode(source)
      ? { from: 0, to: 0, text: `${['%%tpu', mode, ...fitting(options, mode, preferences)].join(' ')}\n` }
      : null;
  }
  if (mode === null) {
    return { from: magic.from, to: Math.min(magic.to + 1, source.length), text: '' };
  }
  if (mode === magic.mode) {
    return null;
  }
  const options = fitting(magic.options, mode, preferences);
  return { from: magic.from, to: magic.to, text: ['%%tpu', mode, ...options].join(' ') };
}

/** Options without those that a mode refuses (`--target` is for compile, `compare` records always), with the preferred target. */
function fitting(options: readonly string[], mode: Mode, preferences: IPreferences): string[] {
  const kept: string[] = [];
  for (let i = 0; i < options.length; i++) {
    const [name, value] = options[i]!.split('=');
    const apart = value === undefined && options[i + 1] !== undefined && !options[i + 1]!.startsWith('-');
    const refused =
      (name === '--target' && mode !== 'compile') ||
      (name === '--trace' && mode === 'compare' && (value ?? options[i + 1]) === 'off');
    if (!refused) {
      kept.push(...options.slice(i, i + (apart ? 2 : 1)));
    }
    i += apart ? 1 : 0;
  }
  const named = kept.some(option => option === '--target' || option.startsWith('--target='));
  return mode === 'compile' && preferences.target && !named
    ? [...kept, '--target', preferences.target]
    : kept;
}

/** The mode after this one: the first one (eager, or the preferred one), the others in their order, off. */
export function nextMode(mode: Mode | null, first: Mode = PLAIN.mode): Mode | null {
  const start = MODES.indexOf(first);
  const order = [...MODES.slice(start), ...MODES.slice(0, start)];
  return mode === null ? order[0]! : (order[order.indexOf(mode) + 1] ?? null);
}

/** The targets that a cell's line names. */
export function targetOf(source: string): string[] {
  const options = parseMagic(source)?.options ?? [];
  return options.flatMap((option, i) => {
    const value = option === '--target' ? options[i + 1] : /^--target=(.*)$/.exec(option)?.[1];
    return (value ?? '').split(',').filter(Boolean);
  });
}

export function applyEdit(source: string, edit: ITextEdit | null): string {
  return edit ? source.slice(0, edit.from) + edit.text + source.slice(edit.to) : source;
}

function isMode(word: string): word is Mode {
  return (MODES as readonly string[]).includes(word);
}

/** The `%%` lines at the top of the cell, with their offsets. IPython skips blank lines before the first one. */
function leadingMagics(source: string): { from: number; text: string }[] {
  const found: { from: number; text: string }[] = [];
  let from = 0;
  for (const text of source.split('\n')) {
    if (text.startsWith('%%')) {
      found.push({ from, text });
    } else if (found.length || text.trim()) {
      break;
    }
    from += text.length + 1;
  }
  return found;
}

/** Takes options with their values out of the words of a line. An option we do not know is taken to have a value. */
function split(parts: string[]): { words: string[]; options: string[] } {
  const words: string[] = [];
  const options: string[] = [];
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!;
    if (!part.startsWith('-')) {
      words.push(part);
      continue;
    }
    options.push(part);
    const next = parts[i + 1];
    if (!FLAGS.has(part) && !part.includes('=') && next !== undefined && !next.startsWith('-')) {
      options.push(next);
      i++;
    }
  }
  return { words, options };
}
