"""Elements along an axis, at an index for each: the bodies. The gradient adds up rows of zeros on chip, where these are
short; others are sums of segments, a segment for each element of x. `axis` counts from the end, and the index has x's sizes
along the others. It is in [0, size], or, where it `wraps`, of any int32, of which negative ones count from the end."""

import math

import jax
import jax.numpy as jnp

from .._core.bits import from_bytes
from .._core.body import Body
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
    index = _inside(index, size, wraps)
    return (along(lambda x, at: take(x, at, from_bytes(fill, x.dtype)), axis, x, index),)


def _inside(index, size, wraps):
    return positions(index, size) if wraps else index


def _native(x, index, *, save=False, axis, size, fill, wraps):
    rows = lambda a: a.reshape(*a.shape[: a.ndim + axis + 1], math.prod(a.shape[a.ndim + axis + 1 :]))
    return (take_along(rows(index), rows(x), fill, wraps).reshape(index.shape),)


def _backward_reference(index, dy, *, axis, size, fill, wraps):
    index = _inside(index, size, wraps)
    add = lambda at, dy: jax.ops.segment_sum(wide(dy), at, size).astype(dy.dtype)
    return (along(add, axis, index, dy),)


def _backward_native(index, dy, *, axis, size, fill, wraps):
    index = _inside(index, size, wraps)
    total = _added if _is_short(size) and _is_short(index.shape[axis]) else _sorted
    each = lambda dy: total(index, dy, size, axis)
    return (jax.lax.complex(each(dy.real), each(dy.imag)) if jnp.iscomplexobj(dy) else each(dy),)


def _is_short(size):
    """Of a row whose sums are made on chip. Longer ones have too few threads for that."""
    return isinstance(size, int) and size <= 2**15


def _added(index, dy, size, axis):
    return scatter(index, dy, size, axis, unique=False)


def _sorted(index, dy, size, axis):
    at, rows = jnp.moveaxis(index, axis, -1), jnp.moveaxis(dy, axis, -1)
    how = dict(axis=at.ndim - 1, num_segments=size, empty_bits=0)
    return jnp.moveaxis(reduce("segment_sum", rows, at, [rows.dtype], **how)[0], -1, axis)


FORWARD = Body(_reference, _native)
BACKWARD = Body(_backward_reference, _backward_native)
