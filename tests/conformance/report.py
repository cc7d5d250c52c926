"""Writes docs/operators.md from the data of the conformance runs.

`python -m tests.conformance.report` does it anew, with what the journal of a run that was stopped holds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import results
from .nodes import Node

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
        "none of whose samples the CPU can run is not counted. Tolerances are OpInfo's; where both round, the result in double precision decides",
        "(see Agreement by double precision). A random result is compared in shape and dtype.",
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
    lines += _declared(data, declared) + _fallbacks(data, declared) + _precision(data) + _failing(data)
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
    lines = ["## Overloads without an XLA program", "", "One that gets one, or falls back without standing here, fails the suite."]
    lines += ["", "| overloads | reason |", "|---|---|"]
    groups: dict[str, list[str]] = {}
    for name in sorted({*declared.fallbacks, *seen}):
        groups.setdefault(declared.fallbacks.get(name, "not declared"), []).append(name)
    return [*lines, *(f"| {', '.join(f'`{n}`' for n in names)} | {reason} |" for reason, names in groups.items()), ""]


def _precision(data: dict[str, Any]) -> list[str]:
    """The passing nodes of which a sample is outside the tolerance of the CPU's result."""
    passed = {Node.of(key): e for key, e in data["nodes"].items() if e["status"] == "pass"}
    lines = [
        "## Agreement by double precision",
        "",
        "Passing nodes with a sample that is outside OpInfo's tolerance of the CPU's result: within the same tolerance of the result in double",
        "precision, from which the CPU's is farther off; or outside that too, with an error that is not larger than the CPU's own.",
        "",
        "| variant | nodes within tolerance of double precision | nodes as near to it as the CPU |",
        "|---|---|---|",
    ]
    for variant in sorted({node.variant for node in passed}):
        mine = [e for node, e in passed.items() if node.variant == variant]
        exact, near = (sum(bool(e.get(kind)) for e in mine) for kind in ("exact", "near"))
        if exact or near:
            lines.append(f"| {variant} | {exact} | {near} |")
    operators = Counter(node.op for node, e in passed.items() if e.get("near"))
    named = ", ".join(f"`{op}` {n}" for op, n in sorted(operators.items()))
    return [*lines, "", f"As near as the CPU: {named or 'none'}.", ""]


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
