"""The softmax of each segment's rows."""

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import lowest, to_bits
from .._core.body import Body
from .._core.kernel import kernel
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from .._core.within import within
from ._arguments import arguments, document, ids_and_index
from ._family import FAMILY, cases, declare_with_index
from ._kernels import flat, ids_of_rows, order_of, reduce_workspace, result_type, unflat
from ._log_sum_exp import log_sum_exp_reference
from ._partition import by_rows, log_sum_of_parts
from ._references import broadcast, per_batch, segment_or_last, take


@api
@document(
    "y[n] = e^data[n] / (sum of e^data[m] over the rows m of n's segment); ddata = y (dy - g), with g[n] the sum of "
    "y[m] dy[m] over those rows",
    empty=None,
    dtypes="a float type",
    returns="Array [N, ...] of data's dtype; 0 for dropped rows.",
    precision="float16 and bfloat16 are computed in float32 and rounded once. -inf has weight 0, also in a segment of "
    "nothing else; NaN makes its segment NaN, and so does +inf.",
)
def segment_softmax(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Softmax of the rows of each segment."""
    op = "segment_softmax"
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    return _softmax(data, ids, *index, **params, implementation=implementation)


@api
def segment_softmax_backward(
    data: ArrayLike,
    segment_ids: ArrayLike,
    lse: ArrayLike,
    rest: ArrayLike,
    dy: ArrayLike,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_softmax`: dx[n] = y[n] (dy[n] - g), with y[n] = e^(data[n] - lse[s] - rest[s]), s =
    segment_ids[n], and g the sum of y[m] dy[m] over the rows m of s; zero for dropped rows.

    Args:
        data: floats [N, ...] (or with batches [*batch, N, ...]), the exponents.
        segment_ids: integers [N] (or [*batch, N]).
        lse, rest: what `segment_logsumexp` returns with return_residuals: [num_segments, ...] of data's dtype, and what
            rounding took from it, which is float32 for float16 and bfloat16.
        dy: floats of data's shape and dtype, the cotangent of the result.
        indices_are_sorted: as in `segment_softmax`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    op = "segment_softmax_backward"
    data, lse, rest, dy = (
        checks.array(op, name, x) for name, x in (("data", data), ("lse", lse), ("rest", rest), ("dy", dy))
    )
    axis = ids_and_index(op, segment_ids)[0].ndim - 1
    if lse.ndim <= axis:
        raise ValueError(f"{op}: lse must have a dimension for segments after the batches, got {tuple(lse.shape)}")
    segments = lse.shape[axis]
    data, ids, index, params = arguments(op, data, segment_ids, segments, indices_are_sorted, checks.FLOATS)
    of_segments = (*data.shape[:axis], segments, *data.shape[axis + 1 :])
    checks.shape(op, "lse", lse, of_segments, "that of data with segments for rows")
    checks.shape(op, "rest", rest, of_segments, "that of lse")
    checks.shape(op, "dy", dy, data.shape, "that of data")
    checks.same_dtype(op, "lse", lse, "data", data)
    checks.same_dtype(op, "dy", dy, "data", data)
    checks.dtype(op, "rest", rest, (wide_dtype(data.dtype).name,))
    return _softmax.vjp(data, ids, lse, rest, *index, dy, **params, implementation=implementation)


@functools.partial(jax.custom_jvp, nondiff_argnums=(4, 5, 6))
def _weights(x, ids, lse, rest, axis, num_segments, over):
    """Softmax of x, of which the logarithm of each segment's sum is known, over shards of rows along axes of a mesh; 0 for
    -inf and for dropped rows."""
    here, left = (take(wide(a), ids, axis=axis) for a in (lse, rest))
    inside = broadcast(within(ids, num_segments), x.shape[:axis])
    is_nothing = (x == -jnp.inf) | ~inside.reshape(inside.shape + (1,) * (x.ndim - inside.ndim))
    below = (jnp.where(is_nothing, 0, x) - jnp.where(is_nothing, 0, here)) - jnp.where(is_nothing, 0, left)
    return jnp.where(is_nothing, 0, jnp.exp(below))


@_weights.defjvp
def _weights_tangent(axis, num_segments, over, primals, tangents):
    """The logarithms are functions of x, whose tangents need not be known."""
    p, ids = _weights(*primals, axis, num_segments, over), primals[1]
    return p, _above_mean(p, ids, tangents[0], axis, num_segments, over)


def _above_mean(p, ids, t, axis, num_segments, over):
    """p (t - g), g being the sum of p t over the segment. What has weight 0 takes no part, whatever its tangent is."""
    add = lambda x, ids: jax.ops.segment_sum(x, segment_or_last(ids, num_segments), num_segments)
    weighted = lambda t: jnp.where(p == 0, 0, p * t)
    mean = per_batch(add, axis)(weighted(t), broadcast(ids, t.shape[:axis]))
    mean = lax.psum(mean, over) if over else mean
    return weighted(t - take(mean, ids, axis=axis))


def _reference(data, ids, *, axis, num_segments, sorted):
    nothing = to_bits(lowest(data.dtype), data.dtype)
    lse, rest = log_sum_exp_reference(data, ids, axis=axis, num_segments=num_segments, empty_bits=nothing)
    y = _weights(wide(data), ids, lse, rest, axis, num_segments, ())
    return y.astype(data.dtype), lse, rest


def _linear_reference(data, ids, lse, rest, t, *, axis, num_segments, over=(), **_):
    p = _weights(wide(data), ids, lse, rest, axis, num_segments, over)
    return (_above_mean(p, ids, wide(t), axis, num_segments, over).astype(t.dtype),)


def _in_order(x, order):
    """Rows and their order, with dimensions."""
    return zip((x, *order), ("...nd", "...p", "...q"), strict=True)


def _native(data, ids, *, save, axis, num_segments, sorted, index=()):
    x, wide_type = flat(data, axis), wide_dtype(data.dtype)
    order = order_of(ids, num_segments, x, sorted, index)
    of_segments = [result_type(x, axis, num_segments, dtype) for dtype in (data.dtype, wide_type)]
    arrays, dims = zip(*_in_order(x, order), *ids_of_rows(ids, num_segments, x, sorted, order), strict=True)
    results = kernel(
        "segment_softmax", f"{', '.join(dims)} -> ...nd, ...sd, ...sd", *arrays,
        out=[jax.ShapeDtypeStruct(x.shape, x.dtype), *of_segments],
        workspace=reduce_workspace(x.shape[axis], num_segments, x),
    )  # fmt: skip
    return tuple(unflat(y, data, axis) for y in results)[: None if save else 1]


def _linear_native(data, ids, lse, rest, t, *, axis, num_segments, sorted, index=()):
    x, lse, rest, t = (flat(a, axis) for a in (data, lse, rest, t))
    order = order_of(ids, num_segments, x, sorted, index)
    operands = [*_in_order(x, order), (lse, "...sd"), (rest, "...sd"), (t, "...nd")]
    arrays, dims = zip(*operands, *ids_of_rows(ids, num_segments, x, sorted, order), strict=True)
    dx, _ = kernel(
        "segment_softmax_backward", f"{', '.join(dims)} -> ...nd, ...sd", *arrays,
        out=[jax.ShapeDtypeStruct(x.shape, x.dtype), result_type(x, axis, num_segments, rest.dtype)],
        workspace=reduce_workspace(x.shape[axis], num_segments, x, values=3),
    )  # fmt: skip
    return (unflat(dx, data, axis),)


def _forward_on_shards(run, axes, data, ids, *, save, axis, num_segments, **params):
    segments = dict(axis=axis, num_segments=num_segments, **params)
    _, part, left = run["forward"](wide(data), ids, save=True, **segments)
    lse, rest = log_sum_of_parts(part, left, axes, data.dtype)
    y = _weights(wide(data), ids, lse, rest, axis, num_segments, axes).astype(data.dtype)
    return [y, lse, rest][: None if save else 1]


def _linear_on_shards(run, axes, *arrays, **params):
    return list(_linear_reference(*arrays, over=axes, **params))


_softmax = declare_with_index(
    "segment_softmax",
    **FAMILY,
    public=segment_softmax,
    dtypes=checks.FLOATS,
    cases=cases(),
    results=("weights", "lse", "rest"),
    outputs=("weights",),
    residuals=("data", "segment_ids", "lse", "rest"),
    cut=by_rows(forward=_forward_on_shards, tangent=_linear_on_shards, backward=_linear_on_shards),
    forward=Body(_reference, _native),
    tangent=Body(_linear_reference, _linear_native),
    backward=Body(_linear_reference, _linear_native),
    kernels={
        "forward": ("segment_softmax",),
        "tangent": ("segment_softmax_backward",),
        "backward": ("segment_softmax_backward",),
    },
)
