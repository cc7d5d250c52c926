"""Runs the conformance suite: `python -m tests.conformance --dtypes float32 --variants functional,gradients --samples 2`.

Goes on where an interrupted run of the same journal stopped. Exit code 1 if a node failed that is not declared.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections import Counter, deque
from typing import Any

from . import report, results
from .nodes import VARIANTS, Node, all_nodes
from .pool import Worker

MODES = {"strict": tuple(v for v in VARIANTS if v not in ("compile", "fuse")), "compile": ("compile",), "fuse": ("fuse",), "all": VARIANTS}
PROGRESS_SECONDS = 30


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="*", help="patterns of OpInfo names, by commas (`linalg.*,module:*`)")
    parser.add_argument("--dtypes", default="*", help="dtypes, by commas; `any` are error inputs")
    parser.add_argument("--variants", default="*", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--mode", choices=MODES, default="all")
    parser.add_argument("--samples", type=int, default=0, help="the first N samples of each node; 0: all")
    parser.add_argument("-n", type=int, default=2, help="worker processes")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a node")
    parser.add_argument("--fresh", action="store_true", help="forget the journal first")
    parser.add_argument("--again", choices=("failed", "all"), help="of the selected nodes, check those again that failed, or all")
    parser.add_argument("--dry", action="store_true", help="leave the data file and the report as they are")
    return parser.parse_args(given)


def selected(options: argparse.Namespace) -> list[Node]:
    """The nodes the options name."""

    def fits(value: str, patterns: str) -> bool:
        return any(fnmatch.fnmatchcase(value, p) for p in patterns.split(","))

    return [
        node
        for node in all_nodes()
        if node.variant in MODES[options.mode]
        and fits(node.variant, options.variants)
        and fits(node.dtype, options.dtypes)
        and fits(node.op, options.ops)
    ]


def waiting(nodes: list[Node], done: dict[str, dict[str, Any]], options: argparse.Namespace) -> deque[str]:
    """The nodes that have to run: not in the journal with these settings, or asked for again."""

    def settled(key: str) -> bool:
        entry = done.get(key)
        if entry is None or entry["samples"] != options.samples or options.again == "all":
            return False
        return not (options.again == "failed" and entry["status"] == "fail")

    return deque(n.key for n in nodes if not settled(n.key))


def run(queue: deque[str], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Checks the nodes of a queue, noting each in the journal; shows progress. Returns their entries."""
    workers = [Worker(i, options.samples, options.timeout) for i in range(options.n)]
    total, start, shown = len(queue), time.monotonic(), 0.0
    entries: dict[str, dict[str, Any]] = {}
    counts: Counter[str] = Counter()
    results.JOURNAL.parent.mkdir(parents=True, exist_ok=True)
    with results.JOURNAL.open("a") as journal:
        while len(entries) < total:
            for worker in workers:
                entry = worker.answer()
                if entry is not None:
                    entry["samples"] = options.samples
                    entries[entry["node"]] = entry
                    counts[entry["status"]] += 1
                    journal.write(json.dumps(entry) + "\n")
                    journal.flush()
                if worker.node is None and queue:
                    worker.give(queue.popleft())
            if time.monotonic() - shown > PROGRESS_SECONDS and entries:
                shown = time.monotonic()
                left = (shown - start) / len(entries) * (total - len(entries))
                print(f"{len(entries)} of {total} nodes, {dict(counts)}, {left / 60:.0f} min left", flush=True)
            time.sleep(0.01)
    for worker in workers:
        worker.end()
    return entries


def main() -> int:
    options = arguments()
    if options.fresh:
        results.JOURNAL.unlink(missing_ok=True)
    nodes = selected(options)
    done = results.read_journal()
    queue = waiting(nodes, done, options)
    print(f"{len(nodes)} nodes, {len(queue)} to check", flush=True)
    entries = {key: done[key] for key in (n.key for n in nodes) if key in done} | run(queue, options)
    declared = results.Declared()
    judged = {key: results.judged(entry, declared) for key, entry in entries.items()}
    failed = {key: entry["reason"] for key, entry in judged.items() if entry["status"] == "fail"}
    for key, reason in failed.items():
        print(f"{key}: {reason}")
    counts = Counter(entry["status"] for entry in judged.values())
    print(f"{len(nodes)} nodes: " + ", ".join(f"{n} {status}" for status, n in counts.most_common()))
    if not options.dry:
        data = results.load()
        results.merge(data, entries.values(), declared)
        results.store(data)
        report.REPORT.write_text(report.render(results.load(), declared))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
