"""Elements along an axis, at an index for each: the bodies. The gradient is a sum of segments, a segment for each element
of x. `axis` counts from the end, and the index has x's sizes along the others."""

import math

import jax
import jax.numpy as jnp

from .._core.bits import from_bytes
from .._core.body import Body
from .._core.wide import wide
from ..segment._kernels import index_of, reduce, taken_along
from ._arguments import along, take


def labels(names, types, params):
    def of(name, rank):
        axis = "s" if name == "x" else "n"
        return [axis if i - rank == params["axis"] else f"feature{rank - i}" for i in range(rank)]

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _reference(x, index, *, axis, size, fill):
    return (along(lambda x, at: take(x, at, from_bytes(fill, x.dtype)), axis, x, index),)


def _native(x, index, *, save=False, axis, size, fill):
    rows = lambda a: a.reshape(*a.shape[: a.ndim + axis + 1], math.prod(a.shape[a.ndim + axis + 1 :]))
    return (taken_along(rows(index), rows(x), fill).reshape(index.shape),)


def _backward_reference(index, dy, *, axis, size, fill):
    add = lambda at, dy: jax.ops.segment_sum(wide(dy), at, size).astype(dy.dtype)
    return (along(add, axis, index, dy),)


def _backward_native(index, dy, *, axis, size, fill):
    at, rows = jnp.moveaxis(index, axis, -1), jnp.moveaxis(dy, axis, -1)
    known, how = index_of(at, size, False), dict(axis=at.ndim - 1, num_segments=size, empty_bits=0)
    total = lambda rows: reduce("segment_sum", rows, known, [rows.dtype], **how)[0]
    y = jax.lax.complex(total(rows.real), total(rows.imag)) if jnp.iscomplexobj(rows) else total(rows)
    return (jnp.moveaxis(y, -1, axis),)


FORWARD = Body(_reference, _native)
BACKWARD = Body(_backward_reference, _backward_native)
