/** Splits one line of Python into coloured parts. By line only: the middle of a long string looks like code. Pure. */

export type TokenKind = 'magic' | 'keyword' | 'string' | 'number' | 'comment' | 'text';

export interface IToken {
  readonly kind: TokenKind;
  readonly text: string;
}

const KEYWORDS =
  'False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield';
const TOKEN = new RegExp(
  [
    `(?<comment>#.*)`,
    `(?<string>\\b[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\\\.|[^"\\\\])*"?|'(?:\\\\.|[^'\\\\])*'?)|"(?:\\\\.|[^"\\\\])*"?|'(?:\\\\.|[^'\\\\])*'?)`,
    `(?<keyword>\\b(?:${KEYWORDS})\\b)`,
    `(?<number>\\b\\d[\\d_]*(?:\\.\\d*)?(?:[eE][+-]?\\d+)?j?\\b)`
  ].join('|'),
  'g'
);
/** Longer lines are shown without colours. */
const LIMIT = 1000;

export function highlight(line: string): IToken[] {
  const magic = /^\s*%{1,2}\w+/.exec(line);
  if (magic) {
    return [
      { kind: 'magic', text: magic[0] },
      { kind: 'text', text: line.slice(magic[0].length) }
    ];
  }
  if (line.length > LIMIT) {
    return [{ kind: 'text', text: line }];
  }
  const tokens: IToken[] = [];
  let end = 0;
  for (const match of line.matchAll(TOKEN)) {
    if (match.index > end) {
      tokens.push({ kind: 'text', text: line.slice(end, match.index) });
    }
    const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? ['text'];
    tokens.push({ kind: kind as TokenKind, text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < line.length) {
    tokens.push({ kind: 'text', text: line.slice(end) });
  }
  return tokens;
}
