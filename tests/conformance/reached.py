"""Which ATen overloads the nodes of the suite call, and an example of each: `python -m tests.conformance.reached`.

PyTorch's samples run on the CPU under its profiler, which tells of every overload that passes the dispatcher and of the one that
called it. Writes `tpu_lab/coverage/data/reached.json`. Overloads are named without `aten::`.
"""

from __future__ import annotations

import datetime
import json
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .examples import Example, example_of, from_sample
from .nodes import DTYPES, operators
from .results import DATA

OUT = DATA.parent / "reached.json"
SAMPLES = 4
_SMALL = 4_000
"""Elements beyond which a sample is no example."""


class Reached:
    """What is found: by overload, the operators of the suite that call it themselves or within a composite, and the overloads it calls."""

    def __init__(self) -> None:
        self.direct: dict[str, set[str]] = {}
        self.through: dict[str, set[str]] = {}
        self.calls: dict[str, list[frozenset[str]]] = {}
        self.examples: dict[str, Example] = {}

    def add(self, op: str, events: Any) -> None:
        """Takes the events of a profile of one operator's samples."""
        for event in events:
            name = _overload(event)
            if name is None:
                continue
            parent = _overload(event.cpu_parent) if event.cpu_parent else None
            (self.direct if parent is None else self.through).setdefault(name, set()).add(op)
            inner = frozenset(child for child in map(_overload, event.cpu_children) if child is not None)
            ways = self.calls.setdefault(name, [])
            if inner not in ways:
                ways.append(inner)

    def example(self, name: str, example: Example | None) -> None:
        """Keeps the smaller of two examples."""
        if example is not None and (name not in self.examples or example.rank < self.examples[name].rank):
            self.examples[name] = example


def _overload(event: Any) -> str | None:
    """`add.Tensor` for an event of the dispatcher, `relu` where the overload has no name; None for other events."""
    if not event.name.startswith("aten::"):
        return None
    base = event.name.removeprefix("aten::")
    return f"{base}.{event.overload_name}" if event.overload_name else base


class _Calls(TorchDispatchMode):
    """Makes examples of the calls that reach a backend."""

    def __init__(self, reached: Reached, grad: bool) -> None:
        super().__init__()
        self._reached, self._grad = reached, grad

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "aten":
            tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            if sum(t.numel() for t in tensors) <= _SMALL:
                self._reached.example(func.name().removeprefix("aten::"), example_of(func, args, kwargs))
        return func(*args, **kwargs)


def _runs(op: Any) -> Iterator[tuple[Any, Any, bool]]:
    """The calls of an operator to look at: (function, sample, whether to go backward)."""
    dtype = next((d for d in DTYPES.values() if d in op.supported_dtypes("cpu")), None)
    if dtype is None:
        return
    grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=grad)):
        if number >= SAMPLES:
            return
        yield op.op, sample, grad
        if number == 0 and op.get_inplace() is not None:
            yield op.get_inplace(), sample.transform(lambda t: t.detach().clone() if isinstance(t, torch.Tensor) else t), False
        if number == 0 and op.supports_out:
            yield _into_out(op.op), sample.transform(lambda t: t.detach() if isinstance(t, torch.Tensor) else t), False


def _into_out(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        target = made if isinstance(made, torch.Tensor) else tuple(made)
        return function(*args, out=target, **kwargs)

    return call


def _go(function: Any, sample: Any, grad: bool) -> None:
    result = function(sample.input, *sample.args, **sample.kwargs)
    leaves = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad] if grad else []
    if leaves:
        torch.autograd.backward(leaves, [torch.ones_like(leaf) for leaf in leaves])


def survey() -> Reached:
    """Runs the samples of every operator."""
    reached = Reached()
    for name, op in operators().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = list(_runs(op))
            with profile(activities=[ProfilerActivity.CPU], experimental_config=_ExperimentalConfig(capture_overload_names=True)) as profiled:
                for run in runs:
                    with suppress(Exception):  # samples that the CPU refuses
                        _go(*run)
            events = profiled.events()
            reached.add(name, events)
            for run in runs:
                with suppress(Exception), _Calls(reached, run[2]):
                    _go(*run)
            called = {_overload(event) for event in events if event.cpu_parent is None} - {None}
            if runs and len(called) == 1:
                reached.example(*called, from_sample(op, runs[0][1]))
    return reached


def main() -> None:
    """Writes the data file, one overload a line."""
    reached = survey()
    names = sorted({*reached.direct, *reached.through, *reached.examples})
    rows = []
    for name in names:
        ways = [sorted(way) for way in reached.calls.get(name, ())]
        entry = {
            "direct": sorted(reached.direct.get(name, ())),
            "through": sorted(reached.through.get(name, ()))[:8],
            "calls": sorted(way for way in ways if way)[:6],
            "leaf": [] in ways,
        }
        example = reached.examples.get(name)
        if example is not None:
            entry["example"] = example.code
        rows.append(f"  {json.dumps(name)}: {json.dumps(entry)}")
    made = {"date": datetime.date.today().isoformat(), "torch": torch.__version__, "source": f"OpInfo, the first {SAMPLES} samples, on the CPU"}
    OUT.write_text(f'{{\n "made": {json.dumps(made)},\n "overloads": {{\n' + ",\n".join(rows) + "\n }\n}\n")
    print(f"{OUT}: {len(names)} overloads, {len(reached.examples)} with an example")


if __name__ == "__main__":
    main()
