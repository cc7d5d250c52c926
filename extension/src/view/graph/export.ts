/** The graph as a file: SVG and PNG of the whole drawing, DOT, JSON. */

import { graphDot } from '../../graph/dot.js';
import type { IScene } from '../../graph/scene.js';
import { s } from '../dom.js';
import { drawPart, fills, type ILook } from './draw.js';
import type { GraphState } from './state.js';

export const FILES = ['SVG', 'PNG', 'DOT', 'JSON'] as const;
export type FileKind = (typeof FILES)[number];

const STYLES = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-opacity',
  'stroke-width',
  'stroke-dasharray',
  'font-family',
  'font-size',
  'font-weight',
  'text-anchor'
];
/** Longest side of a PNG in px. */
const LONGEST = 8192;

/** The whole drawing as SVG text that needs no style sheet. `host` is an element of the view, where the theme's colours hold. */
export function svgText(scene: IScene, look: ILook, host: HTMLElement): string {
  const fill = fills(host);
  const everything = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
  const ground = s('rect', { class: 'tl-Graph-ground', width: scene.width, height: scene.height });
  const svg = s(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      width: Math.ceil(scene.width),
      height: Math.ceil(scene.height),
      viewBox: `0 0 ${Math.ceil(scene.width)} ${Math.ceil(scene.height)}`,
      class: 'tl-Graph-svg tl-mod-export'
    },
    fill.defs,
    ground,
    drawPart(scene, everything, { ...look, box: -1, link: -1, found: new Set() }, fill)
  );
  host.append(svg);
  for (const element of svg.querySelectorAll<SVGElement>('*')) {
    const style = getComputedStyle(element);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value && !element.getAttribute(name)?.startsWith('url(')) {
        element.setAttribute(name, value);
      }
    }
    element.removeAttribute('class');
  }
  svg.remove();
  svg.removeAttribute('class');
  return new XMLSerializer().serializeToString(svg);
}

/** The SVG as a PNG at twice its size, less where that would be too large. Rejects where the browser cannot draw it. */
export async function pngOf(svg: string, width: number, height: number): Promise<Blob> {
  const scale = Math.min(2, LONGEST / Math.max(width, height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob(blob => (blob ? resolve(blob) : reject(new Error('the picture is too large'))), 'image/png')
  );
}

/** Hands a file to the browser. */
export function download(content: Blob | string, name: string, type: string): void {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Hands the graph to the browser as a file. `host` is an element of the view. Rejects where a picture cannot be made. */
export async function saveGraph(kind: FileKind, state: GraphState, host: HTMLElement): Promise<void> {
  const { program } = state;
  const name = `${program.name || 'program'}-${program.target.name}`.replace(/[^\w.-]+/g, '_');
  const scene = state.scene();
  if (kind === 'JSON') {
    download(JSON.stringify(program), `${name}.json`, 'application/json');
  } else if (kind === 'DOT') {
    download(graphDot(state.graph, name), `${name}.dot`, 'text/vnd.graphviz');
  } else if (scene) {
    const svg = svgText(scene, state.look(), host);
    const png = kind === 'PNG' ? await pngOf(svg, scene.width, scene.height) : null;
    download(png ?? svg, `${name}.${kind.toLowerCase()}`, png ? 'image/png' : 'image/svg+xml');
  }
}
