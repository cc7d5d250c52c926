"""Writes docs/operators.md from the data of the conformance runs.

`python -m tests.conformance.report` does it anew, with what the journal of a run that was stopped holds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import results

REPORT = results.ROOT / "docs" / "operators.md"
LISTED = 400
"""Failing nodes named in the report; the data file has all."""


def render(data: dict[str, Any], declared: results.Declared) -> str:
    made = data["made"]
    settings = Counter(
        "all samples" if not e.get("samples") else f"the first {e['samples']} samples" for e in data["nodes"].values() if e["status"] != "skipped"
    )
    lines = [
        "# Operators",
        "",
        "Written by `make conformance`; do not edit. What PyTorch's own databases of samples describe (`op_db`, the foreach databases,",
        "`module_db`, `optim_db`), on the device `tpu` against PyTorch on the CPU. A node is one operator in one variant with one dtype; a node",
        "none of whose samples the CPU can run is not counted. Tolerances are OpInfo's; a result outside them agrees if it is as near to the",
        "result in double precision as the CPU's own. A random result is compared in shape and dtype.",
        "",
        f"Last run {made['date']} with torch {made['torch']}, jax {made['jax']}. Nodes by setting: "
        + ", ".join(f"{n} with {s}" for s, n in settings.most_common())
        + ".",
        f"Machine-readable: `{results.DATA.relative_to(results.ROOT)}`.",
        "",
    ]
    for by in ("variant", "dtype"):
        lines += [f"## By {by}", "", f"| {by} | nodes | pass | declared | fail | pass % |", "|---|---|---|---|---|---|"]
        everything: Counter[str] = Counter()
        for name, counts in results.rows(data, by):
            lines.append(_row(name, counts))
            everything += counts
        lines += [_row("all", everything), ""]
    lines += _declared(data, declared) + _fallbacks(data, declared) + _failing(data)
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, counts: Counter[str]) -> str:
    nodes = counts["pass"] + counts["declared"] + counts["fail"]
    share = f"{100 * counts['pass'] / nodes:.2f}" if nodes else "–"
    return f"| {name} | {nodes} | {counts['pass']} | {counts['declared']} | {counts['fail']} | {share} |"


def _declared(data: dict[str, Any], declared: results.Declared) -> list[str]:
    hit = Counter(e["reason"] for e in data["nodes"].values() if e["status"] == "declared")
    lines = ["## Declared differences", "", "One that starts to pass fails the suite.", "", "| nodes | how many | reason |", "|---|---|---|"]
    groups: dict[str, list[str]] = {}
    for pattern, reason in declared.nodes.items():
        groups.setdefault(reason, []).append(pattern.replace("|", " · "))
    return [*lines, *(f"| {', '.join(f'`{p}`' for p in patterns)} | {hit[reason]} | {reason} |" for reason, patterns in groups.items()), ""]


def _fallbacks(data: dict[str, Any], declared: results.Declared) -> list[str]:
    seen = Counter(f for e in data["nodes"].values() for f in e.get("fallbacks", ()))
    lines = ["## Overloads that ran on the CPU", "", "| overload | nodes | reason |", "|---|---|---|"]
    return [*lines, *(f"| `{name}` | {n} | {declared.fallbacks.get(name, 'not declared')} |" for name, n in seen.most_common()), ""]


def _failing(data: dict[str, Any]) -> list[str]:
    failed = {key: e["reason"] for key, e in sorted(data["nodes"].items()) if e["status"] == "fail"}
    lines = [
        "## Failing nodes",
        "",
        f"{len(failed)} nodes; operators by how many of their nodes fail:",
        "",
        "| operator | nodes | one of them | what it says |",
        "|---|---|---|---|",
    ]
    groups: dict[str, list[str]] = {}
    for key in failed:
        groups.setdefault(key.split("|")[0], []).append(key)
    for op, keys in sorted(groups.items(), key=lambda item: -len(item[1]))[:LISTED]:
        first = keys[0]
        said = " ".join(failed[first].replace("|", "/").split())[:160]
        lines.append(f"| `{op}` | {len(keys)} | {' · '.join(first.split('|')[1:])} | {said} |")
    return lines


if __name__ == "__main__":
    collected, known = results.load(), results.Declared()
    journal = results.read_journal()
    if journal:
        results.merge(collected, journal.values(), known)
        results.store(collected)
    REPORT.write_text(render(results.load(), known))
