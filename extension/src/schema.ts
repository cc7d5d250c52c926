// Written by scripts/generate-schema.mjs from tpu_lab/record/schema.json; do not edit.

/** The schema these types belong to. Another major version cannot be read. */
export const SCHEMA_VERSION = '1.0';

export const FORMAT = 'tpu-lab-run';

/** What one execution of a cell (or a recorded block) did. Immutable; saved and loaded whole; holds no values of tensors. Times are nanoseconds, sizes bytes. Fields that end in `location` are indices in `locations`. */
export interface IRun {
readonly format: string;
/** `major.minor` of the schema it was written with. */
readonly schema: string;
/** Short id, unique in the process that made it: `r12`. */
readonly id: string;
/** Given by the user; may be empty. */
readonly name: string;
/** `eager`, `fuse`, `compile` or `compare`. */
readonly mode: string;
/** PyTorch's device type the cell ran on. */
readonly device: string;
/** Who compiled and ran it. XLA:CPU is never shown under a TPU's name. */
readonly target: string;
/** Start in UTC, ISO 8601, whole seconds. */
readonly started: string;
/** True: each op's time is its own run time. False: ops were only queued, their times are those of the host. */
readonly blocking: boolean;
readonly environment: IEnvironment;
readonly timing: ITiming;
readonly totals: ITotals;
readonly lines: readonly ILineCost[];
readonly findings: readonly IFinding[];
readonly comparison: IComparison | null;
readonly sources: readonly ISource[];
readonly locations: readonly ILocation[];
readonly modules: readonly IModulePath[];
readonly programs: readonly IProgram[];
readonly ops: IOps;
readonly storages: IStorages;
readonly memory: IMemory;
readonly syncs: readonly ISync[];
readonly fallbacks: readonly IFallback[];
readonly graph_breaks: readonly IGraphBreak[];
readonly recompiles: readonly IRecompile[];
readonly failures: readonly IFailure[];
/** Ops that ran but are not in `ops`: over the recorder's limit, or cut to keep a notebook small. `totals` counts them. */
readonly ops_dropped: number;
}

/** All modes and what follows. */
export interface IComparison {
readonly baseline: string;
/** The mode whose numbers the others are compared with. */
readonly reference: string;
readonly modes: readonly IModeResult[];
readonly verdicts: readonly IVerdict[];
}

/** Live bytes when the op at this position ran, scratch memory included. */
export interface ICurvePoint {
readonly op: number;
readonly nbytes: number;
}

/** The largest difference of a mode's results from the reference's, over everything the cell changed or showed. */
export interface IDifference {
/** null: nothing to compare, or not finite. */
readonly max_abs: number | null;
/** |a - b| / |b| at its largest, where b is the reference; null as above. */
readonly max_rel: number | null;
/** The variable or parameter where the relative difference is largest. */
readonly name: string;
/** True: NaN or infinity in one of the two only. */
readonly nonfinite: boolean;
/** How many tensors were compared. */
readonly compared: number;
/** The relative tolerance that PyTorch's own tests take for the dtype; null: none given. */
readonly tolerance: number | null;
}

/** Versions and the machine. */
export interface IEnvironment {
readonly python: string;
/** `Linux`, `Darwin` or `Windows`. */
readonly system: string;
/** `x86_64`, `arm64`. */
readonly machine: string;
/** Cores this process may use. */
readonly cores: number;
readonly versions: readonly IVersion[];
}

/** An op, or the cell, raised an exception. */
export interface IFailure {
/** The ATen overload; empty: the exception came from the cell's own code. */
readonly op: string;
/** The exception's type. */
readonly kind: string;
/** Without values and paths. */
readonly message: string;
readonly location: number;
readonly cell_location: number;
/** Id of the op before it; -1: none. */
readonly after_op: number;
}

/** An operator ran on the host for want of a lowering. */
export interface IFallback {
readonly op: string;
/** Id in `reasons.FallbackReason`. */
readonly reason: string;
/** From the device to the host. */
readonly bytes_out: number;
/** From the host to the device. */
readonly bytes_in: number;
readonly start_ns: number;
readonly duration_ns: number;
readonly location: number;
readonly cell_location: number;
}

