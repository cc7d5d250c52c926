"""Calls that PyTorch's kernels refuse and its meta kernels let pass: reductions over nothing, numbers outside a dtype's range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .call import Call, TensorSlot
from .plan import Plan

_NO_IDENTITY = frozenset({"max", "min", "amax", "amin", "argmax", "argmin", "aminmax", "mode", "kthvalue"})
"""Reductions that have no value for an empty dimension."""
_BY_DIM_ONLY = frozenset({"median", "nanmedian", "mode", "kthvalue"})
"""Those (and two more) that have one, or an empty result, where no dimension is reduced to nothing."""


def refuse_empty_reduction(plan: Plan, call: Call) -> None:
    """Raises IndexError or RuntimeError, as ATen does, for a reduction without identity over a dimension of size 0."""
    name = plan.name.partition(".")[0]
    if name not in _NO_IDENTITY and name not in _BY_DIM_ONLY:
        return
    given = {a.name: (slot, value) for a, slot, value in zip(plan.arguments, call.slots, call.arguments, strict=True)}
    slot = given["self"][0]
    if not isinstance(slot, TensorSlot) or 0 not in slot.size or "other" in given:
        return
    dims = given["dim"][1] if "dim" in given else None
    if name == "aminmax":
        if dims is None or slot.size[dims] == 0:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        return
    if dims is None or dims == []:
        if name in _BY_DIM_ONLY:
            return
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        raise IndexError(text) if name.startswith("arg") else RuntimeError(f"{text} Specify the reduction dim with the 'dim' argument.")
    for dim in dims if isinstance(dims, (list, tuple)) else [dims]:
        if slot.size[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim % len(slot.size)} to have non-zero size.")


_ONE_DTYPE = {
    **dict.fromkeys(
        ("mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv", "addbmm", "baddbmm", "linear"),
        "expected {0} and {1} to have the same dtype, but got: {2} != {3}",
    ),
    "convolution": "Input type ({2}) and {1} type ({3}) should be the same",
    "index_copy": "index_copy_(): self and source expected to have the same dtype, but got (self) {2} and (source) {3}",
    "index_put": "Index put requires the source and destination dtypes match, got {2} for the destination and {3} for the source.",
}
"""Operators that promote nothing, and what ATen says of two dtypes: names and dtypes of two operands."""


def refuse_mixed_dtypes(plan: Plan, call: Call) -> None:
    """Raises RuntimeError, as ATen does, for operands of different dtypes where nothing is promoted, for masks and indices that are none."""
    name = plan.name.partition(".")[0].removesuffix("_").removesuffix("_impl").removeprefix("_")
    operands = [(a.name, s) for a, s in zip(plan.arguments, call.slots, strict=True) if isinstance(s, TensorSlot) and a.name not in plan.out]
    if name == "index_select" and len(operands[1][1].size) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if name in ("index", "index_put"):
        _refuse_index_dtypes(plan, call)
    if name in ("masked_fill", "masked_scatter") and operands[1][1].dtype is not torch.bool:
        raise RuntimeError(f"{name}_ only supports boolean masks, but got mask with dtype {_type_name(operands[1][1].dtype)}")
    text = _ONE_DTYPE.get(name)
    if text is None:
        return
    for other, slot in operands[1:]:
        if slot.dtype is not operands[0][1].dtype and other not in ("index", "indices"):
            raise RuntimeError(text.format(operands[0][0], other, _type_name(operands[0][1].dtype), _type_name(slot.dtype)))


def _refuse_index_dtypes(plan: Plan, call: Call) -> None:
    for argument, slots in zip(plan.arguments, call.slots, strict=True):
        if argument.name == "indices" and any(isinstance(s, TensorSlot) and s.dtype not in _INDEX_DTYPES for s in slots):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


_INDEX_DTYPES = (torch.int64, torch.int32, torch.uint8, torch.bool)
_IN_RANGE = {
    **dict.fromkeys(("fill.Scalar", "fill_.Scalar"), 1),
    **dict.fromkeys(("masked_fill.Scalar", "masked_fill_.Scalar"), 2),
    "constant_pad_nd": 2,
    **dict.fromkeys(("index_fill.int_Scalar", "index_fill_.int_Scalar", "scatter.value", "scatter_.value"), 3),
}
"""Overloads that write one number into a tensor, and where among their arguments it stands."""
_TYPES = {
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int",
    torch.int64: "int64_t",
    torch.uint16: "uint16_t",
    torch.uint32: "uint32_t",
    torch.uint64: "uint64_t",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.complex64: "c10::complex<float>",
    torch.complex128: "c10::complex<double>",
}


def must_fit(value: Any, dtype: torch.dtype) -> None:
    """Raises RuntimeError, as torch does, if a Python number is outside the range of a dtype. A float's fraction may get lost."""
    if not _fits(value, dtype):
        raise RuntimeError(f"value cannot be converted to type {_type_name(dtype)} without overflow")


