"""What one operator call costs on 8x8 tensors, where arithmetic is nothing: strict, with numbers, recorded."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from .children import measure
from .figure import Figure, at_most
from .timing import fastest, keep_pages

CALLS = 200
"""Calls in a block: some 2 ms, shorter than a scheduler's slice."""
BLOCKS = 300
_TURNS = 10
"""Calls that are compared are measured by turns: the machine's clock changes."""
_MICRO = 1e6
_CELL = """def turn():
    for _ in range(CALLS):
        a + b
"""


def figures(quick: bool) -> list[Figure]:
    """µs per call against torch on the CPU in the same process."""
    found = measure(per_call, BLOCKS // 10 if quick else BLOCKS, threads=1)
    cpu, tpu = found["cpu"], found["tpu"]
    return [
        at_most(9, "a + b", tpu["a + b"], "µs", cpu["a + b"]),
        at_most(10.5, "torch.add(a, b, alpha=a new number): 9 + 1.5 for the number", tpu["alpha new"], "µs", cpu["alpha new"]),
        at_most(1.5, "+ per Python number, seen before", tpu["alpha seen"] - tpu["add"], "µs", cpu["alpha seen"] - cpu["add"]),
        Figure("+ per Python number, a new one each call", tpu["alpha new"] - tpu["counted"], "µs", cpu["alpha new"] - cpu["counted"]),
        at_most(10, "gelu", tpu["gelu"], "µs", cpu["gelu"]),
        at_most(3, "x.view(64)", tpu["view"], "µs", cpu["view"]),
        at_most(5, "x[1:3]", tpu["slice"], "µs", cpu["slice"]),
        Figure("a.add_(b)", tpu["add_"], "µs", cpu["add_"]),
        Figure("a[1:3] + b[1:3]", tpu["slices"], "µs", cpu["slices"]),
        Figure("torch.cat of 4", tpu["cat"], "µs", cpu["cat"]),
        at_most(25, "a + b in a cell, recorded light, over not recorded", (found["recorded"] / found["plain"] - 1) * 100, "%"),
    ]


def per_call(blocks: int) -> dict[str, Any]:
    """µs of each call on `cpu` and on `tpu`, and of `a + b` in a cell on the tpu, `plain` and `recorded`."""
    import torch

    from tpu_lab.recording.frames import CellText
    from tpu_lab.recording.recorder import Recorder

    keep_pages()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for device in ("cpu", "tpu"):  # all of one before the other: their thread pools disturb each other
        calls = _calls(torch.arange(64.0).reshape(8, 8).to(device) / 64)
        turns = [{name: fastest(call, CALLS, max(blocks // _TURNS, 1)) * _MICRO for name, call in calls.items()} for _ in range(_TURNS)]
        found[device] = {name: min(turn[name] for turn in turns) for name in calls}
    a = torch.ones(8, 8, device="tpu")
    names: dict[str, Any] = {"a": a, "b": a.clone(), "CALLS": CALLS}
    exec(compile(_CELL, "a cell", "exec"), names)
    plain, recorded = [], []
    for _ in range(_TURNS):
        plain.append(fastest(names["turn"], 1, max(blocks // _TURNS, 1)))
        with Recorder(cells={"a cell": CellText(text=_CELL)}):
            recorded.append(fastest(names["turn"], 1, max(blocks // _TURNS, 1)))
    found["plain"], found["recorded"] = (min(times) / CALLS * _MICRO for times in (plain, recorded))
    return found


def _calls(a: Any) -> dict[str, Callable[[], object]]:
    import torch

    b, target = a.clone(), a.clone()
    four = [a, b, a.clone(), a.clone()]
    new = itertools.count(0.001, 0.001)
    return {
        "a + b": lambda: a + b,
        "add": lambda: torch.add(a, b),
        "counted": lambda: (next(new), torch.add(a, b)),
        "alpha seen": lambda: torch.add(a, b, alpha=2.5),
        "alpha new": lambda: torch.add(a, b, alpha=next(new)),
        "gelu": lambda: torch.nn.functional.gelu(a),
        "view": lambda: a.view(64),
        "slice": lambda: a[1:3],
        "add_": lambda: target.add_(b),
        "slices": lambda: a[1:3] + b[1:3],
        "cat": lambda: torch.cat(four),
    }