/** One finding; equal happenings on one line are one finding with a count. */
export interface IFinding {
/** Stable id of its kind in `reasons.FindingKind`: `TL201`. */
readonly id: string;
/** At most 60 characters where the names in it allow. */
readonly title: string;
/** The mechanism, in words. */
readonly reason: string;
/** What to do; empty if it goes away with another finding. */
readonly remedy: string;
/** `wrong` (values) or `cost` (time). */
readonly severity: string;
readonly count: number;
/** Measured cost of all occurrences in this run; null: not known. */
readonly cost_ns: number | null;
/** Bytes moved by all occurrences; null: none or not known. */
readonly bytes: number | null;
readonly location: number;
readonly cell_location: number;
/** Id of the finding it depends on. */
readonly goes_away_with: string;
/** The compiler's own words. */
readonly message: string;
}

/** torch.compile ended a graph. */
export interface IGraphBreak {
/** Id in `reasons.BreakReason`. */
readonly reason: string;
/** The compiler's own words, without values and paths. */
readonly message: string;
readonly location: number;
readonly cell_location: number;
readonly count: number;
}

/** Bytes alive at the peak that one line made. */
export interface ILineBytes {
/** Index in `Run.locations` of one op on that line; -1: made before the run or at an unknown line. */
readonly location: number;
readonly nbytes: number;
readonly tensors: number;
}

/** What one source line cost. An op counts for the cell's line that led to it, and also for the line of other code that called it (a model in a file or another cell): sums are over one source only. A backward op counts for the line that called backward. */
export interface ILineCost {
/** Index in `Run.sources`. */
readonly source: number;
readonly line: number;
/** Wall time of its ops and syncs; overlapping ones count once. */
readonly time_ns: number;
/** Time of the backward ops whose forward op this line called. Already in the time of the line that called backward. */
readonly backward_ns: number;
/** Bytes of storages made by its ops, freed since or not. */
readonly new_bytes: number;
readonly ops: number;
readonly syncs: number;
readonly fallbacks: number;
}

/** A storage that was alive at the peak. */
export interface ILiveTensor {
/** Index in `Run.storages`; -1 in a record made small for a notebook. */
readonly storage: number;
readonly nbytes: number;
/** What made it; empty: alive before the run. */
readonly op: string;
readonly spec: ITensorSpec | null;
/** Where it was made: index in `Run.locations`; -1: before the run. */
readonly location: number;
}

/** A place in a source. */
export interface ILocation {
/** Index in `Run.sources`. */
readonly source: number;
/** 1-based; 0 if the line is not known. */
readonly line: number;
/** 0-based, in characters. */
readonly column: number;
/** 1-based, inclusive; 0 if not known. */
readonly end_line: number;
/** 0-based, exclusive, in characters. */
readonly end_column: number;
/** The function's qualified name; `<module>` at the top level. */
readonly function: string;
}

/** Live bytes over the run. */
export interface IMemory {
readonly peak_bytes: number;
/** False: a lower bound (an op's scratch memory is not known, or the recording was cut). */
readonly exact: boolean;
/** Op position of the peak; -1: before the first op. */
readonly peak_op: number;
/** Alive when the recording started, as far as the run touched or freed it. */
readonly start_bytes: number;
readonly end_bytes: number;
/** The largest storages alive at the peak, largest first. */
readonly largest: readonly ILiveTensor[];
/** All bytes alive at the peak by the line that made them, largest first. */
readonly lines: readonly ILineBytes[];
/** At most a few hundred points; each is the highest value of its stretch. */
readonly curve: readonly ICurvePoint[];
readonly specs: readonly ITensorSpec[];
}

