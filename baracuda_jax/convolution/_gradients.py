"""Transposed convolutions on CUDA: cuDNN's kernels for the gradients of a convolution, in its input forward, and in its
window for the window's gradient. XLA doesn't find these in JAX's own derivative of the first."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from .._core import explicit
from .._core.body import Body
from .._core.by_platform import by_platform
from ._arguments import grouped
from ._library import convolution


def of_platform(elsewhere):
    """The function (x, weight, save, groups, strides, padding, output_padding, dilation) -> (y,) of plain JAX, which other
    platforms take. y has the dtype of its sums."""

    def reference(x, weight, **how):
        return (_batched(functools.partial(elsewhere, **how), len(how["strides"]), x, weight),)

    def native(x, weight, *, save, **how):
        return (_batched(functools.partial(_forward, **how), len(how["strides"]), x, weight),)

    def backward(x, weight, dy, **how):
        rank = len(how["strides"])
        dx = _batched(functools.partial(_convolved, **how), rank, dy.astype(x.dtype), weight)
        return dx, _of_weight(x, weight, dy.astype(x.dtype), rank, how)

    return by_platform(
        "conv_transpose",
        operands=("x", "weight"),
        differentiable=("x", "weight"),
        outputs=("y",),
        forward=Body(reference, native),
        backward=backward,
        saved=(),
    )


def _batched(fun, rank, x, weight):
    """Batches of x alone are more images; those of both are apart."""
    extra = x.ndim - rank - 2
    if weight.ndim > rank + 2:
        return jax.vmap(functools.partial(_batched, fun, rank))(x, weight)
    if not extra:
        return fun(x, weight)
    y = fun(explicit.reshape(x, math.prod(x.shape[: extra + 1]), *x.shape[extra + 1 :]), weight)
    return explicit.reshape(y, *x.shape[: extra + 1], *y.shape[1:])


def _forward(x, weight, *, groups, strides, padding, output_padding, dilation):
    spans = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    around = [(k - 1 - p, k - 1 - p + o) for k, p, o in zip(spans, padding, output_padding, strict=True)]
    # Turned over first: XLA finds cuDNN's kernel by that, where nothing but an exchange of dimensions comes after.
    window = jnp.flip(weight, tuple(range(2, x.ndim)))
    if groups == 1:
        window = jnp.swapaxes(window, 0, 1)
    else:
        window = jnp.swapaxes(grouped(window, groups), 1, 2)
        window = explicit.reshape(window, math.prod(window.shape[:2]), window.shape[2], *weight.shape[2:])
    return convolution(x, window, (1,) * len(strides), around, strides, dilation, feature_group_count=groups)


def _convolved(dy, weight, *, groups, strides, padding, output_padding, dilation):
    around = [(p, p - o) for p, o in zip(padding, output_padding, strict=True)]
    return lax.conv_general_dilated(dy, weight, strides, around, rhs_dilation=dilation, feature_group_count=groups)


def _of_weight(x, weight, dy, rank, how):
    if weight.ndim > rank + 2:
        return jax.vmap(lambda *arrays: _of_weight(*arrays, rank, how))(x, weight, dy)
    x, dy = (explicit.reshape(a, math.prod(a.shape[: -rank - 1]), *a.shape[-rank - 1 :]) for a in (x, dy))
    return jax.linear_transpose(lambda w: _convolved(dy, w, **how), weight)(x)[0]
