"""Functions of `jax.ops` with native kernels: the same names, signatures and semantics."""

import functools

import jax
import jax.numpy as jnp
import jax.ops
import numpy as np

import baracuda_jax as bj

from ._core.checks import INTEGERS
from ._core.wide import wide
from ._mirror.mirror import is_array, is_float, is_integer, is_unset, mirror, takes

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

DROPS = (None, "drop", "fill", "promise_in_bounds", *(
    jax.lax.GatherScatterMode.FILL_OR_DROP, jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS))  # fmt: skip


def _kernel(op, data, segment_ids, num_segments, indices_are_sorted, rest, mode):
    """The function of (data, segment_ids), or NotImplemented; `rest` are the arguments that only JAX's function takes."""
    if not is_unset(*rest) or mode not in DROPS or not isinstance(indices_are_sorted, bool):
        return NotImplemented
    if not takes(op, data) or not is_array(segment_ids, INTEGERS):
        return NotImplemented
    if data.ndim < 1 or segment_ids.shape != data.shape[:1]:
        return NotImplemented
    if num_segments is None:
        if isinstance(segment_ids, jax.core.Tracer) or not segment_ids.size:
            return NotImplemented
        num_segments = int(np.max(segment_ids)) + 1
    if not is_integer(num_segments) or num_segments < 1:
        return NotImplemented
    return functools.partial(getattr(bj, op), num_segments=num_segments, indices_are_sorted=indices_are_sorted)


def _segment(op, data, segment_ids, *rest):
    of = _kernel(op, data, segment_ids, *rest)
    return of if of is NotImplemented else of(data, segment_ids)


def _extremum(op, initial, data, segment_ids, *rest):
    of = _kernel(op, data, segment_ids, *rest)
    if of is NotImplemented:
        return of
    of = functools.partial(of, ties="split")
    return _with_initial(of, initial, data, segment_ids) if is_float(data) else of(data, segment_ids)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _with_initial(of, initial, data, segment_ids):
    """Extrema of segments, with the derivative of jax.ops: its scatter starts from `initial`, which ties with the rows of a
    segment in which all are infinite, and a segment with NaN has no gradient."""
    return of(data, segment_ids)


@_with_initial.defjvp
def _with_initial_jvp(of, initial, primals, tangents):
    data, segment_ids = primals
    of_data = lambda data: of(data, segment_ids, return_residuals=True)
    (y, ties), (tangent, _) = jax.jvp(of_data, (data,), tangents[:1])
    ties = wide(ties.astype(y.dtype))
    part = jnp.where(jnp.isnan(y), 0, jnp.where(y == initial, ties / (ties + 1), 1)).astype(y.dtype)
    return y, tangent * part


@mirror(jax.ops, jax.ops.segment_sum, "segment_sum")
def segment_sum(
    data,
    segment_ids,
    num_segments=None,
    indices_are_sorted=False,
    unique_indices=False,
    bucket_size=None,
    mode=None,
    out_sharding=None,
):
    """As jax.ops.segment_sum; native for real data with one id a row, without buckets and mode="clip"."""
    return _segment(
        "segment_sum", data, segment_ids, num_segments, indices_are_sorted, (bucket_size, out_sharding), mode
    )


@mirror(jax.ops, jax.ops.segment_prod, "segment_prod")
def segment_prod(
    data,
    segment_ids,
    num_segments=None,
    indices_are_sorted=False,
    unique_indices=False,
    bucket_size=None,
    mode=None,
    out_sharding=None,
):
    """As jax.ops.segment_prod; native for real data with one id a row, without buckets and mode="clip"."""
    return _segment(
        "segment_prod", data, segment_ids, num_segments, indices_are_sorted, (bucket_size, out_sharding), mode
    )


@mirror(jax.ops, jax.ops.segment_max, "segment_max_split")
def segment_max(
    data,
    segment_ids,
    num_segments=None,
    indices_are_sorted=False,
    unique_indices=False,
    bucket_size=None,
    mode=None,
    out_sharding=None,
):
    """As jax.ops.segment_max; native for real data with one id a row, without buckets and mode="clip"."""
    rest = bucket_size, out_sharding
    return _extremum("segment_max", -jnp.inf, data, segment_ids, num_segments, indices_are_sorted, rest, mode)


@mirror(jax.ops, jax.ops.segment_min, "segment_min_split")
def segment_min(
    data,
    segment_ids,
    num_segments=None,
    indices_are_sorted=False,
    unique_indices=False,
    bucket_size=None,
    mode=None,
    out_sharding=None,
):
    """As jax.ops.segment_min; native for real data with one id a row, without buckets and mode="clip"."""
    rest = bucket_size, out_sharding
    return _extremum("segment_min", jnp.inf, data, segment_ids, num_segments, indices_are_sorted, rest, mode)
