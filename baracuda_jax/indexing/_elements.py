"""Elements along an axis, at an index for each: the bodies, of what takes them and of what adds to them, each the other's
gradient. Rows are added up on chip, where they are short; others are sums of segments, a segment for each element of x.
`axis` counts from the end, and the index has x's sizes along the others. It is in [0, size], or, where it `wraps`, of any
int32, of which negative ones count from the end."""

import math

import jax
import jax.numpy as jnp

from .._core.bits import from_bytes
from .._core.body import Body
from .._core.kernel import kernel
from .._core.take_along import take_along
from .._core.wide import wide
from ..segment._kernels import reduce
from ..sort._kernels import scatter
from ._arguments import along, positions, take


def labels(names, types, params):
    def of(name, rank):
        axis = "s" if name == "x" else "n"
        return [axis if i - rank == params["axis"] else f"feature{rank - i}" for i in range(rank)]

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _reference(x, index, *, axis, size, fill, wraps):
    index = inside(index, size, wraps)
    return (along(lambda x, at: take(x, at, from_bytes(fill, x.dtype)), axis, x, index),)


def inside(index, size, wraps):
    return positions(index, size) if wraps else index


def _native(x, index, *, save=False, axis, size, fill, wraps):
    rows = lambda a: a.reshape(*a.shape[: a.ndim + axis + 1], math.prod(a.shape[a.ndim + axis + 1 :]))
    return (take_along(rows(index), rows(x), fill, wraps).reshape(index.shape),)


def _backward_reference(index, dy, *, axis, size, fill, wraps):
    index = inside(index, size, wraps)
    add = lambda at, dy: jax.ops.segment_sum(wide(dy), at, size).astype(dy.dtype)
    return (along(add, axis, index, dy),)


def _backward_native(index, dy, *, axis, size, fill, wraps):
    index = inside(index, size, wraps)
    each = lambda dy: added(index, dy, size, axis)
    return (jax.lax.complex(each(dy.real), each(dy.imag)) if jnp.iscomplexobj(dy) else each(dy),)


def is_short(size, x, axis=-1):
    """Whether rows of so many elements, which the items of x go to, are combined on chip. Long rows have parts there, each
    of which looks at all items, and an element that has most of them makes one thread do most of the work, so there should
    be a few such rows."""
    items, is_static = x.shape[axis], lambda sizes: all(isinstance(n, int) for n in sizes)
    if not is_static((size, items)) or items > 2**15:
        return False
    return size <= 2**15 or (size <= 2**18 and is_static(x.shape) and x.size >= 8 * items)


def added(index, dy, size, axis):
    """Sums of floats by an index in [0, size]."""
    if is_short(size, index, axis):
        return scatter(index, dy, size, axis, unique=False)
    return _sorted(index, dy, size, axis)


def _sorted(index, dy, size, axis):
    at, rows = jnp.moveaxis(index, axis, -1), jnp.moveaxis(dy, axis, -1)
    how = dict(axis=at.ndim - 1, num_segments=size, empty_bits=0)
    return jnp.moveaxis(reduce("segment_sum", rows, at, [rows.dtype], **how)[0], -1, axis)


# ---------------------------------------------------------------------------------------------------------------------
# Elements that are added to


def _sum_reference(x, index, src, *, axis, wraps):
    size = x.shape[axis]
    add = lambda x, at, src: (wide(x) + jax.ops.segment_sum(wide(src), at, size)).astype(x.dtype)
    return (along(add, axis, x, inside(index, size, wraps), src),)


def _sum_native(x, index, src, *, save=False, axis, wraps):
    size = x.shape[axis]
    if not is_short(size, index, axis):
        return ((wide(x) + _sorted(inside(index, size, wraps), wide(src), size, axis)).astype(x.dtype),)
    rows, index, src = (jnp.moveaxis(a, axis, -1) for a in (x, index, src))
    out = jax.ShapeDtypeStruct(rows.shape, rows.dtype)
    (y,) = kernel("scatter_add", "...n, ...m, ...m -> ...n", rows, index, src, out=[out], wraps=wraps)
    return (jnp.moveaxis(y, -1, axis),)


def _sum_backward(take):
    def backward(index, dy, *, axis, wraps):
        return dy, *take(dy, index, axis=axis, size=dy.shape[axis], fill=bytes(dy.dtype.itemsize), wraps=wraps)

    return backward


FORWARD = Body(_reference, _native)
BACKWARD = Body(_backward_reference, _backward_native)
SUM_FORWARD = Body(_sum_reference, _sum_native)
SUM_BACKWARD = Body(_sum_backward(_reference), _sum_backward(_native))
