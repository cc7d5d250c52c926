/** The bundle of `engine-worker.ts` as text; written by `scripts/bundle.mjs` beside the compiled modules. */
export declare const ENGINE: string;