def _type_name(dtype: torch.dtype) -> str:
    """What ATen's messages call a dtype."""
    return _TYPES.get(dtype) or str(dtype).removeprefix("torch.")


def _fits(value: Any, dtype: torch.dtype) -> bool:
    if dtype is torch.bool or isinstance(value, bool):
        return True
    if isinstance(value, complex):
        return (value.imag == 0 or dtype.is_complex) and _fits(value.real, dtype) and _fits(value.imag, dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return math.isinf(value) or math.isnan(value) or abs(value) <= torch.finfo(dtype).max
    limits = torch.iinfo(dtype)
    return bool((limits.min or -limits.max) <= value <= limits.max)


def checking(plan: Plan, serve: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that refuses a number the target's dtype cannot hold, then calls `serve`; `serve` itself where nothing can be refused."""
    if plan.name == "full":

        def full(size: Any, fill_value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
            if dtype is not None:
                must_fit(fill_value, dtype)
            return serve(size, fill_value, dtype=dtype, **options)

        return full
    if plan.name == "scalar_tensor":

        def scalar_tensor(s: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Any:
            if dtype is not None:
                must_fit(s, dtype)
            return serve(s, dtype=dtype, **options)

        return scalar_tensor
    if plan.name in ("full_like", "new_full"):

        def like(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            must_fit(args[-1], kwargs.get("dtype") or self.dtype)
            return serve(self, *args, **kwargs)

        return like
    if plan.functional_base in _PARAMETERS or _is_division(plan):
        return _looking_at_numbers(plan, serve)
    place = _IN_RANGE.get(plan.name)
    if place is None:
        return serve

    def in_range(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if len(args) >= place:
            must_fit(args[place - 1], self.dtype)
        return serve(self, *args, **kwargs)

    return in_range


_PARAMETERS: dict[str, tuple[str, Callable[..., bool], str]] = {
    "cauchy": ("sigma", lambda sigma: sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma={0}"),
    "exponential": ("lambd", lambda rate: rate > 0, "exponential_ expects lambda > 0.0, but found lambda={0}"),
    "geometric": ("p", lambda p: 0 < p < 1, "geometric_ expects p to be in (0, 1), but got p={0}"),
    "log_normal": ("std", lambda std: std > 0, "log_normal_ expects std > 0.0, but found std={0}"),
    "normal_functional": ("std", lambda std: std >= 0, "normal expects std >= 0.0, but found std {0}"),
    "normal": ("std", lambda std: isinstance(std, torch.Tensor) or std >= 0, "normal expects std >= 0.0, but found std {0}"),
    "uniform": ("from,to", lambda low, high: low <= high, "uniform_ expects to return a [from, to) range, but found from={0} > to={1}"),
    "random": (
        "from,to",
        lambda low, high: high is None or (low or 0) < high,
        "random_ expects 'from' to be less than 'to', but got from={0} >= to={1}",
    ),
    "bernoulli": ("p", lambda p: p is None or isinstance(p, torch.Tensor) or 0 <= p <= 1, "bernoulli_ expects p to be in [0, 1], but got p={0}"),
}
"""Random operators by functional name: their numbers, what these have to satisfy, and what ATen says otherwise."""


def _is_division(plan: Plan) -> bool:
    """True for operators that refuse a Python 0 as the divisor of whole numbers."""
    return plan.functional_base in ("floor_divide", "remainder", "fmod") or (plan.functional_base == "div" and "_mode" in plan.name)


def _looking_at_numbers(plan: Plan, serve: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that refuses Python numbers, which are not part of the program, before it runs."""
    places = {a.name: (i, a.default) for i, a in enumerate(plan.arguments)}

    def number(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place, default = places.get(name, (len(args), None))
        return args[place] if place < len(args) else kwargs.get(name, default)

    if _is_division(plan):

        def dividing(*args: Any, **kwargs: Any) -> Any:
            divisor = number("other", args, kwargs)
            if divisor.__class__ is int and divisor == 0 and _is_whole(args[0]) and (plan.functional_base != "div" or kwargs.get("rounding_mode")):
                raise RuntimeError("ZeroDivisionError")
            return serve(*args, **kwargs)

        return dividing
    names, fine, text = _PARAMETERS[plan.functional_base]

    def drawing(*args: Any, **kwargs: Any) -> Any:
        given = [number(name, args, kwargs) for name in names.split(",")]
        if not fine(*given):
            raise RuntimeError(text.format(*given))
        return serve(*args, **kwargs)

    return drawing


def _is_whole(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.dtype.is_floating_point and not value.dtype.is_complex
