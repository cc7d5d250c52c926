"""The variants of an operator, each on OpInfo's samples: the CPU's answer first, then the device's on the same values."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_utils import noncontiguous_like

from ..device.fuse.mode import deferring
from .agreement import CPU_KERNEL_MISSING, Agreement, Disagreement, Outcome, by_double_precision, outcome, raised, same, same_error, tolerance_of
from .draws import Draws
from .nodes import DTYPES, Node, operators
from .operands import Mover, NotForDevice, as_conjugate, as_negative, each_tensor, tensors_of, widened

_ROUNDED = (torch.float32, torch.bfloat16, torch.float16, torch.complex64)
"""Dtypes of which double precision is the wider form."""
_HOST_ARGUMENTS = frozenset({"tensor_split"})
"""Operators whose tensor arguments, all but the first operand, stay on the CPU: PyTorch wants them there."""
UNDEFINED_VALUES = frozenset({"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"})
"""Operators whose results have no values."""


@dataclass(frozen=True)
class Sample:
    """One call: operands and keyword arguments, and what makes results comparable (OpInfo's `output_process_fn_grad`)."""

    operands: tuple[Any, ...]
    named: dict[str, Any]
    comparable: Callable[[Any], Any]
    broadcasts: bool = False
    label: str = ""
    host_arguments: bool = False

    def _with(self, operands: tuple[Any, ...], named: dict[str, Any]) -> Sample:
        return dataclasses.replace(self, operands=operands, named=named)

    def on(self, device: str) -> Sample:
        """The sample with fresh copies of its tensors on a device."""
        mover = Mover(device)
        if self.host_arguments:
            return self._with((mover(self.operands[0]), *self.operands[1:]), self.named)
        return self._with(*mover((self.operands, self.named)))

    def each(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Sample:
        """The sample with `function` applied to each tensor."""
        return self._with(*each_tensor(function, (self.operands, self.named)))

    def wide(self) -> Sample:
        """The sample in double precision."""
        return self._with(*widened((self.operands, self.named)))

    def call(self, function: Callable[..., Any]) -> Any:
        """Calls an operator with it."""
        return function(*self.operands, **self.named)


def samples_of(op: Any, dtype: torch.dtype, limit: int | None, requires_grad: bool = False) -> Iterator[Sample]:
    """OpInfo's first `limit` samples (None: all) for a dtype, on the CPU; those with operands no device but the CPU takes are left out."""
    found = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    for number, sample in enumerate(islice(found, limit)):
        yield _comparable(op, sample, _sample(sample, f"sample {number}"))


def _sample(given: Any, label: str) -> Sample:
    return Sample((given.input, *given.args), dict(given.kwargs), given.output_process_fn_grad, given.broadcasts_input, label)


def _comparable(op: Any, given: Any, sample: Sample) -> Sample:
    """The sample with results that do not depend on what PyTorch leaves open."""
    if op.name in _ORDERS and not given.kwargs.get("stable") and True not in given.args[:1]:
        sample = dataclasses.replace(sample, comparable=_by_the_values_chosen(op.name, given))
    return dataclasses.replace(sample, host_arguments=op.name in _HOST_ARGUMENTS)


_ORDERS = frozenset({"sort", "argsort", "topk", "kthvalue"})
"""Operators that may take equal elements in any order, unless `stable` is asked for."""


def _by_the_values_chosen(name: str, given: Any) -> Callable[[Any], Any]:
    """Makes positions comparable by what stands there."""
    source = given.input.detach().cpu()
    place = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1}[name]
    dim = given.kwargs.get("dim", given.args[place] if len(given.args) > place else -1)

    def chosen(indices: torch.Tensor) -> torch.Tensor:
        found = indices.cpu() if indices.ndim == source.ndim else indices.cpu().unsqueeze(dim)
        return source.gather(dim, found)

    return lambda result: chosen(result) if isinstance(result, torch.Tensor) else [result[0], chosen(result[1])]


def check(node: Node, limit: int | None) -> list[Agreement]:
    """Checks a node on at most `limit` samples of it. Returns how each agrees; raises Disagreement at the first that differs."""
    op = operators()[node.op]
    if node.variant == "errors":
        return _errors(op, limit)
    dtype = DTYPES[node.dtype]
    found = []
    with_grad = node.variant in ("gradients", "gradgrad")
    for sample in samples_of(op, dtype, limit, with_grad):
        try:
            found.append(_CHECKS[node.variant](op, dtype, sample))
        except NotForDevice:
            continue
    return found


def _run(function: Callable[..., Any], sample: Sample) -> tuple[Outcome, bool]:
    """A call on the CPU, and whether it drew random numbers."""
    with Draws() as draws:
        result = outcome(lambda: sample.call(function))
    return result, draws.happened


def _compare_call(op: Any, dtype: torch.dtype, sample: Sample, on_cpu: Callable[..., Any], on_device: Callable[..., Any]) -> Agreement:
    """One call on both; nothing to compare where the CPU only lacks the kernel."""
    there = sample.on("tpu")
    expected, random = _run(on_cpu, sample.on("cpu"))
    actual = outcome(lambda: sample_settled(there.call(on_device)))
    values = not random and op.name not in UNDEFINED_VALUES
    return settle(op, dtype, sample, expected, actual, values, lambda: sample.comparable(sample.wide().call(on_cpu)))


def sample_settled(result: Any) -> Any:
    """A result of the device once all its checks are done: a bad index is reported when something is read."""
    torch.tpu.synchronize()
    for tensor in tensors_of(result):
        if tensor.device.type == "tpu":
            tensor.detach().cpu()
    return result


def settle(
    op: Any, dtype: torch.dtype, sample: Sample, expected: Outcome, actual: Outcome, values: bool = True, exact: Callable[[], Any] | None = None
) -> Agreement:
    """Compares two outcomes of a sample. Raises Disagreement where they differ.

    Results outside the tolerance of the CPU's are held against those in double precision, which `exact` gives.
    """
    if expected.error is not None:
        if CPU_KERNEL_MISSING.search(str(expected.error)):
            return Agreement.UNCOMPARED
        same_error(actual, expected.error, sample.label)
        return Agreement.SAME
    if actual.error is not None:
        raise raised(actual.error, sample.label)
    ours, theirs, tolerance = sample.comparable(actual.value), sample.comparable(expected.value), tolerance_of(op, dtype)
    try:
        same(ours, theirs, tolerance, sample.label, values)
    except Disagreement:
        if exact is None or dtype not in _ROUNDED:
            raise
        reference = outcome(exact)
        agreement = Agreement.DIFFERENT if reference.error is not None else by_double_precision(ours, theirs, reference.value, tolerance)
        if agreement is Agreement.DIFFERENT:
            raise
        return agreement
    return Agreement.SAME


def _functional(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    return _compare_call(op, dtype, sample, op, op)


def _noncontiguous(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    return _functional(op, dtype, sample.each(lambda t: noncontiguous_like(t) if t.layout == torch.strided else t))


def _conj(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    return _functional(op, dtype, sample.each(as_conjugate))


def _neg(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    return _functional(op, dtype, sample.each(as_negative))


def _inplace(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    """The in-place form gives its result and leaves it in the operand."""
    inplace = op.get_inplace()

    def written(*operands: Any, **named: Any) -> Any:
        return inplace(*operands, **named), operands[0]

    plain = dataclasses.replace(sample, comparable=lambda result: result)
    return _compare_call(op, dtype, plain, written, written)


def _targets(expected: Any, make: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`out=` targets for these results."""
    if isinstance(expected, torch.Tensor):
        return make(expected)
    return tuple(make(t) for t in expected)


def _with_dtype(tensor: torch.Tensor) -> torch.Tensor:
    other = torch.int64 if tensor.dtype.is_floating_point or tensor.dtype.is_complex else torch.float32
    return torch.zeros(tensor.shape, dtype=other)


_TARGETS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "right": lambda t: torch.full_like(t, 1, memory_format=torch.contiguous_format),
    "noncontiguous": lambda t: noncontiguous_like(torch.full_like(t, 1)),
    "empty": lambda t: torch.empty(0, dtype=t.dtype),
    "wrong shape": lambda t: torch.full((*t.shape, 2), 1, dtype=t.dtype),
    "wrong dtype": _with_dtype,
}


def _out(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    """`out=` with a target of the right kind, which keeps its strides, and with four others."""
    expected, random = _run(op, sample.on("cpu"))
    if expected.error is not None or not tensors_of(expected.value) or any(not isinstance(t, torch.Tensor) for t in _as_tuple(expected.value)):
        return Agreement.UNCOMPARED
    values = not random and op.name not in UNDEFINED_VALUES
    found = Agreement.UNCOMPARED
    for label, make in _TARGETS.items():
        if label == "wrong shape" and any(t.numel() == 0 for t in tensors_of(expected.value)):
            continue  # some of the CPU's kernels look at the number of elements only
        target = _targets(expected.value, lambda t, make=make: make(t.detach().resolve_conj().resolve_neg()))
        here = Sample(sample.operands, {**sample.named, "out": target}, lambda result: result, label=f"{sample.label}, out: {label}")

        def into(*operands: Any, **named: Any) -> Any:
            result = op(*operands, **named)
            return sample.comparable(result), sample.comparable(named["out"])

        with torch.no_grad():
            twin = here.on("cpu")
            wanted, _ = _run(into, twin)
            if values and label != "wrong dtype" and wanted.error is None and not _is_right(op, dtype, sample, wanted.value[1], expected.value):
                continue  # the CPU's kernel writes something else into such a target
            there = here.on("tpu")
            actual = outcome(lambda there=there: sample_settled(there.call(into)))
        exact = (lambda: (sample.comparable(sample.wide().call(op)),) * 2) if label != "wrong dtype" else None
        found = max(found, settle(op, dtype, here, wanted, actual, values, exact))
        if label in ("right", "noncontiguous") and wanted.error is None:
            ours, theirs, before = ([t.stride() for t in tensors_of(given)] for given in (there.named["out"], twin.named["out"], target))
            if theirs == before != ours:
                raise Disagreement(f"{here.label}: the target got other strides: {ours} for {before}")
    return found


def _is_right(op: Any, dtype: torch.dtype, sample: Sample, into_target: Any, expected: Any) -> bool:
    """Whether the CPU gives the same with and without a target."""
    return outcome(lambda: same(into_target, sample.comparable(expected), tolerance_of(op, dtype), "")).error is None


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _cotangents(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(t.shape, dtype=torch.complex128 if t.is_complex() else torch.float64, generator=generator).to(t.dtype) for t in tensors]


def derivatives(function: Callable[..., Any], sample: Sample, order: int) -> Any:
    """The gradients of a call's results, `order` times, with cotangents that are the same on each device."""
    inputs = [t for t in tensors_of((sample.operands, sample.named)) if t.requires_grad]
    results = [t for t in tensors_of(sample.comparable(sample.call(function))) if t.requires_grad]
    gradients: list[Any] = []
    for step in range(order):
        if not results or not inputs:
            break
        cotangents = [c.to(t.device) for c, t in zip(_cotangents(results), results, strict=True)]
        found = torch.autograd.grad(results, inputs, cotangents, create_graph=step + 1 < order, allow_unused=True)
        gradients.append(list(found))
        results = [t for t in found if t is not None and t.requires_grad]
    return gradients


def _gradients(op: Any, dtype: torch.dtype, sample: Sample, order: int = 1) -> Agreement:
    here, there = sample.on("cpu"), sample.on("tpu")
    with Draws() as draws:
        expected = outcome(lambda: derivatives(op, here, order))
    actual = outcome(lambda: sample_settled(derivatives(op, there, order)))
    plain = Sample((), {}, lambda result: result, label=sample.label)
    return settle(op, dtype, plain, expected, actual, not draws.happened, lambda: derivatives(op, sample.wide(), order))


def _gradgrad(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    return _gradients(op, dtype, sample, 2)


def _compile(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    torch._dynamo.reset()
    compiled = torch.compile(lambda *operands, **named: op.op(*operands, **named), backend="tpu", dynamic=False)
    return _compare_call(op, dtype, sample, op, compiled)


def _fuse(op: Any, dtype: torch.dtype, sample: Sample) -> Agreement:
    """The operator in one cluster with what makes its operands and what uses its results."""

    def between(*operands: Any, **named: Any) -> Any:
        with deferring():
            operands, named = each_tensor(torch.clone, (operands, named))
            return sample_settled(each_tensor(torch.clone, op(*operands, **named)))

    return _compare_call(op, dtype, sample, op, between)


def _errors(op: Any, limit: int | None) -> list[Agreement]:
    """Each error input raises what it raises on the CPU."""
    found = []
    for number, given in enumerate(islice(op.error_inputs("cpu"), limit)):
        sample = _sample(given.sample_input, f"error {number}")
        try:
            there = sample.on("tpu")
        except NotForDevice:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = outcome(lambda sample=sample: sample.on("cpu").call(op))
            actual = outcome(lambda there=there: sample_settled(there.call(op)))
        if expected.error is None or CPU_KERNEL_MISSING.search(str(expected.error)):
            continue
        same_error(actual, expected.error, sample.label)
        found.append(Agreement.SAME)
    return found


_CHECKS: dict[str, Callable[[Any, torch.dtype, Sample], Agreement]] = {
    "functional": _functional,
    "noncontiguous": _noncontiguous,
    "conj": _conj,
    "neg": _neg,
    "inplace": _inplace,
    "out": _out,
    "gradients": _gradients,
    "gradgrad": _gradgrad,
    "compile": _compile,
    "fuse": _fuse,
}

__all__ = ["Disagreement", "Sample", "check", "derivatives"]
