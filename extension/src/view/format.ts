/**
 * Numbers as people read them: three significant digits, decimal units, a no-break space before the unit, a true minus
 * sign. Zero is `0`. Pure functions.
 */

const NBSP = '\u00a0';

/** A unit of a scale: values of at least `size` are shown in it. */
export interface IUnit {
  readonly name: string;
  readonly size: number;
}

const TIME: readonly IUnit[] = [
  { name: 's', size: 1e9 },
  { name: 'ms', size: 1e6 },
  { name: 'µs', size: 1e3 },
  { name: 'ns', size: 1 }
];
const BYTES: readonly IUnit[] = [
  { name: 'TB', size: 1e12 },
  { name: 'GB', size: 1e9 },
  { name: 'MB', size: 1e6 },
  { name: 'kB', size: 1e3 },
  { name: 'B', size: 1 }
];
const FLOPS: readonly IUnit[] = [
  { name: 'TFLOP', size: 1e12 },
  { name: 'GFLOP', size: 1e9 },
  { name: 'MFLOP', size: 1e6 },
  { name: 'kFLOP', size: 1e3 },
  { name: 'FLOP', size: 1 }
];
export const SCALES = { time: TIME, bytes: BYTES, flops: FLOPS } as const;
export type Scale = keyof typeof SCALES;

/** The unit for a whole column, by its largest value. */
export function unitFor(scale: Scale, largest: number): IUnit {
  const units = SCALES[scale];
  // 999.6 µs would be written as 1,000 µs.
  return units.find(unit => Math.abs(largest) >= unit.size * 0.9995) ?? units[units.length - 1]!;
}

/** Round values for the axis of a chart, from 0 to the last one not above `largest` (three to six of them), with their unit. */
export function ticks(scale: Scale, largest: number): { readonly steps: number[]; readonly unit: IUnit } {
  const unit = unitFor(scale, largest);
  const high = Math.max(largest, 1) / unit.size;
  const power = 10 ** Math.floor(Math.log10(high / 2));
  const step = [1, 2, 5, 10].map(n => n * power).find(size => high / size <= 5)!;
  const steps: number[] = [];
  for (let i = 0; i * step <= high; i++) {
    steps.push(i * step * unit.size);
  }
  return { steps, unit };
}

/** A number for a narrow column: three significant digits, two below 10: 358, 96.3, 9.8, 0.31. */
export function digits(value: number): string {
  if (value === 0) {
    return '0';
  }
  const size = Math.abs(value);
  if (size < 0.0095) {
    return '<0.01';
  }
  const places = size >= 99.95 ? 0 : size >= 0.995 ? 1 : 2;
  return minus(group(size.toFixed(places)), value);
}

/** A value in a unit chosen for its column, without the unit's name. */
export function inUnit(value: number, unit: IUnit): string {
  return unit.size === 1 ? count(Math.round(value)) : digits(value / unit.size);
}

/** A value with its own unit: `1.95 ms`. One digit more than in a column, where there is room. */
export function quantity(scale: Scale, value: number): string {
  const unit = unitFor(scale, value);
  const size = Math.abs(value) / unit.size;
  if (unit.size === 1 || size === 0) {
    return `${count(Math.round(value))}${NBSP}${unit.name}`;
  }
  return `${precise(value / unit.size)}${NBSP}${unit.name}`;
}

/** A number from 1 with three significant digits: 358, 96.3, 9.81. */
export function precise(value: number): string {
  const size = Math.abs(value);
  const places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return minus(group(size.toFixed(places)), value);
}

/** A count in full: 131,072. */
export function count(value: number): string {
  return minus(group(String(Math.abs(value))), value);
}

/** A ratio: `1.5×`. */
export function ratio(value: number): string {
  return `${value >= 9.95 ? Math.round(value) : value.toFixed(1)}×`;
}

/** A small number of unknown size, such as a difference: 0.0313, 1.2e-7 as `1.2 × 10⁻⁷`. */
export function small(value: number): string {
  const size = Math.abs(value);
  if (size === 0) {
    return '0';
  }
  if (size >= 0.001 && size < 1e5) {
    return minus(String(Number(size.toPrecision(3))), value);
  }
  const [mantissa, exponent] = size.toExponential(1).split('e');
  const raised = [...String(Number(exponent))]
    .map(digit => (digit === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(digit)]))
    .join('');
  return minus(`${mantissa}${NBSP}×${NBSP}10${raised}`, value);
}

/** The English ordinal of a whole number: 1st, 2nd, 11th. */
export function ordinal(value: number): string {
  const tens = value % 100;
  const suffix = tens > 10 && tens < 14 ? 'th' : (['th', 'st', 'nd', 'rd'][value % 10] ?? 'th');
  return `${count(value)}${suffix}`;
}

/** Text cut to a length a page can take; the cut shows. */
export function clip(text: string, length = 2000): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

function group(number: string): string {
  const [whole, rest] = number.split('.');
  const grouped = whole!.replace(/\B(?=(\d{3})+$)/g, ',');
  return rest ? `${grouped}.${rest}` : grouped;
}

function minus(text: string, value: number): string {
  return value < 0 ? `−${text}` : text;
}
