"""The kernel calls that the native bodies are made of: sums by rows of a CSR matrix whose row pointers are known, so that
nothing is sorted."""

import jax.numpy as jnp

from ..graph._kernels import rows
from ..segment._kernels import flat, reduce
from ._slots import flat as slots_in_order


def total(x, slots, *, axis):
    """The sum of each token's rows of x, whose numbers are slots [*batch, T, k]; those out of range name no row."""
    return reduce("segment_sum", x, _index(slots), [x.dtype], empty_bits=0, **_shape(x, slots, axis))[0]


def weighted(x, slots, weights, *, axis):
    """The same of rows times weights [*batch, T, k]."""
    more = [(flat(slots_in_order(weights), axis), "...eh")]
    return reduce("segment_weighted_sum", x, _index(slots), [x.dtype], more=more, **_shape(x, slots, axis))[0]


def _index(slots):
    """That of T segments of k entries, which are in order."""
    *batch, tokens, k = slots.shape
    offsets = jnp.broadcast_to(jnp.arange(tokens + 1, dtype=jnp.uint32) * k, (*batch, tokens + 1))
    return jnp.zeros((*batch, 0), jnp.uint32), offsets


def _shape(x, slots, axis):
    return dict(axis=axis, num_segments=slots.shape[-2], sources=rows(slots_in_order(slots), x.shape[axis]))
