"""The log in which XLA's fusion passes tell what they did and why not (`xla_dump_fusion_visualization`), as typed steps.

The log is an HTML page with `const frames = [[graph, label, highlight], …]`. Its form and its labels belong to no interface: they are
those of libtpu 0.0.42.1 and jaxlib 0.10.2 (read 2026-12-01). XLA renders a picture for each step, which takes longer the larger the
program is: 0.1 s for a layer norm, 80 s for the training step of a transformer block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .hlo_proto import DecodeError

LOGS = "*fusion.html"
"""The names of the files with the log, written when code generation ends."""
ABOUT, FUSED, REJECTED = "about", "fused", "rejected"
_START = "const frames = "
_LABELS = (
    (ABOUT, re.compile(r"About to (MOF-)?fuse \|([^|]*)\| into \|([^|]*)\|")),
    (FUSED, re.compile(r"Fused (MOF-)?\|([^|]*)\| into \|([^|]*)\|")),
    (REJECTED, re.compile(r"Not fusing (MOF-)?\|([^|]*)\| into \|([^|]*)\| as (.*)", re.DOTALL)),
)
_NOISE = re.compile(r" at: third_party/tensorflow/compiler/xla/service/decision\.h:\d+")
_FOLDERS = re.compile(r"(?:platforms/xla/service/jellyfish|third_party/tensorflow/compiler/xla/service|xla/service)/")


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of the log."""

    kind: str
    """`about` to fuse, `fused`, `rejected`."""
    producer: str
    consumer: str
    """For `fused`: the name of what holds both from here on."""
    words: str = ""
    """A rejection's reason; its two halves (plain fusion ; fusion with several outputs) as XLA joins them, folders of its sources left out."""
    multi_output: bool = False
    """The fusion that is about to happen keeps the producer's result as a further output."""


def read_log(folder: Path) -> tuple[Step, ...]:
    """The steps in a folder that a compiler dumped into, over all computations; empty if it dumped no log. Raises DecodeError for another form."""
    return tuple(step for page in sorted(folder.glob(LOGS)) for step in parse(page.read_text(encoding="utf-8", errors="replace")))


def parse(page: str) -> tuple[Step, ...]:
    """The steps of one page. Raises DecodeError, by what is unknown, for another form of page or label."""
    start = page.find(_START)
    if start < 0:
        raise DecodeError(f"the fusion log has no {_START.strip()!r}")
    try:
        frames = json.JSONDecoder().raw_decode(page, start + len(_START))[0]
        return tuple(_step(str(frame[1])) for frame in frames)
    except (ValueError, LookupError, TypeError) as error:
        raise DecodeError(f"the fusion log has frames of another form: {error}") from None


def _step(label: str) -> Step:
    for kind, pattern in _LABELS:
        found = pattern.match(label)
        if found:
            words = cleaned(found[4]) if kind == REJECTED else ""
            return Step(kind, found[2], found[3], words, bool(found[1]))
    raise DecodeError(f"the fusion log says {label[:80]!r}, which this version does not know")


def cleaned(words: str) -> str:
    """A reason without the folders of XLA's sources and without where two reasons were joined."""
    return _FOLDERS.sub("", _NOISE.sub("", words)).strip()


def fusions(steps: Sequence[Step]) -> Iterator[tuple[int, Step, Step]]:
    """Position, announcement and outcome of every fusion of a log. Raises DecodeError for an outcome that was not announced."""
    announced: Step | None = None
    for position, step in enumerate(steps):
        if step.kind == FUSED:
            if announced is None or announced.producer != step.producer:
                raise DecodeError(f"the fusion log fuses {step.producer} without saying into what")
            yield position, announced, step
        announced = step if step.kind == ABOUT else None
