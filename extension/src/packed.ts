/** Data of an output as Python packs it (`tpu_lab/views/packed.py`): JSON, deflated, in base64. */

import { isObject, RunError } from './reader.js';

const FORMAT = 'tpu-lab-packed';
/** A small text that unpacks to more than this is not from us. */
const MOST_BYTES = 64_000_000;

/** Whether the data has to be unpacked before it can be read. */
export function isPacked(data: unknown): data is Record<string, unknown> {
  return isObject(data) && data.format === FORMAT;
}

/** The data itself; what is not packed comes back as it is. Rejects with RunError where it is damaged or newer. */
export async function unpacked(data: unknown): Promise<unknown> {
  if (!isPacked(data)) {
    return data;
  }
  if (!String(data.schema).startsWith('1.') || typeof data.deflate !== 'string') {
    throw new RunError(
      'This output was packed by a newer version of TPU Lab, or is damaged. Next: update tpu-lab.'
    );
  }
  try {
    const bytes = Uint8Array.from(atob(data.deflate), character => character.charCodeAt(0));
    return JSON.parse(await inflated(bytes)) as unknown;
  } catch (error) {
    if (error instanceof RunError) {
      throw error;
    }
    throw new RunError('This output is damaged: it cannot be unpacked. Next: run the cell again.');
  }
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate')).getReader();
  const decoder = new TextDecoder();
  let size = 0;
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return text + decoder.decode();
    }
    size += value.byteLength;
    if (size > MOST_BYTES) {
      void reader.cancel();
      throw new RunError('This output is too large to show: it unpacks to more than 64 MB.');
    }
    text += decoder.decode(value, { stream: true });
  }
}
