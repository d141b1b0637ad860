"""The parts of plain JAX that the references are made of."""

import jax
import jax.numpy as jnp

from .._core.wide import wide
from .._core.within import within
from ..segment._references import broadcast, per_batch, segment_or_last


def receivers_of(senders, receivers, count, num_segments):
    """Receivers, `num_segments` where these or the senders, of which there are so many, are out of range."""
    return jnp.where(within(senders, count), segment_or_last(receivers, num_segments), num_segments)


def even_counts(senders, count, length):
    """int32 [*batch, S]: how many of each segment's `length` neighboring senders are in range."""
    return (
        within(senders, count)
        .reshape(*senders.shape[:-1], senders.shape[-1] // length, length)
        .sum(-1, dtype=jnp.int32)
    )


def scaled(x, weights):
    """x [*batch, E, *features] times weights [*batch, E, *leading features], in what sums are computed in."""
    return wide(x) * weights.reshape(*weights.shape, *(1,) * (x.ndim - weights.ndim))


def add_up(x, receivers, *, axis, num_segments):
    add = lambda x, ids: jax.ops.segment_sum(x, segment_or_last(ids, num_segments), num_segments)
    return per_batch(add, axis)(x, broadcast(receivers, x.shape[:axis]))
