"""Extrema of rows and of elements along an axis, at an index for each: the bodies. With each extremum goes `arg`, the number
of the element that it is, or -1 where it is x's own. Of elements that tie x's stays, or else the first, and NaN is the
extremum. `axis`, the index and `wraps` are those of `_elements`; `items` is the size of the index along the axis."""

import jax
import jax.numpy as jnp

from .._core.bits import highest, lowest
from .._core.body import Body
from .._core.kernel import kernel
from ..segment import _arguments as segments
from ..segment._kernels import reduce
from ..segment._partition import same
from ..sort._kernels import scatter
from ..sort._kernels import take as take_native
from ._arguments import along, take
from ._elements import inside, is_short


def bodies(name):
    """Of "scatter_max" or "scatter_min": forward, tangent and backward."""
    is_max = name == "scatter_max"
    return dict(
        forward=Body(_reference(is_max), _native(name, is_max)),
        tangent=Body(_tangent_by(_taken), _tangent_by(take_native)),
        backward=Body(_backward_reference, _backward_native),
    )


def _reference(is_max):
    def arg_of(x, at, src):
        items, size = src.shape[0], x.shape[0]
        is_nan = jnp.zeros(size, jnp.int32).at[at].max(jnp.isnan(src).astype(jnp.int32), mode="drop")
        written = x.at[at]
        most = (written.max if is_max else written.min)(src, mode="drop")
        if jnp.issubdtype(x.dtype, jnp.floating):
            most = jnp.where((is_nan > 0) | jnp.isnan(x), jnp.nan, most)
        ranks = jnp.where(same(src, take(most, at, 0)), jnp.arange(items, dtype=jnp.int32), items)
        first = jnp.full(size, items, jnp.int32).at[at].min(ranks, mode="drop")
        return jnp.where(same(x, most) | (first == items), -1, first)

    def reference(x, index, src, *, axis, wraps, items):
        arg = along(arg_of, axis, x, inside(index, x.shape[axis], wraps), src)
        return jnp.where(arg < 0, x, _taken(src, arg, axis)), arg

    return reference


def _native(name, is_max):
    target = name.replace("scatter", "segment")

    def native(x, index, src, *, save, axis, wraps, items):
        rows, index, src = (jnp.moveaxis(a, axis, -1) for a in (x, index, src))
        if is_short(rows.shape[-1], src):
            out = [jax.ShapeDtypeStruct(rows.shape, dtype) for dtype in (rows.dtype, jnp.int32)[: 2 if save else 1]]
            dims = f"...n, ...m, ...m -> {', '.join(['...n'] * len(out))}"
            results = kernel(name, dims, rows, index, src, out=out, wraps=wraps)
        else:
            results = of_segments(rows, inside(index, rows.shape[-1], wraps), src, save)
        return tuple(jnp.moveaxis(y, -1, axis) for y in results)

    def of_segments(x, at, src, save):
        weakest = (lowest if is_max else highest)(x.dtype)
        how = dict(axis=at.ndim - 1, num_segments=x.shape[-1], empty_bits=segments.bits_of(name, weakest, x.dtype))
        most, *arg = reduce(target, src, at, [x.dtype, jnp.int32][: 2 if save else 1], **how)
        is_other = most > x if is_max else most < x
        if jnp.issubdtype(x.dtype, jnp.floating):
            is_other |= jnp.isnan(most) & ~jnp.isnan(x)
        return jnp.where(is_other, most, x), *(jnp.where(is_other, a, -1) for a in arg)

    return native


def _taken(x, arg, axis):
    """0 where arg is -1."""
    size = x.shape[axis]
    return along(lambda x, at: take(x, jnp.where(at < 0, size, at), 0), axis, x, arg)


def _tangent_by(take):
    def tangent(arg, t, of_src, *, axis, **_):
        return (jnp.where(arg < 0, t, take(of_src, arg, axis)),)

    return tangent


def _backward_reference(arg, dy, *, axis, items, **_):
    written = lambda at, dy: jnp.zeros(items, dy.dtype).at[jnp.where(at < 0, items, at)].set(dy, mode="drop")
    return jnp.where(arg < 0, dy, 0), along(written, axis, arg, dy)


def _backward_native(arg, dy, *, axis, items, **_):
    """As many elements as there are positions would be taken for a permutation, if no two had one position."""
    size = arg.shape[axis]
    if is_short(items, arg, axis):
        dsrc = scatter(arg, dy, items, axis, unique=size != items)
    else:
        differ = isinstance(size, int) and isinstance(items, int) and size != items
        dsrc = scatter(arg, dy, items + (not differ), axis, unique=True)
        dsrc = jax.lax.slice_in_dim(dsrc, 0, items, axis=axis)
    return jnp.where(arg < 0, dy, 0), dsrc
