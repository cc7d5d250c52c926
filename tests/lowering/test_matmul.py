"""Matrix products against torch on the CPU: OpInfo samples, every operand layout, the semantics of beta, grouped products."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
import torch

from tpu_lab.lowering.dtypes import to_jax
from tpu_lab.lowering.matmul import product
from tpu_lab.lowering.registry import find

from .replay import assert_opinfo, call, compare, to_array, to_tensor

ATEN = torch.ops.aten
NAMES = {
    "mm": "mm",
    "bmm": "bmm",
    "mv": "mv",
    "dot": "dot",
    "vdot": "vdot",
    "addmm": "addmm",
    "baddbmm": "baddbmm",
    "addmv": "addmv",
    "addr": "addr",
    "addbmm": "addbmm",
}


def assert_same(op: Any, *args: Any, rtol: float | None = None, atol: float | None = None, **named: Any) -> None:
    name = op.name().removeprefix("aten::")
    found = find(name)
    assert found is not None
    compare(call(found, op, args, named), op(*args, **named), name, rtol, atol)


@pytest.mark.parametrize("name", NAMES)
def test_opinfo(name: str) -> None:
    """The order of a sum is free, so the tolerance is that of sums of terms of size 100."""
    checked = assert_opinfo(name, (torch.float32, torch.complex64, torch.int64), only={NAMES[name]}, limit=3, rtol=1e-5, atol=1e-4)
    atol = 0.5 if name == "addbmm" else 2e-2  # torch rounds addbmm to bfloat16 after every matrix of the batch
    rounded = assert_opinfo(name, (torch.bfloat16,), only={NAMES[name]}, limit=2, rtol=1.6e-2, atol=atol)
    assert checked.get(NAMES[name], 0) >= 4
    assert rounded.get(NAMES[name], 0) >= 1


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_wrap(dtype: torch.dtype) -> None:
    a, b = torch.arange(35).reshape(5, 7).to(dtype) * 5, torch.arange(42).reshape(7, 6).to(dtype) * 3
    assert_same(ATEN.mm.default, a, b)
    assert_same(ATEN.addmm.default, torch.ones(6, dtype=dtype), a, b, beta=3, alpha=2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.complex128])
def test_other_dtypes(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 5, 40, generator=generator).to(dtype), torch.randn(2, 40, 3, generator=generator).to(dtype)
    assert_same(ATEN.bmm.default, a, b, **({"rtol": 2e-2, "atol": 1e-2} if dtype == torch.float16 else {}))


def test_beta_zero_does_not_read_the_bias() -> None:
    nan = torch.full((3, 4), float("nan"))
    a, b = torch.ones(3, 2), torch.ones(2, 4)
    assert_same(ATEN.addmm.default, nan, a, b, beta=0)
    assert_same(ATEN.baddbmm.default, nan[None], a[None], b[None], beta=0.0)
    assert_same(ATEN.addmv.default, nan[0, :3], a, b[:, 0], beta=0)
    assert_same(ATEN.addr.default, nan, a[:, 0], b[0], beta=0)
    assert_same(ATEN.addbmm.default, nan, a[None], b[None], beta=0)


def test_beta_and_alpha() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(3, 5, generator=generator), torch.randn(5, 4, generator=generator)
    for dtype in (torch.float32, torch.bfloat16):
        assert_same(ATEN.addmm.default, torch.arange(4).to(dtype), a.to(dtype), b.to(dtype), beta=0.5, alpha=-2)
    assert_same(ATEN.addr.default, torch.tensor([[True, False]]), torch.tensor([True]), torch.tensor([False, True]))
    assert_same(ATEN.addr.default, torch.ones(1, 2), torch.tensor([2]), torch.tensor([3, 4]), beta=2, alpha=3)


@pytest.mark.parametrize("use_gelu", [False, True])
def test_activation(use_gelu: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    args = [torch.randn(s, generator=generator) for s in ((4,), (3, 5), (5, 4))]
    assert_same(ATEN._addmm_activation.default, *args, use_gelu=use_gelu, rtol=1e-5, atol=1e-6)


def test_int_mm() -> None:
    a, b = torch.randint(-128, 128, (17, 24), dtype=torch.int8), torch.randint(-128, 128, (24, 16), dtype=torch.int8)
    assert_same(ATEN._int_mm.default, a, b)


def test_linear() -> None:
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        x, w, b = (torch.randn(s, generator=generator).to(dtype) for s in ((2, 3, 5), (4, 5), (4,)))
        assert_same(ATEN.linear.default, x, w, b)
        assert_same(ATEN.linear.default, x[0, 0], w, None)


def test_out_dtype_keeps_the_accumulated_digits() -> None:
    a, b = torch.full((2, 3), 1.001953125, dtype=torch.bfloat16), torch.full((3, 2), 1.0078125, dtype=torch.bfloat16)
    found = find("mm.dtype")
    assert found is not None
    out = jax.jit(lambda x, y: found.function(x, y, torch.float32))(to_array(a), to_array(b))
    torch.testing.assert_close(to_tensor(out, torch.float32), a.float() @ b.float(), rtol=1e-6, atol=0)


LAYOUTS = ("plain", "transposed", "reshaped", "computed")


def stored(matrix: np.ndarray, layout: str) -> tuple[np.ndarray, Any]:
    """The array a program is given and the traced reader that makes `matrix` of it, as views of a storage do."""
    turned = np.ascontiguousarray(np.swapaxes(matrix, -1, -2))
    if layout == "plain":
        return matrix, lambda s: s
    if layout == "transposed":
        return turned, lambda s: s.swapaxes(-1, -2)
    if layout == "reshaped":
        return turned[..., None, :], lambda s: jax.numpy.moveaxis(s, -1, -3).reshape(matrix.shape)
    return turned, lambda s: s.swapaxes(-1, -2) * jax.numpy.ones((), s.dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [((), 9, 20, 9), ((), 1, 9, 9), ((), 9, 9, 1), ((3,), 2, 9, 33)])
def test_every_layout_runs(shape: tuple[Any, int, int, int], dtype: torch.dtype) -> None:
    """XLA:CPU has no kernel for some bfloat16 products that its own passes produce; the numbers are small enough to be exact."""
    batch, m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (*batch, m, k)), rng.integers(-3, 4, (*batch, k, n))
    for left, right in itertools.product(LAYOUTS, repeat=2):
        (kept_a, read_a), (kept_b, read_b) = stored(a, left), stored(b, right)
        inputs = [jax.numpy.asarray(v).astype(to_jax(dtype)) for v in (kept_a, kept_b)]
        out = jax.jit(lambda x, y, ra=read_a, rb=read_b: product(ra(x), rb(y)))(*inputs)
        np.testing.assert_array_equal(np.asarray(out), a @ b, err_msg=f"{left} {right}")


def test_long_vectors() -> None:
    """Past the length where the matrix-vector product changes its form."""
    a, b = np.ones((1, 4100), np.float32), np.arange(4100 * 3, dtype=np.float32).reshape(4100, 3) % 7
    for left, right in ((a, b), (b.T.copy(), a.T.copy())):
        np.testing.assert_array_equal(np.asarray(jax.jit(product)(left, right)), left @ right)


def test_other_platforms_get_the_plain_product() -> None:
    spec = jax.ShapeDtypeStruct((8, 8), jax.numpy.bfloat16)
    text = jax.jit(product).trace(spec, spec).lower(lowering_platforms=("tpu",)).as_text()
    assert "dot_general" in text
    assert "optimization_barrier" not in text


def test_empty() -> None:
    for m, k, n in ((0, 3, 2), (2, 0, 3), (2, 3, 0)):
        for dtype in (torch.float32, torch.bfloat16):
            assert_same(ATEN.mm.default, torch.zeros(m, k, dtype=dtype), torch.zeros(k, n, dtype=dtype))


ENDS = torch.tensor([3, 3, 70, 72], dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_grouped(dtype: torch.dtype) -> None:
    """Empty groups, groups longer than a tile; all four combinations of ranks."""
    generator = torch.Generator().manual_seed(0)
    rows, matrices = torch.randn(72, 16, generator=generator).to(dtype), torch.randn(4, 16, 8, generator=generator).to(dtype)
    other = torch.randn(72, 8, generator=generator).to(dtype)
    close = {"rtol": 2e-2, "atol": 2e-2} if dtype != torch.float32 else {"rtol": 1e-4, "atol": 1e-4}
    assert_same(ATEN._grouped_mm.default, rows, matrices, ENDS, **close)
    assert_same(ATEN._grouped_mm.default, matrices.mT, rows.mT, ENDS, **close)
    assert_same(ATEN._grouped_mm.default, rows.mT, other, ENDS, rtol=2e-2, atol=0.1 if dtype != torch.float32 else 1e-4)
    assert_same(ATEN._grouped_mm.default, matrices.mT, matrices, **close)


def test_grouped_float64_and_the_form_for_other_platforms() -> None:
    generator = torch.Generator().manual_seed(0)
    rows, matrices = torch.randn(72, 16, generator=generator, dtype=torch.float64), torch.randn(4, 16, 8, generator=generator, dtype=torch.float64)
    found = find("_grouped_mm")
    assert found is not None
    out = call(found, ATEN._grouped_mm.default, (rows, matrices, ENDS), {})
    expected = torch.cat([r @ m for r, m in zip(torch.tensor_split(rows, ENDS[:-1].tolist()), matrices, strict=True)])
    compare(out, expected, "float64")
    specs = [jax.ShapeDtypeStruct(tuple(t.shape), np.float32) for t in (rows, matrices)] + [jax.ShapeDtypeStruct((4,), np.int32)]
    text = jax.jit(lambda a, b, c: found.function(a, b, c, None, None)).trace(*specs).lower(lowering_platforms=("tpu",)).as_text()
    assert "ragged_dot" in text
