/** The marks of a run: what wants to be seen, with its line, its reason and its remedy. Pure functions. */

import { REASONS, type IFinding, type IFlush, type IRun } from './schema.js';
import { placeOf, samePlace, type IPlace } from './places.js';

/** What stands beside a line: a finding, an exception, or a flush. */
export interface IMark {
  readonly kind: 'sync' | 'fallback' | 'graph_break' | 'recompile' | 'flush' | 'error' | 'interrupt' | 'note';
  readonly severity: 'wrong' | 'cost' | 'note';
  readonly title: string;
  readonly reason: string;
  readonly remedy: string;
  readonly message: string;
  readonly count: number;
  readonly costNs: number | null;
  readonly bytes: number | null;
  readonly place: IPlace | null;
}

const KINDS: Readonly<Record<string, IMark['kind']>> = {
  TL201: 'sync',
  TL202: 'fallback',
  TL301: 'recompile',
  TL302: 'graph_break',
  TL303: 'recompile',
  TL304: 'recompile',
  TL305: 'graph_break'
};

/**
 * All marks of a run: wrong values first, then as the record orders them. An exception that an op raised and the cell
 * then ended with is one mark.
 */
export function marks(run: IRun): IMark[] {
  const told = run.failures.filter(
    failure =>
      failure.op ||
      !run.failures.some(other => other.op && samePlace(placeOf(run, other), placeOf(run, failure)))
  );
  const failed = told.map((failure): IMark => ({
    // Somebody stopped the cell: nothing went wrong.
    kind: failure.kind === 'KeyboardInterrupt' ? 'interrupt' : 'error',
    severity: failure.kind === 'KeyboardInterrupt' ? 'note' : 'wrong',
    title: failure.op ? `${failure.op} raised ${failure.kind}` : failure.kind,
    reason: failure.message,
    remedy: '',
    message: '',
    count: 1,
    costNs: null,
    bytes: null,
    place: placeOf(run, failure)
  }));
  const found = run.findings.map((finding: IFinding): IMark => ({
    kind: KINDS[finding.id] ?? 'note',
    severity: finding.severity === 'wrong' ? 'wrong' : 'cost',
    title: finding.title,
    reason: finding.reason,
    remedy: finding.goes_away_with ? `Goes away with ${finding.goes_away_with}` : finding.remedy,
    message: finding.message,
    count: finding.count,
    costNs: finding.cost_ns,
    bytes: finding.bytes,
    place: placeOf(run, finding)
  }));
  const order = { wrong: 0, cost: 1, note: 2 };
  return [...failed, ...found, ...flushMarks(run)].sort((a, b) => order[a.severity] - order[b.severity]);
}

/** Where the deferred executor cut its trace: one mark for each reason on a line. */
function flushMarks(run: IRun): IMark[] {
  const groups = new Map<string, IFlush[]>();
  for (const flush of run.flushes) {
    const key = `${flush.reason} ${flush.location} ${flush.cell_location}`;
    groups.set(key, [...(groups.get(key) ?? []), flush]);
  }
  return [...groups.values()].map((same): IMark => {
    const [title, sentence, remedy] = words('FlushReason', same[0]!.reason);
    const states = [...new Set(same.map(flush => flush.state))].map(state => {
      const times = same.filter(flush => flush.state === state).length;
      return `${words('ClusterState', state)[0]!}: ${times} of ${same.length}`;
    });
    const differs = same.find(flush => flush.difference);
    return {
      kind: 'flush',
      severity: 'note',
      title: title!,
      reason: `${sentence!} ${states.join('. ')}.`,
      remedy: remedy!,
      message: differs ? `${words('RecompileReason', differs.difference)[0]!}: ${differs.message}` : '',
      count: same.length,
      costNs: same.reduce((sum, flush) => sum + flush.duration_ns, 0) || null,
      bytes: null,
      place: placeOf(run, same[0]!)
    };
  });
}

/** Title, sentence and remedy of a reason. */
function words(list: string, id: string): readonly string[] {
  return REASONS[list]?.[id] ?? REASONS[list]?.unknown ?? [id, '', ''];
}
