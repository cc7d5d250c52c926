"""Watches one run of a model on fake tensors: which operators it calls from which line, where the host would wait, what is alive."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections import Counter
from types import FrameType
from typing import Any

import torch

from ..device import _torch_internals as internals
from ..device.own_ops import DATA_DEPENDENT
from ..device.plan import registry_name
from ..record.privacy import short_name
from ..recording.frames import USER, classify
from .copies import VALUE

_CELL = re.compile(r"<ipython-input-|[/\\]ipykernel_\d+[/\\]|^<tpu-cell")
_QUIET = frozenset({"prim", "prims", "profiler"})
_MOST = 1 << 28
"""Elements of the stand-ins by which the result of an operator without a fake kernel is found."""
_UNKNOWN = "unknown line"


class NeedsValues(Exception):
    """An operator asked for the value of a fake tensor that has none."""


class Watch(internals.TorchDispatchMode):
    """Notes every operator that reaches a backend. `values`: fake tensors have CPU twins, on which everything is computed too.

    `guess`: stands in for values that nobody knows; without it and without values the first such operator raises NeedsValues.
    """

    def __init__(self, mode: Any, values: bool, guess: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._mode, self._values, self._guess = mode, values, guess
        self.ops: Counter[tuple[str, str]] = Counter()
        self.dtypes: dict[str, set[str]] = {}
        self.syncs: Counter[tuple[str, str]] = Counter()
        self.dynamic: dict[tuple[str, str], list[str]] = {}
        self.live = self.peak = 0
        self._storages: dict[int, list[int]] = {}
        self.at = ""
        """The line that started the backward pass; empty outside one."""

    def line(self) -> str:
        """The innermost line of the user's that is running."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            if classify(name, {}) == USER and not name.startswith(_OWN):
                return f"{'cell' if _CELL.search(name) else short_name(name)}:{frame.f_lineno}"
            frame = frame.f_back
        return self.at or _UNKNOWN

    def sync(self, reason: str) -> None:
        """Notes that the host waits here."""
        self.syncs[reason, self.line()] += 1

    def hold(self, value: Any) -> None:
        """Counts the memory of the tensors in a value."""
        for tensor in _tensors(value):
            self._alive(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = internals.pytree.tree_map(self._as_fake, (args, dict(kwargs or {})))
        if func.namespace in _QUIET:
            return func(*args, **kwargs)
        name = registry_name(func)
        operands = list(_tensors((args, kwargs)))
        self._note(name, operands, kwargs)
        real = self._compute(func, args, kwargs) if self._values else _LOST
        if name in ("_local_scalar_dense", "is_nonzero", "equal"):
            return self._number(operands, real)
        result = self._fake(func, args, kwargs, real)
        self._pair(result, real)
        if name in DATA_DEPENDENT or _is_masked(name, operands, args):
            self.sync("data_dependent_size")
            sizes = self.dynamic.setdefault((f"aten.{name}", self.line()), [])
            sizes.append(_size(result) if real is not _LOST else "")
        self.hold(result)
        return result

    def _note(self, name: str, operands: list[Any], kwargs: Any) -> None:
        full = name.replace("::", ".") if "::" in name else f"aten.{name}"
        self.ops[full, self.line()] += 1
        self.dtypes.setdefault(full, set()).update(str(t.dtype).removeprefix("torch.") for t in operands[:1])
        away = name in ("_to_copy", "copy_") and any(t.device.type == "tpu" for t in operands[-1:])
        target = kwargs.get("device") if name == "_to_copy" else operands[0].device if operands else None
        if away and target is not None and torch.device(target).type == "cpu":
            self.sync("cpu")
        if name in ("_local_scalar_dense", "is_nonzero", "equal") and any(t.device.type == "tpu" for t in operands):
            self.sync("item")

    def _as_fake(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or internals.is_fake(leaf):
            return leaf
        fake = self._mode.from_tensor(leaf)
        if self._values:
            setattr(fake, VALUE, leaf.detach().cpu() if leaf.device.type != "meta" else torch.zeros(leaf.shape, dtype=leaf.dtype))
        return fake

    def _compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The same operation on the CPU twins; _LOST if one is missing, or if the CPU has no kernel of it."""
        if any(not hasattr(t, VALUE) for t in _tensors((args, kwargs))):
            return _LOST
        args, kwargs = internals.pytree.tree_map(_twin, (args, kwargs))
        try:
            return _CPU_FORMS.get(registry_name(func), func)(*args, **kwargs)
        except NotImplementedError:
            return _LOST

    def _number(self, operands: list[Any], real: Any) -> Any:
        if real is not _LOST:
            return real
        if operands[0].device.type == "cpu" and operands[0].constant is not None:
            return operands[0].constant.item()
        if not self._guess:
            raise NeedsValues
        return (operands[0].dtype.is_floating_point and 1.0) or operands[0].dtype == torch.bool or 1

    def _fake(self, func: Any, args: Any, kwargs: Any, real: Any) -> Any:
        try:
            with self._mode:
                return func(*args, **kwargs)
        except internals.needs_values() as error:
            if real is _LOST and not self._guess:
                raise NeedsValues from error
        if real is _LOST:
            real = self._stand_in(func, args, kwargs)
        device = next((t.device for t in _tensors((args, kwargs))), torch.device("cpu"))
        with self._mode:
            return internals.pytree.tree_map(
                lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device) if isinstance(t, torch.Tensor) else t, real
            )

    def _stand_in(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result for operands of ones: `nonzero` and masks take everything, so sizes are the largest there can be."""
        if sum(t.numel() for t in _tensors((args, kwargs))) > _MOST:
            raise NeedsValues

        def ones(leaf: Any) -> Any:
            if isinstance(leaf, torch.device):
                return torch.device("cpu")
            return torch.ones(leaf.shape, dtype=leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf

        args, kwargs = internals.pytree.tree_map(ones, (args, kwargs))
        return func(*args, **kwargs)

    def _pair(self, result: Any, real: Any) -> None:
        if real is _LOST:
            for fake in _tensors(result):
                fake.__dict__.pop(VALUE, None)
            return
        for fake, value in zip(_tensors(result), _tensors(real), strict=False):
            setattr(fake, VALUE, value)

    def _alive(self, tensor: Any) -> None:
        if tensor.device.type != "tpu" or tensor.layout != torch.strided:
            return
        storage = tensor.untyped_storage()
        key = internals.storage_key(storage)
        entry = self._storages.setdefault(key, [storage.nbytes(), 0])
        if not entry[1]:
            self.live += entry[0]
            self.peak = max(self.peak, self.live)
        entry[1] += 1
        weakref.finalize(tensor, self._gone, key)

    def _gone(self, key: int) -> None:
        entry = self._storages[key]
        entry[1] -= 1
        if not entry[1]:
            self.live -= entry[0]
            del self._storages[key]


class Asked(torch.overrides.TorchFunctionMode):
    """Sees what Python asks of tensors before it becomes operators: printing, and where a backward pass starts.

    `decide` answers for values that nobody knows: it is given a line and returns which way a branch goes.
    """

    def __init__(self, watch: Watch, decide: Any = None) -> None:
        super().__init__()
        self._watch, self._decide = watch, decide

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if name == "__repr__" and isinstance(first, torch.Tensor):
            self._watch.sync("print")
            return f"tensor(shape={tuple(first.shape)})"
        if name in ("backward", "grad") and func in (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad):
            self._watch.at = self._watch.line()
        if name in ("numpy", "tolist", "__array__") and isinstance(first, torch.Tensor) and internals.is_fake(first):
            return self._read(name, first)
        if self._decide is not None and isinstance(first, torch.Tensor) and first.device.type == "tpu":
            answer = self._guessed(name, first)
            if answer is not None:
                return answer
        return func(*args, **kwargs)

    def _read(self, name: str, tensor: Any) -> Any:
        self._watch.sync("cpu")
        value = getattr(tensor, VALUE, None)
        if value is None and self._decide is None:
            raise NeedsValues
        found = value if value is not None else torch.ones(tensor.shape, dtype=tensor.dtype)
        return found.detach().tolist() if name == "tolist" else found.detach().numpy()

    def _guessed(self, name: str, tensor: Any) -> Any:
        if name in ("__bool__", "is_nonzero"):
            self._watch.sync("item")
            return self._decide(self._watch.line())
        if name == "item":
            self._watch.sync("item")
            return Guess(lambda: self._decide(self._watch.line()))
        return None


class Guess(float):
    """A number nobody knows: it counts as 1, and whoever compares it is told what `decide` says."""

    def __new__(cls, decide: Any) -> Guess:
        made = super().__new__(cls, 1.0)
        made._decide = decide
        return made

    _decide: Any

    def __bool__(self) -> bool:
        return bool(self._decide())

    def __index__(self) -> int:
        return 1

    __hash__ = float.__hash__


def _compared(self: Guess, other: object) -> bool:
    return bool(self._decide())


def _computed(name: str) -> Any:
    plain = getattr(float, name)

    def compute(self: Guess, *others: Any) -> Any:
        result = plain(float(self), *map(float, others))
        return result if result is NotImplemented else Guess(self._decide)

    return compute


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(Guess, _name, _compared)
for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__neg__", "__abs__"):
    setattr(Guess, _name, _computed(_name))

_LOST: Any = object()
"""In place of a result whose values are not known."""
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _tensors(value: Any) -> Any:
    return (leaf for leaf in internals.pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor))


def _twin(leaf: Any) -> Any:
    if isinstance(leaf, torch.device):
        return torch.device("cpu")
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return getattr(leaf, VALUE)


def _size(result: Any) -> str:
    first = next(_tensors(result), None)
    return "" if first is None else f"[{','.join(map(str, first.shape))}]"


def _is_masked(name: str, operands: list[Any], args: Any) -> bool:
    """Whether a call takes elements by a mask, so that how many there are depends on its values."""
    return name == "index.Tensor" and any(t.dtype in (torch.bool, torch.uint8) for t in _tensors(args[1]))


def _attention(query: Any, key: Any, value: Any, bias: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **named: Any) -> Any:
    """What `_scaled_dot_product_fused_attention_overrideable` returns first, computed by PyTorch's plain form; the rest is for its gradient."""
    out, _ = torch.ops.aten._scaled_dot_product_attention_math(query, key, value, bias, dropout_p, is_causal, scale=named.get("scale"))
    return (out,)


_CPU_FORMS: dict[str, Any] = {"_scaled_dot_product_fused_attention_overrideable": _attention}
"""What is computed on the CPU for overloads without a CPU kernel."""
