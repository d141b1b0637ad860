"""Maxima of windows, of any kind: what is computed, and by which kernels.

The index of a window's maximum in its plane of x, one beyond the last where it has no elements, is kept for the
gradient in the narrowest dtype that holds it. No derivative reads x."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import checks, explicit
from .._core.body import Body
from .._core.take_along import take_along
from .._core.wide import wide
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


def index_dtype(windows):
    return jnp.dtype(jnp.uint16 if windows.plane < 2**16 else jnp.int32)


def narrow_index(op, index, dy, windows):
    """An index that was returned, as it is kept."""
    index = checks.array(op, "index", index)
    checks.dtype(op, "index", index, ("int32", "uint16"))
    checks.shape(op, "index", index, dy.shape, "that of dy")
    return index.astype(index_dtype(windows))


def with_index(found, save):
    """The results of a public function, whose indices are int32."""
    return (found[0], found[1].astype(jnp.int32)) if save else found


# ---------------------------------------------------------------------------------------------------------------------
# References


def reference(x, begins, windows, save):
    """(y, index), or (y,) of which XLA makes a faster program."""
    if not save:
        return (_alone_of_strided(x, windows) if windows.kind == "strided" else _alone_of_any(x, begins, windows),)
    y, index = _of_strided(x, windows) if windows.kind == "strided" else _of_any(x, begins, windows)
    return y, index.astype(index_dtype(windows))


def _positions(shape, windows):
    """The index of each element in its plane."""
    axes = [windows.axis(len(shape), i) for i in range(windows.rank)]
    steps = [math.prod(windows.size[i + 1 :]) for i in range(windows.rank)]
    return sum(
        (lax.broadcasted_iota(jnp.int32, shape, axis) * step for axis, step in zip(axes, steps, strict=True)),
        jnp.zeros(shape, jnp.int32),
    )


def _better(a, b):
    """The earlier of two equal maxima, or the earlier NaN."""
    (x, i), (y, j) = a, b
    x_is_nan, y_is_nan, is_earlier = jnp.isnan(x), jnp.isnan(y), j < i
    takes = jnp.where(x_is_nan, y_is_nan & is_earlier, y_is_nan | (y > x) | ((y == x) & is_earlier))
    return jnp.where(takes, y, x), jnp.where(takes, j, i)


def _of_strided(x, windows):
    nothing = jnp.array(-jnp.inf, x.dtype), jnp.array(windows.plane, jnp.int32)
    return lax.reduce_window((x, _positions(x.shape, windows)), nothing, _better, **slid(windows, x.ndim))


def _alone_of_strided(x, windows):
    return lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, **slid(windows, x.ndim))


def _of_any(x, begins, windows):
    """Axis by axis from the last: so the first maximum of the axes before is the first of a window."""
    x = channels_first(windows, x)
    index = _positions(x.shape, windows._replace(channels_last=False))
    for i in reversed(range(windows.rank)):
        axis = x.ndim - windows.rank + i
        at, inside = elements(windows, i, begins[i] if begins else None)
        found = taken(x, axis, at)
        found = jnp.where(of_rank(inside, found.ndim), found, jnp.array(-jnp.inf, x.dtype))
        # Not the argmax of what is found: on a GPU that of several NaNs is any of them.
        is_best = (found == found.max(-1, keepdims=True)) | jnp.isnan(found)
        first = jnp.argmax(is_best, -1, keepdims=True)
        pick = lambda a, first=first, axis=axis: jnp.moveaxis(jnp.take_along_axis(a, first, -1)[..., 0], -1, axis)
        x, index = pick(found), pick(taken(index, axis, at))
    return channels_as_they_were(windows, x), channels_as_they_were(windows, index)


def _alone_of_any(x, begins, windows):
    x = channels_first(windows, x)
    for i in reversed(range(windows.rank)):
        axis = x.ndim - windows.rank + i
        at, inside = elements(windows, i, begins[i] if begins else None)
        found = taken(x, axis, at)
        found = jnp.where(of_rank(inside, found.ndim), found, jnp.array(-jnp.inf, x.dtype))
        x = jnp.moveaxis(found.max(-1), -1, axis)
    return channels_as_they_were(windows, x)


def _planes(a, windows, count):
    """[..., count], or [..., count, channels]: the spatial axes as one."""
    begin = windows.axis(a.ndim, 0)
    return explicit.reshape(a, *a.shape[:begin], count, *a.shape[begin + windows.rank :])


def tangent_reference(index, t, windows):
    at, rows = _planes(index.astype(jnp.int32), windows, math.prod(windows.out)), _planes(t, windows, windows.plane)
    if not windows.plane:
        return jnp.zeros(index.shape, t.dtype)
    axis = at.ndim - 1 - windows.channels_last
    found = jnp.take_along_axis(rows, jnp.minimum(at, windows.plane - 1), axis, mode="clip")
    return jnp.where(at < windows.plane, found, 0).reshape(index.shape)


def backward_reference(index, dy, windows):
    planes = channels_first(windows, dy).shape[: dy.ndim - windows.rank]
    rows = lambda a: channels_first(windows, a).reshape(math.prod(planes), math.prod(windows.out))
    add = lambda at, d: jnp.zeros(windows.plane, d.dtype).at[at].add(d, mode="drop")
    dx = jax.vmap(add)(rows(index.astype(jnp.int32)), rows(wide(dy)))
    return channels_as_they_were(windows, dx.reshape(*planes, *windows.size)).astype(dy.dtype)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def native(x, begins, windows, save):
    out = [pooled_type(windows, x, dtype) for dtype in (x.dtype, index_dtype(windows))[: 2 if save else 1]]
    return call("max_pool", windows, [x], "xy", begins, out)


def tangent_native(index, t, windows):
    """The elements at the index."""
    channels = (lambda a: a) if windows.channels_last else (lambda a: jnp.expand_dims(a, -1))
    rows = lambda a, count: channels(_planes(a, windows, count))
    index = index.astype(jnp.int32)
    found = take_along(rows(index, math.prod(windows.out)), rows(t, windows.plane), bytes(t.dtype.itemsize))
    return explicit.reshape(found, *index.shape)


def backward_native(index, dy, begins, windows):
    return call("max_pool_backward", windows, [index, dy], "yyx", begins, [plane_type(windows, dy, dy.dtype)])


KERNELS = {"forward": ("max_pool",), "tangent": ("take_along",), "backward": ("max_pool_backward",)}
FORWARD = Body(
    lambda x, *, save, windows: reference(x, (), windows, save),
    lambda x, *, save, windows: native(x, (), windows, save),
)
TANGENT = Body(
    lambda index, t, *, windows: (tangent_reference(index, t, windows),),
    lambda index, t, *, windows: (tangent_native(index, t, windows),),
)
BACKWARD = Body(
    lambda index, dy, *, windows: (backward_reference(index, dy, windows),),
    lambda index, dy, *, windows: backward_native(index, dy, (), windows),
)
DERIVATIVES = dict(results=("y", "index"), residuals=("index",), tangent=TANGENT, backward=BACKWARD, kernels=KERNELS)
