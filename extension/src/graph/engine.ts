/**
 * Graphviz as WebAssembly, in a worker: 0.8 MB that is fetched once for a page, and only when a graph is drawn. Where it comes
 * from differs (the extension's own files, a message from the Jupyter kernel, the page itself), so the host says.
 */

/** Gives the text of `graph/engine-worker.ts`, built for the browser. */
export type EngineSource = () => Promise<string>;

interface IReply {
  readonly id: number;
  readonly text?: string;
  readonly error?: string;
}

/** dot output for a graph. */
type Run = (dot: string) => Promise<string>;

/** Longer than this is not waited for: a layout, and the start of the worker. */
const PATIENCE_MS = 20_000;
const START_MS = 10_000;

/** One engine of a page. */
export class LayoutEngine {
  constructor(private readonly source: EngineSource) {}

  /** Runs dot and returns its json0 output. Rejects when there is no engine, it fails, or it takes too long. */
  async layout(dot: string): Promise<string> {
    this.loaded ??= this.load();
    const run = await this.loaded;
    return run(dot);
  }

  /** A worker where there can be one, else (a page whose policy forbids workers) the page itself. */
  private async load(): Promise<Run> {
    const url = URL.createObjectURL(new Blob([await this.source()], { type: 'text/javascript' }));
    try {
      return await workerRun(new Worker(url));
    } catch {
      await import(/* webpackIgnore: true */ url);
      const { tpuLabLayout } = globalThis as { tpuLabLayout?: Run };
      if (!tpuLabLayout) {
        throw new Error('the layout engine did not start');
      }
      return tpuLabLayout;
    }
  }

  private loaded: Promise<Run> | null = null;
}

/** Runs dot in a worker. Rejects when the worker does not start. */
async function workerRun(worker: Worker): Promise<Run> {
  const waiting = new Map<number, (reply: IReply) => void>();
  let last = 0;
  const ask = (dot: string | null, patience: number): Promise<string> =>
    new Promise((resolve, reject) => {
      last += 1;
      const id = last;
      const timer = setTimeout(() => {
        waiting.delete(id);
        reject(new Error('the layout took too long'));
      }, patience);
      waiting.set(id, reply => {
        clearTimeout(timer);
        if (reply.text !== undefined) {
          resolve(reply.text);
        } else {
          reject(new Error(reply.error ?? 'the layout failed'));
        }
      });
      worker.postMessage({ id, dot });
    });
  worker.addEventListener('message', (event: MessageEvent<IReply>) => {
    waiting.get(event.data.id)?.(event.data);
    waiting.delete(event.data.id);
  });
  worker.addEventListener('error', event => {
    event.preventDefault();
    waiting.forEach((answer, id) => answer({ id, error: event.message || 'the worker stopped' }));
    waiting.clear();
  });
  await ask(null, START_MS);
  return dot => ask(dot, PATIENCE_MS);
}
