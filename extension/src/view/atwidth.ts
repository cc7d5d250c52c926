/** Draws again whenever the width of an element changes, so that text in a chart keeps its size. */

export interface IDrawn {
  /** Draws once more at the same width. */
  again(): void;
}

/** Calls `draw` with the width of `element` in px: when it gets one, when it changes, and on `again()`. */
export function atWidth(element: HTMLElement, draw: (width: number) => void): IDrawn {
  let last = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      draw(width);
    }
  });
  observer.observe(element);
  return {
    again: () => {
      if (last > 0) {
        draw(last);
      }
    }
  };
}
