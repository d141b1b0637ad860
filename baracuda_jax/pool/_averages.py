"""Averages of windows: what is computed, and by which kernels. They are linear: no derivative reads anything but dy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.body import Body
from .._core.wide import wide, wide_dtype
from ._windows import (
    call,
    channels_as_they_were,
    channels_first,
    elements,
    of_rank,
    plane_type,
    pooled_type,
    slid,
    taken,
)


def _counts(windows, counts_padding, divisor, dtype):
    """What the sum of each window is divided by, as an array that broadcasts to results with channels first."""
    if divisor:
        return np.asarray(divisor, dtype)
    total = np.ones((1,) * windows.rank, dtype)
    sizes = zip(windows.size, windows.out, windows.window, windows.dilation, strict=True)
    for i, (n, m, k, d) in enumerate(sizes):
        count = elements(windows, i)[1].sum(-1)
        if counts_padding:
            begin = np.arange(m) * windows.strides[i] - windows.before[i]
            count = np.minimum(k, -(-(n + windows.after[i] - begin) // d))
        total = total * count.reshape([m if j == i else 1 for j in range(windows.rank)])
    return np.maximum(total, 1).astype(dtype)


def _sums(x, windows):
    """Of the windows of x, with channels first."""
    if windows.kind == "adaptive":
        for i in reversed(range(windows.rank)):
            axis = x.ndim - windows.rank + i
            at, inside = elements(windows, i)
            found = taken(x, axis, at)
            x = jnp.moveaxis(jnp.where(of_rank(inside, found.ndim), found, 0).sum(-1), -1, axis)
        return x
    first = windows._replace(channels_last=False)
    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, **slid(first, x.ndim))


def _reference(x, *, windows, counts_padding, divisor):
    total = _sums(channels_first(windows, wide(x)), windows)
    y = total / of_rank(_counts(windows, counts_padding, divisor, total.dtype), total.ndim)
    return (channels_as_they_were(windows, y).astype(x.dtype),)


def _backward_reference(dy, *, windows, **how):
    x = jax.ShapeDtypeStruct(windows.with_spatial(dy.shape, windows.size), wide_dtype(dy.dtype))
    pull = jax.linear_transpose(functools.partial(_reference, windows=windows, **how), x)
    return tuple(dx.astype(dy.dtype) for dx in pull((wide(dy),)))


def _native(x, *, windows, save=False, **how):
    return call("avg_pool", windows, [x], "xy", (), [pooled_type(windows, x, x.dtype)], **how)


def _backward_native(dy, *, windows, **how):
    return call("avg_pool_backward", windows, [dy], "yx", (), [plane_type(windows, dy, dy.dtype)], **how)


FORWARD = Body(_reference, _native)
BACKWARD = Body(_backward_reference, _backward_native)
KERNELS = {"forward": ("avg_pool",), "backward": ("avg_pool_backward",)}
LINEAR = dict(operands=("x",), forward=FORWARD, backward=BACKWARD, linear=lambda params: params, kernels=KERNELS)
