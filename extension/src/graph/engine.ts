/**
 * Graphviz as WebAssembly, in a worker: 0.8 MB that is fetched once for a page, and only when a graph is drawn. Where it comes
 * from differs (the extension's own files, a message from the Jupyter kernel, the page itself), so the host says.
 */

/** Gives the text of the module `graph/engine-worker.ts`, built for the browser. */
export type EngineSource = () => Promise<string>;

interface IReply {
  readonly id: number;
  readonly text?: string;
  readonly error?: string;
}

/** Longer than this is not waited for. */
const PATIENCE_MS = 20_000;

/** One engine of a page. */
export class LayoutEngine {
  constructor(private readonly source: EngineSource) {}

  /** Runs dot and returns its json0 output. Rejects when there is no engine, it fails, or it takes too long. */
  async layout(dot: string): Promise<string> {
    this.loaded ??= this.load();
    const run = await this.loaded;
    return run(dot);
  }

  private async load(): Promise<(dot: string) => Promise<string>> {
    const url = URL.createObjectURL(new Blob([await this.source()], { type: 'text/javascript' }));
    try {
      return workerRun(new Worker(url, { type: 'module' }));
    } catch {
      // A page whose policy forbids workers: then in the page itself.
      const engine = (await import(/* webpackIgnore: true */ url)) as {
        layout(dot: string): Promise<string>;
      };
      return dot => engine.layout(dot);
    }
  }

  private loaded: Promise<(dot: string) => Promise<string>> | null = null;
}

function workerRun(worker: Worker): (dot: string) => Promise<string> {
  const waiting = new Map<number, (reply: IReply) => void>();
  let last = 0;
  worker.addEventListener('message', (event: MessageEvent<IReply>) => {
    waiting.get(event.data.id)?.(event.data);
    waiting.delete(event.data.id);
  });
  worker.addEventListener('error', event => {
    waiting.forEach((answer, id) => answer({ id, error: event.message || 'the worker stopped' }));
    waiting.clear();
  });
  return dot =>
    new Promise((resolve, reject) => {
      last += 1;
      const timer = setTimeout(() => reject(new Error('the layout took too long')), PATIENCE_MS);
      waiting.set(last, reply => {
        clearTimeout(timer);
        if (reply.text !== undefined) {
          resolve(reply.text);
        } else {
          reject(new Error(reply.error ?? 'the layout failed'));
        }
      });
      worker.postMessage({ id: last, dot });
    });
}
