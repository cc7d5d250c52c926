"""Every `_foreach_*` lowering against torch's own loop over CPU tensors, with arguments made from the schema."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tpu_lab.lowering.registry import all_lowerings

from .replay import call, compare

OVERLOADS = sorted(name for name in all_lowerings() if name.startswith("_foreach_"))
SHAPES = ((3, 4), ())


def operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def tensors(dtype: torch.dtype, seed: int, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    wide = [torch.rand(s, generator=generator, dtype=torch.float64) * 0.8 + 0.1 for s in shapes]
    if dtype.is_complex:
        return [torch.complex(w, 0.5 * w).to(dtype) for w in wide]
    return [(w * 9 + 1).to(dtype) if not dtype.is_floating_point else w.to(dtype) for w in wide]


def argument(kind: str, name: str, default: Any, dtype: torch.dtype, seed: int, shapes: tuple[tuple[int, ...], ...]) -> Any:
    if kind == "List[Tensor]":
        return tensors(dtype, seed, shapes)
    if kind == "Tensor":
        return torch.arange(2, 2 + len(shapes), dtype=torch.float32) if name == "scalars" else torch.tensor(3, dtype=dtype)
    if kind == "List[number]":
        return [2, 1.5, 3, 0.5][: len(shapes)] if dtype.is_floating_point or dtype.is_complex else [2, 1, 3, 2][: len(shapes)]
    if kind == "number":
        return 2 if name != "alpha" else 3
    return default


def assert_same(name: str, kind: torch.dtype, shapes: tuple[tuple[int, ...], ...] = SHAPES, **given: Any) -> None:
    op = operator(name)
    args: list[Any] = []
    named: dict[str, Any] = {}
    for i, a in enumerate(op._schema.arguments):
        if a.name == "memory_format":
            continue
        value = given.get(a.name, argument(str(a.type), a.name, a.default_value, kind, i, shapes))
        if a.kwarg_only:
            named[a.name] = value
        else:
            args.append(value)
    expected = op(*args, **named)
    found = all_lowerings()[name]
    actual = call(found, op, tuple(args), named)
    assert len(actual) == len(expected) == len(shapes)
    for got, wanted in zip(actual, expected, strict=True):
        assert got.shape == tuple(wanted.shape)
    compare(actual, expected, f"{name} {kind}")


def shapes_for(name: str) -> tuple[tuple[int, ...], ...]:
    return ((3, 3), (4, 4)) if name == "_foreach_mm" else SHAPES


@pytest.mark.parametrize("name", OVERLOADS)
def test_float32(name: str) -> None:
    assert_same(name, torch.float32, shapes_for(name))


@pytest.mark.parametrize("name", ["add.List", "mul.Tensor", "div.ScalarList", "addcdiv.Scalar", "lerp.Scalar", "sqrt", "norm.Scalar", "mm"])
def test_bfloat16(name: str) -> None:
    assert_same(f"_foreach_{name}", torch.bfloat16, shapes_for(f"_foreach_{name}"))


@pytest.mark.parametrize("name", ["add.Scalar", "sub.List", "mul.ScalarList", "div.List", "addcmul.Scalar", "pow.Scalar"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_integers_and_complex(name: str, dtype: torch.dtype) -> None:
    assert_same(f"_foreach_{name}", dtype)


@pytest.mark.parametrize("order", [0, 1, 3, float("inf")])
def test_norm_orders(order: float) -> None:
    assert_same("_foreach_norm.Scalar", torch.bfloat16, SHAPES, ord=order, dtype=torch.float32)


def test_empty_tensors_and_ranks() -> None:
    assert_same("_foreach_add.List", torch.float32, ((0, 2), (5,), (1, 1, 2)))


def test_copy_changes_dtype() -> None:
    assert_same("_foreach_copy", torch.bfloat16, src=tensors(torch.float32, 7))


def test_every_functional_overload_is_served() -> None:
    """The list comes from torch: an overload of a new version shows up here by name."""
    missing = []
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::_foreach_") or any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
            continue
        name = schema.name.removeprefix("aten::") + (f".{schema.overload_name}" if schema.overload_name else "")
        if name not in all_lowerings():
            missing.append(name)
    assert missing == []
