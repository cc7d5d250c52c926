/** What part of a drawing is in sight: where its origin is in the viewport, and how large one of its px is. */

export interface ICamera {
  readonly x: number;
  readonly y: number;
  readonly k: number;
}

export interface ISize {
  readonly width: number;
  readonly height: number;
}

const SMALLEST = 0.02;
const LARGEST = 2.5;

/** The whole drawing in sight, not larger than life. */
export function fit(drawing: ISize, viewport: ISize): ICamera {
  const k = Math.min(1, viewport.width / drawing.width, viewport.height / drawing.height);
  return {
    k,
    x: (viewport.width - k * drawing.width) / 2,
    y: Math.max(0, (viewport.height - k * drawing.height) / 2)
  };
}

/** Room for the small map at the right. */
const MAP = 88;

/** The first sight: the whole drawing where it is readable so, else its top, around the x where it begins. */
export function start(drawing: ISize, viewport: ISize, x: number): ICamera {
  const whole = fit(drawing, viewport);
  if (whole.k >= 0.8) {
    return whole;
  }
  const free = { width: Math.max(1, viewport.width - MAP), height: viewport.height };
  const k = Math.min(1, Math.max(0.7, free.width / drawing.width));
  const fits = k * drawing.width <= free.width;
  return { k, x: fits ? (free.width - k * drawing.width) / 2 : free.width / 2 - k * x, y: 0 };
}

/** Larger by a factor around a point of the viewport. */
export function zoomed(camera: ICamera, factor: number, x: number, y: number): ICamera {
  const k = Math.min(LARGEST, Math.max(SMALLEST, camera.k * factor));
  const by = k / camera.k;
  return { k, x: x - (x - camera.x) * by, y: y - (y - camera.y) * by };
}

/** Moved by as little as needed to have a rectangle of the drawing in sight. */
export function revealing(
  camera: ICamera,
  box: { readonly left: number; readonly right: number; readonly top: number; readonly bottom: number },
  viewport: ISize
): ICamera {
  const margin = 24;
  const nudge = (low: number, high: number, size: number): number => {
    if (high - low > size - 2 * margin) {
      return margin - low;
    }
    return low < margin ? margin - low : high > size - margin ? size - margin - high : 0;
  };
  return {
    k: camera.k,
    x: camera.x + nudge(camera.x + camera.k * box.left, camera.x + camera.k * box.right, viewport.width),
    y: camera.y + nudge(camera.y + camera.k * box.top, camera.y + camera.k * box.bottom, viewport.height)
  };
}
