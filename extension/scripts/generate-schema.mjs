/**
 * Writes src/schema.ts from tpu_lab/record/schema.json and src/program-schema.ts from program_schema.json: the types of a
 * Run and of a Program, and the same as data for src/reader.ts. It runs before every build, check and test; the files are
 * not committed, so they cannot be out of date.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** A field's shape as text: `integer`, `string[]`, `Comparison?`, `integer[][]`. */
function shape(entry) {
  if (entry.$ref) {
    return entry.$ref.split('/').at(-1);
  }
  if (entry.anyOf) {
    return `${shape(entry.anyOf.find(option => option.type !== 'null'))}?`;
  }
  if (entry.type === 'array') {
    return `${shape(entry.items)}[]`;
  }
  return 'const' in entry ? 'string' : entry.type;
}

/** The TypeScript type of a shape. */
function type(text) {
  if (text.endsWith('?')) {
    return `${type(text.slice(0, -1))} | null`;
  }
  if (text.endsWith('[]')) {
    return `readonly ${type(text.slice(0, -2)).replace(/^(readonly .*)$/, '($1)')}[]`;
  }
  return { integer: 'number', number: 'number', string: 'string', boolean: 'boolean' }[text] ?? `I${text}`;
}

const comment = text => (text ? `/** ${text.replaceAll('*/', '* /').replaceAll(/\s+/g, ' ')} */\n` : '');

/** The text of a TypeScript file for a schema. */
function typescript(from, schema) {
  const root = schema.title;
  const kinds = { [root]: schema, ...schema.$defs };
  let text = `// Written by scripts/generate-schema.mjs from tpu_lab/record/${from}; do not edit.\n\n`;
  text += `/** The schema these types belong to. Another major version cannot be read. */\nexport const SCHEMA_VERSION = '${schema.version}';\n\n`;
  text += `export const FORMAT = '${schema.properties.format.const}';\n\n`;
  for (const [name, kind] of Object.entries(kinds)) {
    const fields = Object.entries(kind.properties).map(
      ([field, entry]) => `${comment(entry.description)}readonly ${field}: ${type(shape(entry))};\n`
    );
    text += `${comment(kind.description)}export interface I${name} {\n${fields.join('')}}\n\n`;
  }
  const shapes = Object.entries(kinds).map(([name, kind]) => {
    const fields = Object.entries(kind.properties).map(([field, entry]) => `${field}: '${shape(entry)}'`);
    return `${name}: { ${fields.join(', ')} }`;
  });
  text +=
    '/** The fields of each type: a scalar or the name of a type, `[]` for a list, `?` for a value that may be null. */\n';
  text += `export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = { ${shapes.join(', ')} };\n`;
  const defaults = Object.entries(kinds).map(([name, kind]) => {
    const given = Object.entries(kind.properties).filter(([, entry]) => 'default' in entry);
    return `${name}: { ${given.map(([field, entry]) => `${field}: ${JSON.stringify(entry.default)}`).join(', ')} }`;
  });
  if (schema.reasons) {
    text += '/** Closed lists of reasons: id to title, sentence, remedy. */\n';
    text += `export const REASONS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = ${JSON.stringify(schema.reasons)};\n`;
  }
  text += '/** What a field is in a document saved by a minor version that did not have it. */\n';
  return `${text}export const DEFAULTS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { ${defaults.join(', ')} };\n`;
}

for (const [from, to] of [
  ['schema.json', 'schema.ts'],
  ['program_schema.json', 'program-schema.ts']
]) {
  const schema = JSON.parse(readFileSync(new URL(`../../tpu_lab/record/${from}`, import.meta.url), 'utf8'));
  const out = new URL(`../src/${to}`, import.meta.url);
  const text = typescript(from, schema);
  // Left alone when nothing changed, so that make sees no newer file.
  if (!existsSync(out) || readFileSync(out, 'utf8') !== text) {
    writeFileSync(out, text);
  }
}
