/** Reads compiled programs from data that may be anything. Pure functions; the types are those of the schema. */

import { DEFAULTS, FORMAT, SCHEMA_VERSION, SHAPES, type IProgram } from './program-schema.js';
import { isObject, readDocument, RunError } from './reader.js';

export type * from './program-schema.js';

/** Several programs that a viewer offers side by side: targets, or eager beside compiled. */
export const GRAPH_FORMAT = 'tpu-lab-fusion-graph';

/** Data as a program. Throws RunError for a newer major schema, a missing or wrong field, or an index that points nowhere. */
export function readProgram(data: unknown): IProgram {
  const document = {
    format: FORMAT,
    version: SCHEMA_VERSION,
    shapes: SHAPES,
    defaults: DEFAULTS,
    root: 'Program',
    noun: 'program'
  };
  const program = readDocument(data, document) as unknown as IProgram;
  const kernels = program.kernels.length;
  const instructions = program.instructions.length;
  within(
    'edges',
    program.edges.flatMap(edge => [edge.producer, edge.consumer]),
    -1,
    kernels
  );
  within(
    'edges.instruction',
    program.edges.map(edge => edge.instruction),
    0,
    instructions
  );
  within(
    'kernels.instruction',
    program.kernels.map(kernel => kernel.instruction),
    0,
    instructions
  );
  within(
    'kernels.members',
    program.kernels.flatMap(kernel => kernel.members),
    0,
    instructions
  );
  within(
    'not_fused',
    program.not_fused.flatMap(pair => [pair.producer_kernel, pair.consumer_kernel]),
    0,
    kernels
  );
  return program;
}

/** The programs in the data of a fusion graph; a single program will do. Throws RunError as `readProgram`. */
export function readPrograms(data: unknown): IProgram[] {
  if (!isObject(data) || data.format !== GRAPH_FORMAT) {
    return [readProgram(data)];
  }
  if (!Array.isArray(data.programs) || !data.programs.length) {
    throw new RunError('This fusion graph is damaged at programs: expected at least one program.');
  }
  return data.programs.map(readProgram);
}

function within(name: string, indices: readonly number[], low: number, high: number): void {
  if (indices.some(index => index < low || index >= high)) {
    throw new RunError(`This program is damaged at ${name}: an index points nowhere.`);
  }
}
