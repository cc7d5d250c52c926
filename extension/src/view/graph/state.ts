/** What a viewer of fusion graphs shows: program, grouping, layout, open boxes, selection, search. No DOM. */

import type { LayoutEngine } from '../../graph/engine.js';
import { layoutDot, quickLayout, readDot, type ILayout } from '../../graph/layout.js';
import { boxOfOp, findBoxes, fusionGraph, type Collapse, type IFusionGraph } from '../../graph/model.js';
import { scene, type IScene } from '../../graph/scene.js';
import type { IProgram } from '../../program.js';
import type { ILook } from './draw.js';
import { linkLabel, type ColourBy } from './paint.js';

/** Graphs with more boxes than this get the quick layout: dot would take seconds. */
const MOST_FOR_DOT = 700;

export class GraphState {
  current = 0;
  collapse: Collapse = 'kernel';
  colour: ColourBy;
  /** Ids of the open boxes, of the selected box and link: they hold on another target too. */
  readonly open = new Set<string>();
  box = '';
  link = '';
  words = '';
  graph: IFusionGraph;
  private layout: ILayout | null = null;

  constructor(
    readonly programs: readonly IProgram[],
    private readonly engine: LayoutEngine
  ) {
    this.colour = programs[0]!.time_s > 0 ? 'bound' : 'bytes';
    this.graph = fusionGraph(this.program, this.collapse);
  }

  get program(): IProgram {
    return this.programs[this.current]!;
  }

  /** Who made the layout, once there is one. */
  get by(): ILayout['by'] | null {
    return this.layout?.by ?? null;
  }

  get boxIndex(): number {
    return this.box ? this.graph.boxes.findIndex(box => box.id === this.box) : -1;
  }

  get linkIndex(): number {
    return this.link ? this.graph.links.findIndex(link => link.id === this.link) : -1;
  }

  get found(): number[] {
    return findBoxes(this.graph, this.words);
  }

  /** Takes another program or grouping and lays it out. Resolves to false when a later call has overtaken this one. */
  async arrange(): Promise<boolean> {
    const key = `${this.current} ${this.collapse}`;
    this.key = key;
    const graph = fusionGraph(this.program, this.collapse);
    this.graph = graph;
    this.layout = this.layouts.get(key) ?? null;
    if (!this.layout) {
      const layout = await this.lay(graph);
      this.layouts.set(key, layout);
      if (this.key !== key) {
        return false;
      }
      this.layout = layout;
    }
    return true;
  }

  private async lay(graph: IFusionGraph): Promise<ILayout> {
    if (graph.boxes.length > MOST_FOR_DOT) {
      return quickLayout(graph);
    }
    const labels = graph.links.map(linkLabel);
    try {
      return readDot(await this.engine.layout(layoutDot(graph, labels)), graph, labels);
    } catch {
      // No engine here, or dot failed on this graph: the quick layout always works.
      return quickLayout(graph);
    }
  }

  /** Where everything stands; null until there is a layout. */
  scene(): IScene | null {
    return this.layout && scene(this.graph, this.layout, this.openIndices());
  }

  look(): ILook {
    return {
      colour: this.colour,
      open: this.openIndices(),
      box: this.boxIndex,
      link: this.linkIndex,
      found: new Set(this.found)
    };
  }

  private openIndices(): Set<number> {
    return new Set(
      this.graph.boxes.flatMap((box, i) => (this.open.has(box.id) && box.rows.length ? [i] : []))
    );
  }

  /** Selects a box, a link or nothing; tells whether anything changed. */
  select(box: number | null, link: number | null): boolean {
    const boxId = box === null ? '' : (this.graph.boxes[box]?.id ?? '');
    const linkId = link === null ? '' : (this.graph.links[link]?.id ?? '');
    const changed = boxId !== this.box || linkId !== this.link;
    this.box = boxId;
    this.link = linkId;
    return changed;
  }

  /** The box of an op of the program, or -1. */
  boxOf(op: string): number {
    return boxOfOp(this.graph, op);
  }

  /** The first box with an op at a place (`file:line`), or -1. */
  boxAt(place: string): number {
    return this.graph.boxes.findIndex(box => box.rows.some(row => row.place === place));
  }

  private key = '';
  private readonly layouts = new Map<string, ILayout>();
}
