"""The sum of each segment's rows."""

import jax
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.body import Body
from .._core.types import Implementation
from ._arguments import arguments, backward_arguments, bits_of, document
from ._family import FAMILY, cases, declare_with_index
from ._kernels import each_row, flat, gathered, is_by_buckets, reduce
from ._partition import sum_by_rows
from ._references import reduce_by, take


@api
@document("y[s] = sum of data[n] over the rows n with segment_ids[n] == s", empty="0")
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    empty_value: float = 0,
    implementation: Implementation = None,
) -> Array:
    """Sum of the rows of each segment."""
    op = "segment_sum"
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.NUMBERS)
    bits = bits_of(op, empty_value, data.dtype)
    return _sum(data, ids, *index, **params, empty_bits=bits, implementation=implementation)


@api
def segment_sum_backward(
    segment_ids: ArrayLike, dy: ArrayLike, *, indices_are_sorted: bool = False, implementation: Implementation = None
) -> Array:
    """The gradient of `segment_sum`: dx[n] = dy[segment_ids[n]], zero for dropped rows.

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        dy: floats [num_segments, ...], the cotangent of the result.
        indices_are_sorted: as in `segment_sum`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    ids, index, params = backward_arguments("segment_sum_backward", segment_ids, dy, indices_are_sorted)
    return _sum.vjp(ids, *index, dy, **params, implementation=implementation)


def _sum_native(data, ids, *, save, **params):
    return reduce("segment_sum", data, ids, [data.dtype], **params)


def _sum_backward_native(ids, dy, *, sorted, index, **params):
    """What a sum without an index has, reads rows wherever they are."""
    rows = flat(dy, params["axis"])
    if not index and not sorted and is_by_buckets("segment_sum", ids.shape[-1], params["num_segments"], rows):
        return (gathered(dy, ids, axis=params["axis"]),)
    return (each_row(dy, ids, sorted=sorted, index=index, **params),)


def _sum_reference(data, ids, **params):
    return (reduce_by(lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"]), 0, data, ids, **params),)


_sum = declare_with_index(
    "segment_sum",
    **{**FAMILY, "sometimes": (*FAMILY["sometimes"], "take_rows")},
    public=segment_sum,
    dtypes=checks.NUMBERS,
    cases=cases(),
    residuals=("segment_ids",),
    linear=lambda params: {**params, "empty_bits": 0},
    cut=sum_by_rows,
    forward=Body(_sum_reference, _sum_native),
    backward=Body(
        reference=lambda ids, dy, **params: (take(dy, ids, **params),),
        native=_sum_backward_native,
    ),
    kernels={"forward": ("segment_sum",), "backward": ("segment_sum_backward",)},
)