/** One mode's leg of a comparison. */
export interface IModeResult {
readonly mode: string;
readonly device: string;
/** Who compiled and ran it: `XLA:CPU`, `TPU v6e`, `PyTorch CPU`. */
readonly target: string;
readonly run_id: string;
readonly timing: ITiming;
readonly peak_bytes: number;
readonly peak_exact: boolean;
readonly ops: number;
readonly kernels: number;
readonly kernels_exact: boolean;
readonly syncs: number;
readonly fallbacks: number;
readonly graph_breaks: number;
readonly recompiles: number;
/** null: this mode is the reference, or it failed. */
readonly difference: IDifference | null;
/** Type and message of the exception that ended this leg; empty: it ran. */
readonly failure: string;
}

/** A `torch.nn.Module` that was called. */
export interface IModulePath {
/** From the outermost module called, which gives the first part its class name: `MLP.layers.0`. */
readonly path: string;
/** Class name. */
readonly kind: string;
}

/** The ops of a run in the order they ran; a sequence of `Op`. Every column has one entry per op. A record made small for a notebook keeps only some ops; `id` then has gaps. */
export interface IOps {
/** Position in the run, from 0. */
readonly id: readonly number[];
/** Index in `Run.programs`. */
readonly program: readonly number[];
/** Index in `Run.modules` of the innermost module it ran in; a backward op has its forward op's; -1 outside any. */
readonly module: readonly number[];
/** Index in `Run.locations` of the nearest user frame. Backward ops: of the call that started backward. -1: not known. */
readonly location: readonly number[];
/** Index in `Run.locations` of the nearest frame of the cell that ran; -1: none. */
readonly cell_location: readonly number[];
/** A backward op: id of the forward op it belongs to; -1 if there is none (it adds to `.grad`) or it ran before the recording. Other ops: -2. */
readonly forward: readonly number[];
/** Nanoseconds since the start of the recording. */
readonly start_ns: readonly number[];
/** Nanoseconds until it was done (`Run.blocking`) or until it was queued. */
readonly duration_ns: readonly number[];
/** 0 is the thread that ran the cell; autograd threads follow. */
readonly thread: readonly number[];
/** Storages read: indices in `Run.storages`. */
readonly reads: readonly (readonly number[])[];
/** Storages made or written. One that is also read was written in place. */
readonly writes: readonly (readonly number[])[];
}

/** What is the same each time an op runs in this way. */
export interface IProgram {
/** The ATen overload, `aten.add_.Tensor`, or the name of a compiled graph. */
readonly op: string;
/** How the op ran: `xla` one compiled program; `host` a host kernel, not yet worth a compile; `view` no program; `fallback` CPU fallback; `copy` a transfer; `compiled` a graph of torch.compile; `aten` a kernel of PyTorch's own (other devices). */
readonly kind: string;
readonly inputs: readonly ITensorSpec[];
readonly outputs: readonly ITensorSpec[];
/** Floating-point operations per call; null: not known. */
readonly flops: number | null;
/** Bytes read and written per call; null: not known. */
readonly bytes: number | null;
/** Bytes of scratch memory while it runs; null: not known. */
readonly temp_bytes: number | null;
/** XLA kernels (or device kernels) per call; null: not known, at least one. */
readonly kernels: number | null;
/** Time to build it in this run; 0 if it was there already. */
readonly build_ns: number;
/** Where the build came from: `miss` compiled, `disk` loaded, empty if not built in this run. */
readonly cache: string;
}

/** A program was compiled again. */
export interface IRecompile {
/** Id in `reasons.RecompileReason`. */
readonly reason: string;
readonly function: string;
/** The differing part of the key in the compiler's own words, without values of tensors and paths. */
readonly message: string;
readonly duration_ns: number;
readonly location: number;
readonly cell_location: number;
}

/** A cell or a file that ops were called from. A cell carries all its lines, a file only those that were met. */
export interface ISource {
/** A short name without home folders: `cell`, `cell 3`, `models/net.py`, `site-packages/transformers/...`. */
readonly name: string;
/** `cell` (the cell that ran), `other_cell` or `file`. */
readonly kind: string;
readonly lines: readonly ISourceLine[];
}

/** One line of a source. */
export interface ISourceLine {
/** 1-based; in a cell, line 1 is the magic. */
readonly number: number;
/** Without the line break. Paths below a home folder are shortened. */
readonly text: string;
}

