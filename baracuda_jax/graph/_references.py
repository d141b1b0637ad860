"""The parts of plain JAX that the references are made of."""

import jax
import jax.numpy as jnp

from .._core.wide import wide
from ..segment._references import per_batch, segment_or_last, take


def receivers_of(senders, receivers, count):
    """Receivers, -1 where the sender is none of so many rows."""
    info = jnp.iinfo(senders.dtype)
    inside = senders >= 0 if info.min < 0 else jnp.ones(senders.shape, bool)
    inside &= senders < count if info.max >= count else True
    return jnp.where(inside, segment_or_last(receivers, 2**31 - 1), -1)


def each_entry(x, senders, axis):
    """The rows of x that senders name, zero where there is none."""
    return take(x, senders, axis=axis)


def scaled(x, weights):
    """x [*batch, E, *features] times weights [*batch, E, *leading features], in what sums are computed in."""
    return wide(x) * weights.reshape(*weights.shape, *(1,) * (x.ndim - weights.ndim))


def add_up(x, receivers, *, axis, num_segments):
    add = lambda x, ids: jax.ops.segment_sum(x, segment_or_last(ids, num_segments), num_segments)
    return per_batch(add, axis)(x, each_batch(receivers, x.shape[:axis]))


def each_batch(ids, batch):
    missing = len(batch) - (ids.ndim - 1)
    return jnp.broadcast_to(ids.reshape(*ids.shape[:-1], *(1,) * missing, ids.shape[-1]), (*batch, ids.shape[-1]))
