"""Convolution lowerings against torch on the CPU: all overloads, gradients, groups, dimensions and dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from tests.lowering.replay import Replay, assert_opinfo, call, compare
from tpu_lab.lowering.registry import find

aten = torch.ops.aten
FORWARD, BACKWARD = "convolution", "convolution_backward"


def conv_arguments(
    spatial: tuple[int, ...], kernel: int, dtype: torch.dtype, *, groups: int = 1, multiplier: int = 2, channels: int = 4, **window: Any
) -> tuple[Any, ...]:
    """The arguments of aten.convolution for a batch of 2; `window` may give stride, padding, dilation, transposed, output_padding."""
    rank, transposed = len(spatial), window.get("transposed", False)
    out = groups * multiplier
    weight_channels = (channels, out // groups) if transposed else (out, channels // groups)
    x = torch.randn((2, channels, *spatial)).to(dtype)
    w = torch.randn((*weight_channels, *(kernel,) * rank)).to(dtype)
    b = torch.randn(out).to(dtype)
    pick = [[window.get(name, default)] * rank for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))]
    return (x, w, b, *pick, transposed, [window.get("output_padding", 0)] * rank, groups)


def assert_both(args: tuple[Any, ...], rtol: float = 1e-4, atol: float = 1e-4) -> None:
    with Replay({FORWARD, BACKWARD}, rtol, atol) as replay:
        y = aten.convolution(*args)
        aten.convolution_backward(torch.randn(y.shape).to(y.dtype), args[0], args[1], [args[2].numel()], *args[3:], [True, True, True])
    assert replay.checked == {FORWARD: 1, BACKWARD: 1}


@pytest.mark.parametrize("name", ["nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d"])
def test_conv_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32, torch.bfloat16), {FORWARD, BACKWARD}, limit=3)
    assert checked[FORWARD] >= 6 and checked[BACKWARD] >= 6


@pytest.mark.parametrize("name", ["nn.functional.conv_transpose1d", "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d"])
def test_conv_transpose_opinfo(name: str) -> None:
    checked = assert_opinfo(name, (torch.float32,), {FORWARD, BACKWARD}, limit=2, rtol=1e-4, atol=1e-4)
    assert checked[FORWARD] >= 2 and checked[BACKWARD] >= 2


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_bfloat16_accumulates_in_float32(transposed: bool, groups: int) -> None:
    """torch adds up a transposed bfloat16 convolution in bfloat16, so the reference is the float32 one."""
    args = conv_arguments((9, 9), 3, torch.bfloat16, groups=groups, channels=32, transposed=transposed)
    found = find(FORWARD)
    assert found is not None
    wide = tuple(a.float() if isinstance(a, torch.Tensor) else a for a in args)
    compare(call(found, aten.convolution.default, args, {}), aten.convolution(*wide).bfloat16(), FORWARD)


WINDOWS = [
    pytest.param({"stride": 2, "padding": 1}, id="stride"),
    pytest.param({"dilation": 2, "padding": 2}, id="dilation"),
    pytest.param({"stride": 3, "dilation": 2, "padding": 1}, id="holes"),
    pytest.param({"transposed": True, "stride": 2, "output_padding": 1, "padding": 1}, id="transposed"),
    pytest.param({"transposed": True, "stride": 3, "dilation": 2, "output_padding": 2}, id="transposed-dilated"),
    pytest.param({"transposed": True, "dilation": 2, "output_padding": 1, "padding": 1}, id="transposed-uneven"),
]


@pytest.mark.parametrize("groups", [1, 2, 4], ids=["dense", "split", "depthwise"])
@pytest.mark.parametrize("window", WINDOWS)
def test_windows(window: dict[str, Any], groups: int) -> None:
    assert_both(conv_arguments((8, 7), 3, torch.float32, groups=groups, **window))


@pytest.mark.parametrize("window", [{}, {"transposed": True, "stride": 2}], ids=["forward", "transposed"])
def test_many_groups(window: dict[str, Any]) -> None:
    assert_both(conv_arguments((6, 5), 3, torch.float32, groups=10, channels=20, **window))


@pytest.mark.parametrize(("kernel", "stride", "transposed"), [*itertools.product([1, 2], [1, 2, 3], [False, True])])
def test_kernels_that_tile(kernel: int, stride: int, transposed: bool) -> None:
    assert_both(conv_arguments((7, 8), kernel, torch.float32, stride=stride, transposed=transposed))


def test_anisotropic_window() -> None:
    x, w, b = torch.randn(2, 4, 9, 8, 7), torch.randn(6, 2, 3, 1, 2), torch.randn(6)
    assert_both((x, w, b, [2, 1, 3], [0, 2, 1], [1, 3, 2], False, [0, 0, 0], 2))


@pytest.mark.parametrize("groups", [1, 4])
def test_float64(groups: int) -> None:
    assert_both(conv_arguments((5, 6), 3, torch.float64, groups=groups, padding=1))


@pytest.mark.parametrize("groups", [1, 4])
def test_float16(groups: int) -> None:
    """torch rounds its partial sums to float16 here, so it is the reference only up to a few of those steps."""
    assert_both(conv_arguments((5, 6), 3, torch.float16, groups=groups, padding=1), rtol=1e-2, atol=2e-2)


def test_length_one_window_counts_for_all_dimensions() -> None:
    x, w = torch.randn(1, 2, 6, 6), torch.randn(3, 2, 3, 3)
    with Replay({FORWARD}) as replay:
        aten.convolution(x, w, None, [2], [1], [1], False, [0], 1)
    assert replay.checked == {FORWARD: 1}


def test_integers() -> None:
    x, w = torch.randint(-9, 9, (1, 2, 6, 6)), torch.randint(-9, 9, (3, 2, 3, 3))
    with Replay({FORWARD}) as replay:
        aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    assert replay.checked == {FORWARD: 1}


def test_empty_batch() -> None:
    x, w = torch.randn(0, 4, 6, 6), torch.randn(3, 4, 3, 3)
    with Replay({FORWARD, BACKWARD}) as replay:
        y = aten.convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        aten.convolution_backward(y, x, w, [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])
    assert replay.checked == {FORWARD: 1, BACKWARD: 1}


@pytest.mark.parametrize("transposed", [False, True])
def test_overrideable(transposed: bool) -> None:
    args = conv_arguments((6, 5), 3, torch.float32, groups=2, stride=2, padding=1, transposed=transposed)
    forward, backward = find("convolution_overrideable"), find("convolution_backward_overrideable")
    assert forward is not None and backward is not None
    expected = aten.convolution(*args)
    compare(call(forward, aten.convolution_overrideable.default, args, {}), expected, "convolution_overrideable")
    mask = [True, False, True]
    grads = aten.convolution_backward(expected, args[0], args[1], [args[2].numel()], *args[3:], mask)
    actual = call(backward, aten.convolution_backward_overrideable.default, (expected, args[0], args[1], *args[3:], mask), {})
    assert actual[1] is None
    compare([actual[0], actual[2]], [grads[0], grads[2]], "convolution_backward_overrideable")


def test_underscore_convolution() -> None:
    args = conv_arguments((6, 5), 3, torch.float32, padding=1)
    with Replay({"_convolution"}) as replay:
        aten._convolution(*args, False, False, False, False)
    assert replay.checked == {"_convolution": 1}


def test_conv_tbc() -> None:
    x, w, b = (torch.randn(shape) for shape in ((7, 2, 4), (3, 4, 5), (5,)))
    with Replay({"conv_tbc"}) as replay:
        aten.conv_tbc(x, w, b, 1)
    assert replay.checked == {"conv_tbc": 1}
