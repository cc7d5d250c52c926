/** The coarse drawing, for far zooms and small maps: boxes without words on a canvas. */

import type { IRect, IScene } from '../../graph/scene.js';
import type { ICamera } from './camera.js';
import { boundsOf, type ILook } from './draw.js';
import { largest, shareOf, tint } from './paint.js';

/** Colours of the theme where the canvas stands. */
function colours(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return name => {
    let value = known.get(name);
    if (value === undefined) {
      value = style.getPropertyValue(name).trim() || '#888';
      known.set(name, value);
    }
    return value;
  };
}

/** Draws what is in sight; titles too where a box is wide enough to read them. */
export function drawCoarse(canvas: HTMLCanvasElement, scene: IScene, camera: ICamera, look: ILook): void {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const context = canvas.getContext('2d');
  if (!context) {
    return;
  }
  const colour = colours(canvas);
  const { graph } = scene;
  const most = largest(graph);
  const { k, x, y } = camera;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const inSight = (rect: IRect): boolean =>
    rect.right * k + x >= 0 &&
    rect.left * k + x <= width &&
    rect.bottom * k + y >= 0 &&
    rect.top * k + y <= height;

  context.beginPath();
  graph.links.forEach((_, i) => {
    const points = scene.links[i]!;
    if (points.length < 2 || !inSight(boundsOf(points))) {
      return;
    }
    context.moveTo(points[0]!.x * k + x, points[0]!.y * k + y);
    for (let p = 3; p < points.length; p += 3) {
      context.lineTo(points[p]!.x * k + x, points[p]!.y * k + y);
    }
  });
  context.strokeStyle = colour('--tl-line-strong');
  context.globalAlpha = 0.5;
  context.lineWidth = 1;
  context.stroke();
  context.globalAlpha = 1;

  const titled = k > 0.3;
  context.font = `${Math.round(12.5 * k)}px sans-serif`;
  const bounds = { mxu: '--tl-mxu', hbm: '--tl-hbm', ovh: '--tl-ovh', '': '--tl-bar-strong' };
  graph.boxes.forEach((box, i) => {
    const rect = scene.rects[i]!;
    if (!inSight(rect)) {
      return;
    }
    const [left, top] = [rect.left * k + x, rect.top * k + y];
    const [wide, high] = [(rect.right - rect.left) * k, (rect.bottom - rect.top) * k];
    const share = shareOf(box, look.colour, most);
    context.fillStyle = colour('--tl-surface');
    context.fillRect(left, top, wide, high);
    context.fillStyle =
      box.kind !== 'kernel'
        ? colour('--tl-line')
        : look.colour === 'time' || look.colour === 'bytes'
          ? colour(`--tl-tint-${tint(share)}`)
          : colour(bounds[box.bound]);
    context.globalAlpha = titled ? 1 : 0.75;
    context.fillRect(left, top, titled ? Math.max(2, 8 * k) : wide, high);
    context.globalAlpha = 1;
    if (i === look.box || look.found.has(i)) {
      context.strokeStyle = colour('--tl-accent');
      context.lineWidth = 2;
      context.strokeRect(left, top, wide, high);
    }
    if (titled) {
      context.fillStyle = colour('--tl-text');
      context.fillText(box.title.slice(0, 30), left + 12 * k, top + 18 * k, wide - 16 * k);
    }
  });
}
