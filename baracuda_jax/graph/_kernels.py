"""The kernel calls that the native bodies are made of."""

import math

import jax
import jax.numpy as jnp

from .._core.bits import to_bits
from .._core.kernel import kernel
from .._core.wide import wide_dtype
from .._core.within import within
from ..segment._kernels import flat, reduce
from ..segment._references import broadcast

NO_ROW = 2**32 - 1


def aligned(*arrays):
    """Integers [*batch, E], all with the batches of the one that has most."""
    batch = max((x.shape[:-1] for x in arrays), key=len)
    return [broadcast(x, batch) for x in arrays]


def rows(ids, count):
    """Row numbers as the kernels read them: uint32, NO_ROW where there is no such row."""
    return jnp.where(within(ids, count), ids.astype(jnp.uint32), jnp.uint32(NO_ROW))


def names(ids, count):
    """As `rows`; as they are where kernels compare them with the count themselves, negative ones as unsigned."""
    return ids if ids.dtype in (jnp.int32, jnp.uint32) and count else rows(ids, count)


def by_segment(target, x, senders, receivers, out, *, axis, index=(), **params):
    """Calls a reduction of the rows of x that senders name, by receivers, whose index may be known. Other operands, `more`,
    are by entry or shaped as x. `length` is the number of neighboring entries that each segment has, `repeats` of those that
    name each row, where it is the same for all."""
    senders, receivers, *index = aligned(senders, receivers, *index)
    return reduce(target, x, receivers, out, axis=axis, index=index, sources=names(senders, x.shape[axis]), **params)


def total(x, senders, receivers, *, axis, dtype, **segments):
    """The sum, as dtype: that of x, or what it is computed in."""
    empty = to_bits(0, dtype)
    return by_segment("segment_sum", x, senders, receivers, [dtype], axis=axis, empty_bits=empty, **segments)[0]


def weighted(x, weights, senders, receivers, *, axis, **segments):
    """The sum of rows times weights [*batch, E, *leading features]."""
    more = [(flat(weights, axis), "...eh")]
    return by_segment("segment_weighted_sum", x, senders, receivers, [x.dtype], axis=axis, more=more, **segments)[0]


def dots(x, y, senders, receivers, *, axis, leading):
    """[*batch, E, *leading features]: the dot products of rows of x and y over the other features."""
    senders, receivers = aligned(senders, receivers)
    kept = x.shape[axis + 1 : axis + 1 + leading]
    out = jax.ShapeDtypeStruct((*x.shape[:axis], senders.shape[-1], math.prod(kept)), wide_dtype(x.dtype))
    operands = flat(x, axis), flat(y, axis), names(senders, x.shape[axis]), names(receivers, y.shape[axis])
    (d,) = kernel("sampled_dot", "...nd, ...md, ...e, ...e -> ...eh", *operands, out=[out])
    return d.reshape(*d.shape[:-1], *kept)
