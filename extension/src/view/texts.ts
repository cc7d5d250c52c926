/** Where visible words pass through: JupyterLab's translations in the lab, the English text elsewhere. */

export interface ITexts {
  /** The text with `%1`, `%2` … replaced. */
  __(text: string, ...values: unknown[]): string;
  /** One of two forms by number, which is also `%1`. */
  _n(one: string, many: string, count: number, ...values: unknown[]): string;
}

const fill = (text: string, values: unknown[]): string =>
  text.replace(/%(\d)/g, (_, digit: string) => String(values[Number(digit) - 1] ?? ''));

export const ENGLISH: ITexts = {
  __: (text, ...values) => fill(text, values),
  _n: (one, many, count, ...values) => fill(count === 1 ? one : many, [count, ...values])
};
