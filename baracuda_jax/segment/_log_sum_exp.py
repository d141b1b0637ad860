"""The logarithm of the sum of exponentials of each segment's rows."""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bits
from .._core.body import Body
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype, with_rest
from ._arguments import arguments, backward_arguments, bits_of, document
from ._family import FAMILY, cases, declare_with_index
from ._kernels import gradient, reduce
from ._partition import log_sum_exp_by_rows
from ._references import broadcast, column, count, per_batch, segment_or_last, take


@api
@document(
    "y[s] = log(sum of e^data[n] over the rows n with segment_ids[n] == s); ddata[n] = dy[s] e^(data[n] - y[s])",
    empty="-inf",
    more="        return_residuals: also return what rounding took from y, in float32 for float16 and bfloat16, which the\n"
    "            backward function reads.\n",
    dtypes="a float type",
    precision="float16 and bfloat16 are computed in float32 and rounded once. Sums are kept with their maximum: nothing "
    "overflows. -inf adds nothing and has gradient 0, +inf gives +inf, NaN gives NaN. The gradient's weights are of y "
    "before it is rounded: the sum of a segment's is 1, however large the elements are.",
)
def segment_logsumexp(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    return_residuals: bool = False,
    empty_value: float = -math.inf,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Logarithm of the sum of exponentials of the rows of each segment."""
    op = "segment_logsumexp"
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    save = checks.flag(op, "return_residuals", return_residuals)
    bits = bits_of(op, empty_value, data.dtype)
    return _log_sum_exp(data, ids, *index, **params, empty_bits=bits, save=save, implementation=implementation)


@api
def segment_logsumexp_backward(
    data: ArrayLike,
    segment_ids: ArrayLike,
    y: ArrayLike,
    rest: ArrayLike,
    dy: ArrayLike,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_logsumexp`: dx[n] = dy[s] e^(data[n] - y[s]) with s = segment_ids[n], y being the sum of `y`
    and `rest`; zero for dropped rows.

    Args:
        data: floats [N, ...], the exponents.
        segment_ids: integers [N] (or with batches [*batch, N]).
        y, rest: as `segment_logsumexp` returns them: the result [num_segments, ...], and what rounding took from it, which
            is float32 for float16 and bfloat16.
        dy: floats [num_segments, ...], the cotangent of the result.
        indices_are_sorted: as in `segment_logsumexp`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    op = "segment_logsumexp_backward"
    dy, y, rest = (checks.array(op, name, x) for name, x in (("dy", dy), ("y", y), ("rest", rest)))
    ids, index, params = backward_arguments(op, segment_ids, dy, indices_are_sorted, same=[("y", y), ("rest", rest)])
    data = checks.array(op, "data", data)
    checks.same_dtype(op, "data", data, "dy", dy)
    expected = (*dy.shape[: params["axis"]], ids.shape[-1], *dy.shape[params["axis"] + 1 :])
    checks.shape(op, "data", data, expected, "that of dy with the rows of segment_ids")
    checks.same_dtype(op, "y", y, "dy", dy)
    checks.dtype(op, "rest", rest, (wide_dtype(dy.dtype).name,))
    return _log_sum_exp.vjp(data, ids, y, rest, *index, dy, **params, implementation=implementation)


def log_sum_exp_reference(data, ids, *, axis, num_segments, empty_bits, **_):
    def one(data, ids):
        x, segments = wide(data), segment_or_last(ids, num_segments)
        most = jax.ops.segment_max(x, segments, num_segments)
        is_finite = jnp.isfinite(most)
        base = jnp.where(is_finite, most, 0)
        powers = jnp.exp(x - take(base, ids, axis=0))
        total = jax.ops.segment_sum(powers, segments, num_segments)
        log = jnp.where(is_finite, jnp.log(jnp.where(is_finite, total, 1)), 0)
        y, rest = with_rest(most, log, data.dtype)
        empty = column(count(ids, num_segments) == 0, y)
        return jnp.where(empty, from_bits(empty_bits, data.dtype), y), jnp.where(empty, 0, rest)

    return per_batch(one, axis)(data, broadcast(ids, data.shape[:axis]))


def _native(data, ids, *, save, **params):
    out = [data.dtype, wide_dtype(data.dtype)][: 2 if save else 1]
    return reduce("segment_logsumexp", data, ids, out, **params)


def _weights(data, ids, y, rest, *, axis, **params):
    """e^(data - y), 0 for -inf and for dropped rows, 1 for equal infinities, which have no difference."""
    y_here, rest_here = (take(a, ids, axis=axis) for a in (y, rest))
    inside = take(jnp.ones(y.shape, jnp.int8), ids, axis=axis) > 0
    is_nothing, is_same = (data == -jnp.inf) | ~inside, jnp.isinf(data) & (data == y_here)
    below = jnp.where(is_nothing | is_same, 0, data - y_here) - jnp.where(is_nothing, 0, rest_here)
    return jnp.where(is_nothing, 0, jnp.exp(below))


def _backward_reference(data, ids, y, rest, dy, *, axis, **params):
    weights = _weights(wide(data), ids, wide(y), rest, axis=axis)
    return ((weights * take(wide(dy), ids, axis=axis)).astype(data.dtype),)


def _backward(data, ids, y, rest, dy, **params):
    return gradient("segment_logsumexp_backward", ids, dy, data=[data], elements=[y, rest], **params)


def _tangent_reference(data, ids, y, rest, t, *, axis, num_segments, **_):
    moved = _weights(wide(data), ids, wide(y), rest, axis=axis) * wide(t)
    add = lambda x, ids: jax.ops.segment_sum(x, segment_or_last(ids, num_segments), num_segments)
    return (per_batch(add, axis)(moved, broadcast(ids, data.shape[:axis])).astype(t.dtype),)


def _tangent_native(data, ids, y, rest, t, **params):
    one = jnp.ones(y.shape, wide(t).dtype)
    each = _backward(wide(data), ids, wide(y), rest, one, **params)
    (total,) = reduce("segment_sum", each * wide(t), ids, [each.dtype], **{**params, "empty_bits": 0})
    return (total.astype(t.dtype),)


_log_sum_exp = declare_with_index(
    "segment_logsumexp",
    **FAMILY,
    public=segment_logsumexp,
    dtypes=checks.FLOATS,
    cases=cases(),
    results=("y", "rest"),
    residuals=("data", "segment_ids", "y", "rest"),
    cut=log_sum_exp_by_rows,
    forward=Body(log_sum_exp_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, lambda *arrays, **params: (_backward(*arrays, **params),)),
    kernels={
        "forward": ("segment_logsumexp",),
        "tangent": ("segment_logsumexp_backward", "segment_sum"),
        "backward": ("segment_logsumexp_backward",),
    },
)
