"""Segments of a sequence: runs of equal ids. An empty array of ids stands for a sequence that is one segment."""

import jax.numpy as jnp
from jax import Array

from .._core import checks
from .._core.compiled import full


def segments(op, segment_ids, shape):
    """The ids as integers of a shape [B, L], or [B, 0] where there are none."""
    if segment_ids is None:
        return full((shape[0], 0), 0, jnp.int32)
    segment_ids = checks.array(op, "segment_ids", segment_ids)
    checks.dtype(op, "segment_ids", segment_ids, checks.INTEGERS)
    checks.shape(op, "segment_ids", segment_ids, shape, "one for each element of a sequence")
    return segment_ids


def starts(segment_ids: Array) -> Array:
    """Whether each element is the first of a segment that is not the first."""
    if not segment_ids.shape[-1]:
        return jnp.zeros(segment_ids.shape, bool)
    differs = segment_ids[..., 1:] != segment_ids[..., :-1]
    return jnp.concatenate([jnp.zeros((*differs.shape[:-1], 1), bool), differs], -1)


def elements_before(is_start, most):
    """How many elements of its segment are before each one, at most so many; the state is of the first segment."""
    count = jnp.full(is_start.shape, most, jnp.int32)
    length = is_start.shape[-1]
    for lag in reversed(range(most)):
        begins = is_start if not lag else jnp.pad(is_start, ((0, 0),) * (is_start.ndim - 1) + ((lag, 0),))[..., :length]
        count = jnp.where(begins, lag, count)
    return count
