/** A fusion graph as DOT text that Graphviz draws: boxes with their names, links with their bytes. */

import { quantity } from '../view/format.js';
import type { IFusionGraph } from './model.js';

export function graphDot(graph: IFusionGraph, name: string): string {
  const lines = [
    `digraph ${quoted(name)} {`,
    'node [shape=box, fontname="sans-serif"]',
    'edge [fontname="sans-serif"]'
  ];
  graph.boxes.forEach((box, i) => {
    const figures = [box.timeS ? `≥ ${quantity('time', box.timeS * 1e9)}` : '', quantity('bytes', box.bytes)];
    const text =
      box.kind === 'kernel' ? [box.title, box.subtitle, figures.filter(Boolean).join(', ')] : [box.title];
    lines.push(
      `  ${i} [label=${quoted(text.filter(Boolean).join('\n'))}${box.kind === 'kernel' ? '' : ', style=rounded'}]`
    );
  });
  for (const link of graph.links) {
    lines.push(`  ${link.from} -> ${link.to} [label=${quoted(quantity('bytes', link.bytes))}]`);
  }
  return `${lines.join('\n')}\n}\n`;
}

function quoted(text: string): string {
  return `"${text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')}"`;
}
