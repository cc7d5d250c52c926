"""Convolutions, forward, transposed and backward, in any number of spatial dimensions; the work is done in `convolution_maps`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import Array

from .convolution_maps import Window, forward, input_gradient, weight_gradient
from .promotion import cast, opmath
from .registry import lowering

Gradients = tuple[Array | None, Array | None, Array | None]


@lowering("convolution", "convolution_overrideable")
def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    """input [N, C, *spatial]; weight [O, C / groups, *kernel], transposed [C, O / groups, *kernel]; bias [O]."""
    rank = input.ndim - 2
    window = Window.of(rank, stride, padding, dilation, groups)
    if transposed:
        y = input_gradient(input, weight, window, window.transposed_size(input.shape[2:], weight.shape[2:], output_padding))
    else:
        y = forward(input, weight, window)
    if bias is not None:
        y = y + cast(bias.reshape(-1, *(1,) * rank), y.dtype)
    return cast(y, input.dtype)


@lowering("_convolution")
def _convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool,
) -> Array:
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


@lowering("convolution_backward_overrideable")
def convolution_backward_overrideable(
    grad_output: Array,
    input: Array,
    weight: Array,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Gradients:
    """The gradients of input, weight and bias that `output_mask` asks for, None for the others."""
    rank = input.ndim - 2
    window = Window.of(rank, stride, padding, dilation, groups)
    kernel = weight.shape[2:]
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        if transposed:  # output_padding may make room for one window more than there are inputs
            grad_input = forward(grad_output, weight, window)[tuple(slice(n) for n in input.shape)]
        else:
            grad_input = input_gradient(grad_output, weight, window, input.shape[2:])
        grad_input = cast(grad_input, input.dtype)
    if output_mask[1]:
        large, small = (grad_output, input) if transposed else (input, grad_output)
        grad_weight = cast(weight_gradient(large, small, window, kernel), weight.dtype)
    if output_mask[2]:
        total = jnp.sum(grad_output, axis=(0, *range(2, rank + 2)), dtype=opmath(grad_output.dtype))
        grad_bias = cast(total, grad_output.dtype)
    return grad_input, grad_weight, grad_bias


@lowering("convolution_backward")
def convolution_backward(
    grad_output: Array,
    input: Array,
    weight: Array,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Gradients:
    return convolution_backward_overrideable(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask)


@lowering("conv_tbc")
def conv_tbc(self: Array, weight: Array, bias: Array, pad: int) -> Array:
    """A 1-d convolution of self [time, batch, channels] by weight [kernel, channels, out]."""
    window = Window.of(1, (1,), (pad,), (1,), 1)
    y = forward(self.transpose(1, 2, 0), weight.transpose(2, 1, 0), window).transpose(2, 0, 1)
    return cast(y + cast(bias, y.dtype), self.dtype)


@lowering("_slow_conv2d_forward", "slow_conv3d_forward")
def slow_conv(self: Array, weight: Array, kernel_size: Sequence[int], bias: Array | None, stride: Sequence[int], padding: Sequence[int]) -> Array:
    """The convolutions that PyTorch's CPU kernels go through, called by themselves."""
    return convolution(self, weight, bias, stride, padding, (1,), False, (0,), 1)


@lowering("slow_conv_dilated2d", "slow_conv_dilated3d")
def slow_conv_dilated(
    self: Array,
    weight: Array,
    kernel_size: Sequence[int],
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    return _batched(self, len(kernel_size), lambda x: convolution(x, weight, bias, stride, padding, dilation, False, (0,), 1))


@lowering("slow_conv_transpose2d", "slow_conv_transpose3d")
def slow_conv_transpose(
    self: Array,
    weight: Array,
    kernel_size: Sequence[int],
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    return _batched(self, len(kernel_size), lambda x: convolution(x, weight, bias, stride, padding, dilation, True, output_padding, 1))


def _batched(x: Array, rank: int, apply: Callable[[Array], Array]) -> Array:
    """`apply` on x [N, C, *spatial], or on x [C, *spatial] as a batch of one."""
    return apply(x) if x.ndim == rank + 2 else apply(x[None])[0]


@lowering("_slow_conv2d_backward.output_mask")
def slow_conv2d_backward(
    grad_output: Array,
    self: Array,
    weight: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_mask: Sequence[bool],
) -> Gradients:
    return convolution_backward_overrideable(grad_output, self, weight, stride, padding, (1,), False, (0,), 1, output_mask)
