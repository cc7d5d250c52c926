/** The window onto the drawing: pan, zoom, what is drawn in which detail, and the small map. */

import { boxAt, type IRect, type IScene } from '../../graph/scene.js';
import { h, s } from '../dom.js';
import { fit, revealing, start, zoomed, type ICamera } from './camera.js';
import { drawCoarse } from './coarse.js';
import { drawPart, fills, type IFills, type ILook } from './draw.js';

/** Below this zoom, or with more boxes in sight, the coarse drawing takes over. */
const DETAIL_ZOOM = 0.4;
const DETAIL_BOXES = 300;
const MAP_WIDTH = 66;
const MAP_HEIGHT = 126;
/** A press that moves less than this is a click. */
const CLICK = 4;

export interface IViewportActions {
  /** A box, an op of it, or a link was clicked; all null: the ground. */
  readonly pick: (box: number | null, link: number | null, op: string | null) => void;
  readonly toggle: (box: number) => void;
}

export class Viewport {
  readonly element: HTMLElement;
  /** The canvas for the coarse drawing is drawn this often; for the benchmark. */
  frames = 0;

  constructor(
    label: string,
    private readonly actions: IViewportActions
  ) {
    this.svg = s('svg', { class: 'tl-Graph-svg', 'aria-hidden': 'true' }, this.group);
    this.map = h('div', { class: 'tl-Minimap', 'aria-hidden': 'true' }, this.mapCanvas, this.frame);
    this.element = h(
      'div',
      {
        class: 'tl-Graph-canvas',
        tabindex: 0,
        role: 'group',
        'aria-roledescription': 'graph',
        'aria-label': label
      },
      this.canvas,
      this.svg,
      this.map
    );
    this.element.addEventListener('pointerdown', this.press);
    this.element.addEventListener('wheel', this.wheel, { passive: false });
    this.element.addEventListener('dblclick', event => {
      const box = this.boxUnder(event);
      if (box >= 0) {
        this.actions.toggle(box);
      }
    });
    this.map.addEventListener('pointerdown', this.pressMap);
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  /** Shows a scene. `keep`: the view stays where it is; otherwise it goes to the start of the drawing. */
  show(scene: IScene, look: ILook, keep: boolean): void {
    this.scene = scene;
    this.look = look;
    this.drawn = null;
    this.settled &&= keep;
    this.settle();
    this.mapDrawn = false;
    this.request();
  }

  /** Brings a part of the drawing into sight. */
  reveal(rect: IRect): void {
    this.settle();
    this.move(revealing(this.camera, rect, this.size()));
  }

  zoom(factor: number): void {
    const { width, height } = this.size();
    this.move(zoomed(this.camera, factor, width / 2, height / 2));
  }

  fitAll(): void {
    if (this.scene) {
      this.move(fit(this.scene, this.size()));
    }
  }

  private size(): { width: number; height: number } {
    return { width: this.element.clientWidth, height: this.element.clientHeight };
  }

  /** The first camera waits until the element has a size. */
  private settle(): void {
    if (!this.settled && this.scene && this.element.clientWidth > 0) {
      this.settled = true;
      const first = this.scene.rects[0];
      this.camera = start(this.scene, this.size(), first ? (first.left + first.right) / 2 : 0);
    }
  }

  private resized(): void {
    this.drawn = null;
    this.mapDrawn = false;
    this.settle();
    this.request();
  }

  private move(camera: ICamera): void {
    this.camera = camera;
    this.request();
  }

  private request(): void {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { scene, look, camera } = this;
    const { width, height } = this.size();
    if (!scene || !look || !width) {
      return;
    }
    this.frames += 1;
    const sight = {
      left: -camera.x / camera.k,
      top: -camera.y / camera.k,
      right: (width - camera.x) / camera.k,
      bottom: (height - camera.y) / camera.k
    };
    const detailed = camera.k >= DETAIL_ZOOM && count(scene.rects, sight) <= DETAIL_BOXES;
    this.canvas.style.display = detailed ? 'none' : '';
    this.group.style.display = detailed ? '' : 'none';
    if (detailed) {
      this.drawDetail(scene, look, sight);
      this.group.setAttribute('transform', `translate(${camera.x} ${camera.y}) scale(${camera.k})`);
    } else {
      this.drawn = null;
      drawCoarse(this.canvas, scene, camera, look);
    }
    this.drawFrame(scene, sight);
    if (!this.mapDrawn) {
      this.drawMap();
    }
  }

  /** Builds what is in sight and as much again around it, when the sight has left what was built. */
  private drawDetail(scene: IScene, look: ILook, sight: IRect): void {
    const { drawn } = this;
    if (
      drawn &&
      sight.left >= drawn.left &&
      sight.right <= drawn.right &&
      sight.top >= drawn.top &&
      sight.bottom <= drawn.bottom
    ) {
      return;
    }
    const [wide, high] = [(sight.right - sight.left) / 2, (sight.bottom - sight.top) / 2];
    this.drawn = {
      left: sight.left - wide,
      right: sight.right + wide,
      top: sight.top - high,
      bottom: sight.bottom + high
    };
    if (!this.fills) {
      this.fills = fills(this.element);
      this.svg.prepend(this.fills.defs);
    }
    this.group.replaceChildren(drawPart(scene, this.drawn, look, this.fills));
  }

  // ---- the small map ----

  private mapScale(scene: IScene): number {
    return Math.min(MAP_WIDTH / scene.width, MAP_HEIGHT / scene.height);
  }

  private drawMap(): void {
    const { scene, look } = this;
    if (!scene || !look) {
      return;
    }
    const k = this.mapScale(scene);
    this.mapCanvas.style.width = `${Math.max(8, scene.width * k)}px`;
    this.mapCanvas.style.height = `${Math.max(8, scene.height * k)}px`;
    // Without a size (an output that is not in sight yet) it is tried again with the next frame.
    this.mapDrawn = this.mapCanvas.clientWidth > 0;
    drawCoarse(this.mapCanvas, scene, { k, x: 0, y: 0 }, look);
  }

  private drawFrame(scene: IScene, sight: IRect): void {
    const k = this.mapScale(scene);
    const left = Math.max(0, sight.left) * k;
    const top = Math.max(0, sight.top) * k;
    const width = Math.min(scene.width, sight.right) * k - left;
    const height = Math.min(scene.height, sight.bottom) * k - top;
    const { style } = this.frame;
    style.transform = `translate(${left}px, ${top}px)`;
    style.width = `${Math.max(2, width)}px`;
    style.height = `${Math.max(2, height)}px`;
    this.map.style.display = width >= scene.width * k - 1 && height >= scene.height * k - 1 ? 'none' : '';
  }

  private readonly pressMap = (event: PointerEvent): void => {
    event.stopPropagation();
    const go = (at: PointerEvent): void => {
      const { scene } = this;
      if (!scene) {
        return;
      }
      const box = this.mapCanvas.getBoundingClientRect();
      const k = this.mapScale(scene);
      const { width, height } = this.size();
      const [x, y] = [(at.clientX - box.left) / k, (at.clientY - box.top) / k];
      this.move({
        k: this.camera.k,
        x: width / 2 - x * this.camera.k,
        y: height / 2 - y * this.camera.k
      });
    };
    go(event);
    this.map.setPointerCapture(event.pointerId);
    this.map.onpointermove = go;
    this.map.onpointerup = () => (this.map.onpointermove = null);
  };

  // ---- pointer ----

  private readonly press = (event: PointerEvent): void => {
    if (event.button !== 0 || (event.target as Element).closest('.tl-Minimap')) {
      return;
    }
    const from = { x: event.clientX, y: event.clientY };
    const camera = this.camera;
    let far = false;
    const drag = (to: PointerEvent): void => {
      const [dx, dy] = [to.clientX - from.x, to.clientY - from.y];
      far ||= Math.hypot(dx, dy) > CLICK;
      if (far) {
        this.move({ k: camera.k, x: camera.x + dx, y: camera.y + dy });
      }
    };
    const done = (up: PointerEvent): void => {
      window.removeEventListener('pointermove', drag);
      window.removeEventListener('pointerup', done);
      if (!far) {
        this.click(up);
      }
    };
    window.addEventListener('pointermove', drag);
    window.addEventListener('pointerup', done);
  };

  private click(event: PointerEvent): void {
    const target = document.elementFromPoint(event.clientX, event.clientY);
    const link = target?.closest('[data-link]')?.getAttribute('data-link');
    if (link) {
      this.actions.pick(null, Number(link), null);
      return;
    }
    const box = this.boxUnder(event);
    if (box >= 0 && target?.closest('.tl-Box-caret')) {
      this.actions.toggle(box);
      return;
    }
    this.actions.pick(
      box < 0 ? null : box,
      null,
      target?.closest('[data-op]')?.getAttribute('data-op') ?? null
    );
  }

  private boxUnder(event: MouseEvent): number {
    if (!this.scene) {
      return -1;
    }
    const box = this.element.getBoundingClientRect();
    const { x, y, k } = this.camera;
    return boxAt(this.scene, (event.clientX - box.left - x) / k, (event.clientY - box.top - y) / k);
  }

  /** Zooms with Ctrl only: else the notebook scrolls. */
  private readonly wheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && !event.metaKey) {
      return;
    }
    event.preventDefault();
    const box = this.element.getBoundingClientRect();
    this.move(
      zoomed(this.camera, Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top)
    );
  };

  /** Made when the view stands in the page: they depend on its fonts. */
  private fills: IFills | null = null;
  private readonly group = s('g', {});
  private readonly svg: SVGSVGElement;
  private readonly canvas = h('canvas', { class: 'tl-Graph-coarse', 'aria-hidden': 'true' });
  private readonly mapCanvas = h('canvas', {});
  private readonly frame = h('div', { class: 'tl-Minimap-frame' });
  private readonly map: HTMLElement;
  private scene: IScene | null = null;
  private look: ILook | null = null;
  private camera: ICamera = { x: 0, y: 0, k: 1 };
  private settled = false;
  private mapDrawn = false;
  private pending = 0;
  /** The part of the drawing that stands as SVG. */
  private drawn: IRect | null = null;
}

/** How many boxes a part of the drawing touches, up to one more than matters. */
function count(rects: readonly IRect[], part: IRect): number {
  let found = 0;
  for (const rect of rects) {
    if (
      rect.right >= part.left &&
      rect.left <= part.right &&
      rect.bottom >= part.top &&
      rect.top <= part.bottom
    ) {
      found += 1;
      if (found > DETAIL_BOXES) {
        break;
      }
    }
  }
  return found;
}
