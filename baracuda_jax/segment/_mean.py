"""The mean of each segment's rows."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bits
from .._core.body import Body
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import arguments, backward_arguments, bits_of, document
from ._family import FAMILY, cases, declare_with_index
from ._kernels import counts_of, flat, gradient, reduce
from ._partition import mean_by_rows
from ._references import broadcast, column, count, per_batch, segment_or_last, take


@api
@document(
    "y[s] = (sum of data[n] over the rows n with segment_ids[n] == s) / (number of those rows)",
    empty="0",
    more="        return_residuals: also return the number of rows of each segment, int32.\n",
    dtypes="a float type",
)
def segment_mean(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    return_residuals: bool = False,
    empty_value: float = 0,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Mean of the rows of each segment."""
    op = "segment_mean"
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    save = checks.flag(op, "return_residuals", return_residuals)
    bits = bits_of(op, empty_value, data.dtype)
    return _mean(data, ids, *index, **params, empty_bits=bits, save=save, implementation=implementation)


@api
def segment_mean_backward(
    segment_ids: ArrayLike,
    counts: ArrayLike,
    dy: ArrayLike,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_mean`: dx[n] = dy[s] / counts[s] with s = segment_ids[n], zero for dropped rows.

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        counts: int32 [num_segments], the number of rows of each segment, as `segment_mean` returns it.
        dy: floats [num_segments, ...], the cotangent of the result.
        indices_are_sorted: as in `segment_mean`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    op = "segment_mean_backward"
    checks.dtype(op, "counts", counts, ("int32",))
    ids, index, params = backward_arguments(op, segment_ids, dy, indices_are_sorted, per_segment=[("counts", counts)])
    return _mean.vjp(ids, counts, *index, dy, **params, implementation=implementation)


def _align(ids, counts):
    """Ids and counts with the same batches, whichever has more."""
    batch = max(ids.shape[:-1], counts.shape[:-1], key=len)
    return broadcast(ids, batch), broadcast(counts, batch)


def _mean_native(data, ids, *, save, **params):
    (y,) = reduce("segment_mean", data, ids, [data.dtype], **params)
    if not save:
        return (y,)
    rows = flat(data, params["axis"])
    counts = counts_of(ids, params["num_segments"], rows, params["sorted"], params["index"])
    return y, broadcast(counts, ids.shape[:-1])


def _mean_tangent_native(ids, counts, t, **params):
    """Divides by `counts`."""
    ids, counts = _align(ids, counts)
    params = {**params, "empty_bits": 0, "more": [(counts, "...s")]}
    return tuple(reduce("segment_mean", t, ids, [t.dtype], **params))


def _mean_backward_native(ids, counts, dy, **params):
    ids, counts = _align(ids, counts)
    return (gradient("segment_mean_backward", ids, dy, counts=[counts], **params),)


def _divide(y, counts, axis):
    one = lambda y, counts: (wide(y) / column(jnp.maximum(counts, 1), y).astype(wide(y).dtype)).astype(y.dtype)
    return per_batch(one, axis)(y, broadcast(counts, y.shape[:axis]))


def _mean_of(data, ids, counts, *, axis, num_segments, **_):
    def one(data, ids, counts):
        total = jax.ops.segment_sum(wide(data), segment_or_last(ids, num_segments), num_segments)
        return _divide(total, counts, 0).astype(data.dtype)

    batch = data.shape[:axis]
    return per_batch(one, axis)(data, broadcast(ids, batch), broadcast(counts, batch))


def _mean_reference(data, ids, **params):
    counts = count(ids, params["num_segments"])
    y, axis = _mean_of(data, ids, counts, **params), params["axis"]
    fill = lambda y, counts: jnp.where(column(counts == 0, y), from_bits(params["empty_bits"], data.dtype), y)
    return per_batch(fill, axis)(y, broadcast(counts, y.shape[:axis])), counts


_mean = declare_with_index(
    "segment_mean",
    **{**FAMILY, "sometimes": ("segment_index", "segment_sum")},
    public=segment_mean,
    dtypes=checks.FLOATS,
    cases=cases(),
    results=("y", "counts"),
    follows={"counts": "segment_ids"},
    residuals=("segment_ids", "counts"),
    cut=mean_by_rows,
    forward=Body(_mean_reference, _mean_native),
    tangent=Body(lambda ids, counts, t, **params: (_mean_of(t, ids, counts, **params),), _mean_tangent_native),
    backward=Body(
        reference=lambda ids, counts, dy, **params: (take(_divide(dy, counts, params["axis"]), ids, **params),),
        native=_mean_backward_native,
    ),
    kernels={
        "forward": ("segment_mean",),
        "tangent": ("segment_mean",),
        "backward": ("segment_mean_backward",),
    },
)
