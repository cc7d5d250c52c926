/** Names that other code or settings may refer to. */

export const PLUGIN = {
  modes: 'tpu-lab:plugin',
  editor: 'tpu-lab:editor',
  side: 'tpu-lab:kernel-side',
  mime: 'tpu-lab:mime',
  graph: 'tpu-lab:graph',
  coverage: 'tpu-lab:coverage',
  insert: 'tpu-lab:insert'
} as const;

/** Commands act on the active cell of the current notebook. */
export const CommandIDs = {
  setMode: 'tpu-lab:set-cell-mode',
  cycleMode: 'tpu-lab:cycle-cell-mode',
  nextMark: 'tpu-lab:next-mark',
  previousMark: 'tpu-lab:previous-mark'
} as const;

/** A saved or live Run in the output of a cell. */
export const RUN_MIME_TYPE = 'application/vnd.tpu-lab.run+json';

/** One compiled program or several, as a fusion graph. */
export const GRAPH_MIME_TYPE = 'application/vnd.tpu-lab.graph+json';

/** The operator table. */
export const COVERAGE_MIME_TYPE = 'application/vnd.tpu-lab.coverage+json';

/** The item of the cell toolbar, named in `schema/plugin.json`. */
export const TOOLBAR_ITEM = 'tpu-lab-mode';
