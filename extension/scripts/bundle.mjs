/**
 * Bundles what is used outside JupyterLab's own bundle, into tpu_lab/static: the layout engine (with Graphviz), the views for
 * a page and for widgets, the styles. The engine goes, as text, beside the compiled modules too: the extension loads it lazily.
 */
import { readFileSync, writeFileSync } from 'node:fs';

import { build } from 'esbuild';

const root = new URL('../', import.meta.url);
const out = new URL('../../tpu_lab/static/', import.meta.url);
const common = {
  absWorkingDir: root.pathname,
  bundle: true,
  minify: true,
  logLevel: 'error',
  target: 'es2021'
};

await build({
  ...common,
  entryPoints: ['lib/graph/engine-worker.js'],
  // A worker in a page from disk can be no module.
  format: 'iife',
  outfile: new URL('engine.js', out).pathname
});
const engine = readFileSync(new URL('engine.js', out), 'utf8');
writeFileSync(
  new URL('lib/graph/engine-text.js', root),
  `export const ENGINE = ${JSON.stringify(engine)};\n`
);
await build({
  ...common,
  entryPoints: ['lib/page.js'],
  format: 'esm',
  outfile: new URL('page.js', out).pathname
});
await build({
  ...common,
  entryPoints: ['style/index.css'],
  outfile: new URL('page.css', out).pathname
});
