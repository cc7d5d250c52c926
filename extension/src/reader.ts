/** Checks data that may be anything against a schema's shapes. Pure functions. */

/** Data that cannot be shown. The message is a sentence for the reader of the notebook. */
export class RunError extends Error {}

export type Shapes = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** What a document must be. */
export interface IDocument {
  /** The value of its `format`. */
  readonly format: string;
  /** `major.minor`. */
  readonly version: string;
  readonly shapes: Shapes;
  /** What a field is in a document of a minor version that did not have it. */
  readonly defaults: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The name of its own shape. */
  readonly root: string;
  /** What people call it: `run`. */
  readonly noun: string;
}

const SCALARS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: value => typeof value === 'string',
  boolean: value => typeof value === 'boolean',
  number: value => typeof value === 'number' && Number.isFinite(value),
  integer: value => Number.isInteger(value)
};

/**
 * The data, checked. An error that stands for the data is thrown as it is. Throws RunError for another format, a newer major version, a missing or wrong field. A document of an
 * older minor version gets the default of each field it lacks.
 */
export function readDocument(data: unknown, document: IDocument): Record<string, unknown> {
  const { format, version, noun, root } = document;
  if (data instanceof RunError) {
    throw data;
  }
  if (!isObject(data) || data.format !== format) {
    throw new RunError(`This is not a record of a ${noun}.`);
  }
  const major = version.split('.')[0];
  if (String(data.schema).split('.')[0] !== major) {
    throw new RunError(
      `This ${noun} was saved with schema ${String(data.schema).slice(0, 20)}; this version of TPU Lab reads ${major}.x. Next: update tpu-lab.`
    );
  }
  return new Check(document).value(root, data, '') as Record<string, unknown>;
}

class Check {
  constructor(private readonly document: IDocument) {}

  /** The value, or a copy of it with what an older version lacks. */
  value(shape: string, value: unknown, path: string): unknown {
    if (shape.endsWith('?')) {
      return value === null ? null : this.value(shape.slice(0, -1), value, path);
    }
    if (shape.endsWith('[]')) {
      return this.list(shape.slice(0, -2), value, path);
    }
    const scalar = SCALARS[shape];
    if (scalar ? !scalar(value) : !isObject(value)) {
      throw this.damaged(shape, path);
    }
    return scalar ? value : this.object(shape, value as Record<string, unknown>, path);
  }

  private list(item: string, value: unknown, path: string): unknown[] {
    if (!Array.isArray(value)) {
      throw this.damaged(`${item}[]`, path);
    }
    const scalar = SCALARS[item];
    if (!scalar) {
      return value.map((entry, i) => this.value(item, entry, `${path}[${i}]`));
    }
    if (!value.every(scalar)) {
      throw this.damaged(`${item}[]`, path);
    }
    return value;
  }

  private object(shape: string, value: Record<string, unknown>, path: string): Record<string, unknown> {
    const whole: Record<string, unknown> = { ...this.document.defaults[shape], ...value };
    for (const [field, kind] of Object.entries(this.document.shapes[shape]!)) {
      whole[field] = this.value(kind, whole[field], path ? `${path}.${field}` : field);
    }
    return whole;
  }

  private damaged(shape: string, path: string): RunError {
    return new RunError(`This ${this.document.noun} is damaged at ${path || 'the top'}: expected ${shape}.`);
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
