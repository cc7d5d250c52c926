/** The JupyterLab extension: the mode of a cell. (The renderer of saved runs is in `mime.ts`.) */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import type { Cell, ICellModel } from '@jupyterlab/cells';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { modeChip } from './chip.js';
import { addCommands } from './commands.js';
import { costGutter } from './gutter.js';
import { insert } from './insertcell.js';
import { KernelSides } from './kernelside.js';
import { followSettings } from './settings.js';
import { StatusItem } from './status.js';
import { PLUGIN, TOOLBAR_ITEM } from './tokens.js';
import { ModeSwitch } from './toolbar.js';

const modes: JupyterFrontEndPlugin<void> = {
  id: PLUGIN.modes,
  description: 'The mode switch in the cell toolbar, its commands and shortcut.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [IToolbarWidgetRegistry, ICommandPalette, ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    toolbar: IToolbarWidgetRegistry | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('tpu_lab');
    void followSettings(settings);
    addCommands(app, tracker, palette, trans);
    toolbar?.addFactory<Cell>('Cell', TOOLBAR_ITEM, cell => new ModeSwitch(cell.model, trans));
  }
};

const editor: JupyterFrontEndPlugin<void> = {
  id: PLUGIN.editor,
  description: 'The chip at the end of the %%tpu line, and costs and marks of the last run beside the lines.',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  optional: [ITranslator],
  activate: (_app: JupyterFrontEnd, extensions: IEditorExtensionRegistry, translator: ITranslator | null) => {
    const trans = (translator ?? nullTranslator).load('tpu_lab');
    extensions.addExtension({
      name: PLUGIN.editor,
      factory: options => {
        // In a notebook the model of an editor is the model of its cell.
        const model = options.model as Partial<ICellModel> & typeof options.model;
        return model.type === 'code'
          ? EditorExtensionRegistry.createImmutableExtension([
              modeChip(model as ICellModel, trans),
              costGutter(model as ICellModel, trans)
            ])
          : null;
      }
    });
  }
};

const side: JupyterFrontEndPlugin<void> = {
  id: PLUGIN.side,
  description:
    'Loads the part in the Jupyter kernel where a cell asks for it, and says so in the status bar.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [IStatusBar, ITranslator],
  activate: (
    _app: JupyterFrontEnd,
    tracker: INotebookTracker,
    statusBar: IStatusBar | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('tpu_lab');
    const sides = new KernelSides(tracker);
    const item = new StatusItem(tracker, sides, trans);
    statusBar?.registerStatusItem(PLUGIN.side, {
      item,
      align: 'left',
      rank: 4,
      isActive: () => sides.current !== 'none',
      activeStateChanged: sides.changed
    });
  }
};

export default [modes, editor, side, insert];