/** Every storage the run met, in columns. Times are op positions: the memory changes between ops. Accounting is the same in each mode: bytes of live storages, plus an op's own scratch memory while it runs. */
export interface IStorages {
readonly nbytes: readonly number[];
/** Id of the op that made it; -1: alive before the run, or made outside an op. */
readonly made_by: readonly number[];
/** Op position before which it came to life; -1: before the run. */
readonly born: readonly number[];
/** Op position before which it died; -1: alive at the end. */
readonly died: readonly number[];
/** Index in `Memory.specs` of the tensor it was first met as; -1: not known. */
readonly spec: readonly number[];
}

/** The host waited for the device. */
export interface ISync {
/** Id in `reasons.SyncReason`. */
readonly reason: string;
readonly nbytes: number;
readonly start_ns: number;
readonly duration_ns: number;
readonly location: number;
readonly cell_location: number;
/** Id of the op before it; -1: none. */
readonly op: number;
}

/** Shape and dtype of one tensor. */
export interface ITensorSpec {
/** torch's name without `torch.`: `bfloat16`. */
readonly dtype: string;
readonly shape: readonly number[];
}

/** Wall times of the whole cell in nanoseconds. The first call is apart: it compiles. */
export interface ITiming {
readonly first_ns: number;
readonly later_ns: readonly number[];
}

/** Sums over the whole run, also over what was not kept. */
export interface ITotals {
readonly wall_ns: number;
readonly ops: number;
/** Ops that ran no program. */
readonly views: number;
readonly kernels: number;
/** False: a lower bound; some program did not tell how many kernels it has. */
readonly kernels_exact: boolean;
/** Time in ops, from the first to the last of their wall times; overlapping ones count once. */
readonly op_ns: number;
/** Programs built in this run. */
readonly builds: number;
readonly build_ns: number;
readonly peak_bytes: number;
readonly syncs: number;
readonly sync_ns: number;
readonly fallbacks: number;
readonly fallback_ns: number;
readonly graph_breaks: number;
readonly recompiles: number;
readonly failures: number;
}

/** A mode against the baseline. */
export interface IVerdict {
readonly mode: string;
readonly against: string;
/** `faster`, `slower`, `close` (too close to call) or `failed`. */
readonly verdict: string;
/** How many times faster or slower in the steady state, at least 1; null unless the verdict is faster or slower. */
readonly ratio: number | null;
/** About how many repeats would separate the two; null: not needed, or more than 1,000. */
readonly repeats_needed: number | null;
/** How much more the first call costs; negative: less. */
readonly extra_first_ns: number | null;
/** Saved by each later call; null unless faster. */
readonly saving_ns: number | null;
/** The first call, from 1, by which the mode has paid for itself; null: never, or unknown. */
readonly break_even: number | null;
}

/** An installed package. */
export interface IVersion {
readonly package: string;
readonly version: string;
}

