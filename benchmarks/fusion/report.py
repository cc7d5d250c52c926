"""The report of a validation: docs/fusion-validation.md and a page for each reason in docs/fusion/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tpu_lab.record.fusion_codes import VERSION
from tpu_lab.record.fusion_reasons import FusionReason

from .check import Replayed, Tried

UNTESTED = {
    FusionReason.COLLECTIVE: "no program here runs on several chips",
    FusionReason.HOST_TRANSFER: "no program here exchanges data with the host",
    FusionReason.MEMORY_MOVE: "moves are made in a full compile only; they are not a choice about fusion",
    FusionReason.LIBRARY_CALL: "a rule for XLA:CPU, whose programs are not compiled here",
    FusionReason.COMPILER_CHOICE: "names no cause that could be taken away",
    FusionReason.UNKNOWN: "names no cause",
}
"""Reasons without a counterfactual, and why there is none."""


@dataclass(frozen=True)
class Result:
    """All that was compiled."""

    replays: tuple[Replayed, ...]
    trials: tuple[Tried, ...]
    effort: str

    @property
    def share(self) -> float:
        """The share of kernels whose members the replay reproduces exactly."""
        return sum(r.exact for r in self.replays) / max(1, sum(r.kernels for r in self.replays))

    def figures(self) -> dict[str, Any]:
        """The result as numbers."""
        return {
            "programs": len({r.program for r in self.replays}),
            "targets": sorted({r.target for r in self.replays}),
            "kernels": sum(r.kernels for r in self.replays),
            "kernels_exact": sum(r.exact for r in self.replays),
            "share_exact": round(self.share, 4),
            "pairs": sum(_sum(r.reasons for r in self.replays).values()),
            "pairs_by_source": dict(_sum(r.sources for r in self.replays)),
            "unknown_codes": dict(_sum(r.unknown_codes for r in self.replays)),
            "counterfactuals": len(self.trials),
            "counterfactuals_as_predicted": sum(t.holds for t in self.trials),
        }


def _sum(counters: Any) -> Counter[str]:
    return reduce(add, counters, Counter())


def line(found: Replayed | Tried) -> str:
    """One line about one compile."""
    if isinstance(found, Replayed):
        wrong = f", not {', '.join(found.wrong)}" if found.wrong else ""
        return f"{found.target:6} {found.program:28} {found.exact}/{found.kernels} kernels{wrong} ({found.seconds:.1f} s)"
    return f"{found.target:6} {found.case.reason.id:28} {'as predicted' if found.holds else 'NOT as predicted'}"


def write(result: Result, docs: Path) -> None:
    """Writes the report and the pages of reasons."""
    (docs / "fusion-validation.md").write_text(_validation(result), encoding="utf-8")
    pages = docs / "fusion"
    pages.mkdir(exist_ok=True)
    for reason in FusionReason:
        (pages / f"{reason.id}.md").write_text(page(reason, [t for t in result.trials if t.case.reason is reason]), encoding="utf-8")
    (pages / "README.md").write_text(index(), encoding="utf-8")


def _validation(result: Result) -> str:
    figures, targets = result.figures(), sorted({r.target for r in result.replays})
    sources = figures["pairs_by_source"]
    head = [
        "# Is what is said about fusion true?",
        "",
        f"Written by `make validate-fusion` ({VERSION}, {result.effort} effort); do not edit. How it is done: `benchmarks/fusion/`.",
        "",
        f"- **Replay**: {figures['kernels_exact']} of {figures['kernels']} kernels ({result.share:.1%}; wanted: 95 %) hold exactly the",
        f"  instructions that the replay of the compiler's log says, over {figures['programs']} programs × {len(targets)} targets. The comparison",
        "  follows values through the optimized module, not names. Left out of it are instructions that compute nothing: constants, bitcasts,",
        "  copies, tuples, and converts, which the compiler adds and drops after fusion.",
        f"- **Counterfactuals**: {figures['counterfactuals_as_predicted']} of {figures['counterfactuals']} came out as predicted: with the",
        "  cause the two ops are apart for that reason, without it they share a kernel.",
        f"- **Pairs of ops in different kernels**: {figures['pairs']}. Evidence is the compiler's log for {sources.get('log', 0)}, the",
        f"  difference of a pass's dumps for {sources.get('pass', 0)}, a rule alone for {sources.get('rule', 0)}. Codes of the log without wording:",
        f"  {_codes(figures['unknown_codes'])}.",
        "",
    ]
    return "\n".join([*head, "## Programs", "", *_programs(result, targets), "", "## Reasons", "", *_reasons(result, targets), ""])


def _codes(unknown: dict[str, int]) -> str:
    return ", ".join(f"{code} ({count} times)" for code, count in sorted(unknown.items())) or "none"


def _programs(result: Result, targets: Sequence[str]) -> list[str]:
    rows = [
        "Kernels reproduced exactly / kernels that compute something; in brackets those that are not.",
        "",
        f"| program | {' | '.join(targets)} |",
        "|---" * (len(targets) + 1) + "|",
    ]
    for name in dict.fromkeys(r.program for r in result.replays):
        cells = []
        for target in targets:
            one = next(r for r in result.replays if r.program == name and r.target == target)
            cells.append(f"{one.exact}/{one.kernels}" + (f" ({', '.join(one.wrong)})" if one.wrong else ""))
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def _reasons(result: Result, targets: Sequence[str]) -> list[str]:
    used = _sum(r.reasons for r in result.replays)
    rows = ["| reason | pairs | the cause that was taken away | as predicted on |", "|---|---|---|---|"]
    for reason in FusionReason:
        trials = [t for t in result.trials if t.case.reason is reason]
        change = trials[0].case.change if trials else f"not tried: {UNTESTED.get(reason, '')}"
        held = ", ".join(t.target for t in trials if t.holds) or "—"
        rows.append(f"| [{reason.id}](fusion/{reason.id}.md) | {used[reason.id]} | {change} | {held} |")
    return rows


def index() -> str:
    """The list of pages."""
    rows = [f"| [{r.id}]({r.id}.md) | {r.title} |" for r in FusionReason]
    return "\n".join(
        [
            "# Why two ops are not in one kernel",
            "",
            "The closed list of reasons; pages written by `make validate-fusion`.",
            "How far they are checked: [fusion-validation.md](../fusion-validation.md).",
            "",
            "```python",
            'program = tpu_lab.compile_for(model, x, target="v6e")',
            "for pair in program.not_fused[:10]:",
            "    print(pair.producer, pair.consumer, pair.reason, pair.evidence)",
            "```",
            "",
            "`pair.source` says where the reason comes from: `log`, the compiler's own words, under the names the two had when it decided; `pass`,",
            "what a pass changed without writing it into its log; `rule`, our rule alone. Where the compiler names a place in",
            "its sources instead of words, what is meant follows in brackets, from a table for one version of libtpu;",
            "`tpu_lab.analysis.not_fused.unknown_codes` counts the places that are not in it. `tpu_lab.analysis.fusion_steps` goes through the",
            "decisions one by one and says which put two ops into one kernel.",
            "",
            "| reason | cause |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def page(reason: FusionReason, trials: Sequence[Tried]) -> str:
    """The page of a reason, with an example that was compiled where there is one."""
    told = [f"# {reason.title}", "", f"`{reason.id}`", "", reason.sentence, "", f"What would change it: {reason.remedy}", ""]
    shown = next((t for t in trials if t.holds), None)
    if shown is None or shown.found is None:
        return "\n".join([*told, f"No example was compiled: {UNTESTED.get(reason, 'none came out as predicted')}.", ""])
    evidence = "XLA's own words" if shown.found.source == "log" else "our rule" if shown.found.source == "rule" else "difference of a pass's dumps"
    return "\n".join(
        [
            *told,
            f"## Compiled for {shown.target}",
            "",
            f"The two ops are apart because {shown.case.change}.",
            "",
            f"- producer in kernel `{shown.kernels[0]}`, consumer in `{shown.kernels[1]}`, {shown.found.bytes:,} bytes between them",
            f"- evidence, {evidence}: {shown.found.evidence}",
            f"- with that taken away both are in kernel `{shown.shared}`; as predicted on {', '.join(t.target for t in trials if t.holds)}",
            "",
            f"Both programs: `benchmarks/fusion/counterfactuals.py`, `{reason.id}`.",
            "",
        ]
    )
