/** Puts a cell into the notebook where a view in an output asks for one; it does not run it. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';

import { PLUGIN } from './tokens.js';
import { INSERT_CELL } from './view/coverage/pane.js';

/** More text than this no view asks for. */
const LONGEST = 20_000;

export const insert: JupyterFrontEndPlugin<void> = {
  id: PLUGIN.insert,
  description: 'Inserts the cell that a view asks for below the one it stands in.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_app: JupyterFrontEnd, tracker: INotebookTracker) => {
    document.addEventListener(INSERT_CELL, event => {
      const { detail, target } = event as CustomEvent<unknown>;
      const panel = tracker.find(one => target instanceof Node && one.content.node.contains(target));
      const cells = panel?.content.model?.sharedModel;
      if (!panel || !cells || typeof detail !== 'string' || detail.length > LONGEST) {
        return;
      }
      const at = panel.content.widgets.findIndex(cell => cell.node.contains(target as Node));
      cells.insertCell(at + 1, { cell_type: 'code', source: detail, metadata: { trusted: true } });
      panel.content.activeCellIndex = at + 1;
      event.preventDefault();
    });
  }
};