/** The fields of each type: a scalar or the name of a type, `[]` for a list, `?` for a value that may be null. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, string>>>> = { Run: { format: 'string', schema: 'string', id: 'string', name: 'string', mode: 'string', device: 'string', target: 'string', started: 'string', blocking: 'boolean', environment: 'Environment', timing: 'Timing', totals: 'Totals', lines: 'LineCost[]', findings: 'Finding[]', comparison: 'Comparison?', sources: 'Source[]', locations: 'Location[]', modules: 'ModulePath[]', programs: 'Program[]', ops: 'Ops', storages: 'Storages', memory: 'Memory', syncs: 'Sync[]', fallbacks: 'Fallback[]', graph_breaks: 'GraphBreak[]', recompiles: 'Recompile[]', failures: 'Failure[]', ops_dropped: 'integer' }, Comparison: { baseline: 'string', reference: 'string', modes: 'ModeResult[]', verdicts: 'Verdict[]' }, CurvePoint: { op: 'integer', nbytes: 'integer' }, Difference: { max_abs: 'number?', max_rel: 'number?', name: 'string', nonfinite: 'boolean', compared: 'integer', tolerance: 'number?' }, Environment: { python: 'string', system: 'string', machine: 'string', cores: 'integer', versions: 'Version[]' }, Failure: { op: 'string', kind: 'string', message: 'string', location: 'integer', cell_location: 'integer', after_op: 'integer' }, Fallback: { op: 'string', reason: 'string', bytes_out: 'integer', bytes_in: 'integer', start_ns: 'integer', duration_ns: 'integer', location: 'integer', cell_location: 'integer' }, Finding: { id: 'string', title: 'string', reason: 'string', remedy: 'string', severity: 'string', count: 'integer', cost_ns: 'integer?', bytes: 'integer?', location: 'integer', cell_location: 'integer', goes_away_with: 'string', message: 'string' }, GraphBreak: { reason: 'string', message: 'string', location: 'integer', cell_location: 'integer', count: 'integer' }, LineBytes: { location: 'integer', nbytes: 'integer', tensors: 'integer' }, LineCost: { source: 'integer', line: 'integer', time_ns: 'integer', backward_ns: 'integer', new_bytes: 'integer', ops: 'integer', syncs: 'integer', fallbacks: 'integer' }, LiveTensor: { storage: 'integer', nbytes: 'integer', op: 'string', spec: 'TensorSpec?', location: 'integer' }, Location: { source: 'integer', line: 'integer', column: 'integer', end_line: 'integer', end_column: 'integer', function: 'string' }, Memory: { peak_bytes: 'integer', exact: 'boolean', peak_op: 'integer', start_bytes: 'integer', end_bytes: 'integer', largest: 'LiveTensor[]', lines: 'LineBytes[]', curve: 'CurvePoint[]', specs: 'TensorSpec[]' }, ModeResult: { mode: 'string', device: 'string', target: 'string', run_id: 'string', timing: 'Timing', peak_bytes: 'integer', peak_exact: 'boolean', ops: 'integer', kernels: 'integer', kernels_exact: 'boolean', syncs: 'integer', fallbacks: 'integer', graph_breaks: 'integer', recompiles: 'integer', difference: 'Difference?', failure: 'string' }, ModulePath: { path: 'string', kind: 'string' }, Ops: { id: 'integer[]', program: 'integer[]', module: 'integer[]', location: 'integer[]', cell_location: 'integer[]', forward: 'integer[]', start_ns: 'integer[]', duration_ns: 'integer[]', thread: 'integer[]', reads: 'integer[][]', writes: 'integer[][]' }, Program: { op: 'string', kind: 'string', inputs: 'TensorSpec[]', outputs: 'TensorSpec[]', flops: 'number?', bytes: 'integer?', temp_bytes: 'integer?', kernels: 'integer?', build_ns: 'integer', cache: 'string' }, Recompile: { reason: 'string', function: 'string', message: 'string', duration_ns: 'integer', location: 'integer', cell_location: 'integer' }, Source: { name: 'string', kind: 'string', lines: 'SourceLine[]' }, SourceLine: { number: 'integer', text: 'string' }, Storages: { nbytes: 'integer[]', made_by: 'integer[]', born: 'integer[]', died: 'integer[]', spec: 'integer[]' }, Sync: { reason: 'string', nbytes: 'integer', start_ns: 'integer', duration_ns: 'integer', location: 'integer', cell_location: 'integer', op: 'integer' }, TensorSpec: { dtype: 'string', shape: 'integer[]' }, Timing: { first_ns: 'integer', later_ns: 'integer[]' }, Totals: { wall_ns: 'integer', ops: 'integer', views: 'integer', kernels: 'integer', kernels_exact: 'boolean', op_ns: 'integer', builds: 'integer', build_ns: 'integer', peak_bytes: 'integer', syncs: 'integer', sync_ns: 'integer', fallbacks: 'integer', fallback_ns: 'integer', graph_breaks: 'integer', recompiles: 'integer', failures: 'integer' }, Verdict: { mode: 'string', against: 'string', verdict: 'string', ratio: 'number?', repeats_needed: 'integer?', extra_first_ns: 'integer?', saving_ns: 'number?', break_even: 'integer?' }, Version: { package: 'string', version: 'string' } };
