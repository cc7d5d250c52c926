/** The settings of the extension: what the switch writes into the `%%tpu` line. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

import { setPreferences } from './cellmode.js';
import { MODES, PLAIN } from './magic.js';
import { PLUGIN } from './tokens.js';

/** Takes the settings as they are, and again whenever they change. Without a registry the defaults hold. */
export async function followSettings(registry: ISettingRegistry | null): Promise<void> {
  const settings = await registry?.load(PLUGIN.modes);
  const take = (): void => {
    const { defaultMode, target, traceLevel } = settings?.composite ?? {};
    setPreferences({
      mode: MODES.find(mode => mode === defaultMode) ?? PLAIN.mode,
      target: typeof target === 'string' ? target : PLAIN.target,
      trace: traceLevel === 'off' ? 'off' : PLAIN.trace
    });
  };
  settings?.changed.connect(take);
  take();
}
