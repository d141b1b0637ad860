"""The variance of each segment's rows, and its root."""

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bits
from .._core.body import Body
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from .._core.within import within
from ._arguments import arguments, backward_arguments, bits_of, document
from ._family import FAMILY, cases, declare_with_index
from ._kernels import gradient, reduce
from ._partition import by_rows
from ._references import broadcast, count, per_batch, segment_or_last, take

_MORE = """\
        ddof: static number, what is taken from the number of rows in the divisor; a segment with no more rows than that is
            NaN.
        return_residuals: also return what the backward function reads, in float32 for float16 and bfloat16: the mean of each
            segment, and what dy (data - mean) is multiplied by in the gradient.
"""
_PRECISION = (
    "float16 and bfloat16 are computed in float32 and rounded once. Differences from the mean of some of the rows are "
    "squared: rows far from 0 lose nothing, and equal rows give exactly 0."
)


@api
@document(
    "y[s] = (sum of (data[n] - m[s])^2 over the rows n with segment_ids[n] == s) / (number of those rows - ddof), m[s] "
    "being their mean; ddata[n] = 2 dy[s] (data[n] - m[s]) / (number of rows - ddof)",
    empty="0",
    more=_MORE,
    dtypes="a float type",
    precision=_PRECISION,
)
def segment_var(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    ddof: float = 0,
    indices_are_sorted: bool = False,
    return_residuals: bool = False,
    empty_value: float = 0,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Variance of the rows of each segment."""
    rest = (data, segment_ids, num_segments, ddof, indices_are_sorted, return_residuals, empty_value, implementation)
    return _variance("segment_var", _var, *rest)


@api
@document(
    "y[s] = the square root of `segment_var`; ddata[n] = dy[s] (data[n] - m[s]) / (y[s] (number of rows - ddof)), 0 where "
    "y[s] is 0",
    empty="0",
    more=_MORE,
    dtypes="a float type",
    precision=_PRECISION,
)
def segment_std(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    ddof: float = 0,
    indices_are_sorted: bool = False,
    return_residuals: bool = False,
    empty_value: float = 0,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Standard deviation of the rows of each segment."""
    rest = (data, segment_ids, num_segments, ddof, indices_are_sorted, return_residuals, empty_value, implementation)
    return _variance("segment_std", _std, *rest)


def _variance(op, which, data, segment_ids, num_segments, ddof, indices_are_sorted, residuals, empty, implementation):
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    static = _static(op, which, ddof, bits_of(op, empty, data.dtype))
    save = checks.flag(op, "return_residuals", residuals)
    return which(data, ids, *index, **params, **static, save=save, implementation=implementation)


def _static(op, which, ddof, empty_bits):
    if not checks.is_number(ddof):
        raise TypeError(f"{op}: ddof must be a static number, got {ddof!r}")
    return dict(ddof=float(ddof), root=which is _std, empty_bits=empty_bits)


@api
def segment_var_backward(
    data: ArrayLike,
    segment_ids: ArrayLike,
    mean: ArrayLike,
    scale: ArrayLike,
    dy: ArrayLike,
    *,
    ddof: float = 0,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_var`: dx[n] = dy[s] scale[s] (data[n] - mean[s]) with s = segment_ids[n], scale being
    2 / (number of rows - ddof), or 0 for a segment with no more rows than ddof; zero for dropped rows.

    Args:
        data: floats [N, ...] (or with batches [*batch, N, ...]).
        segment_ids: integers [N] (or [*batch, N]).
        mean, scale: as `segment_var` returns them: [num_segments, ...], float32 for float16 and bfloat16.
        dy: floats [num_segments, ...] of data's dtype, the cotangent of the result.
        ddof, indices_are_sorted: as in `segment_var`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    rest = (data, segment_ids, mean, scale, dy, ddof, indices_are_sorted, implementation)
    return _variance_backward("segment_var_backward", _var, *rest)


@api
def segment_std_backward(
    data: ArrayLike,
    segment_ids: ArrayLike,
    mean: ArrayLike,
    scale: ArrayLike,
    dy: ArrayLike,
    *,
    ddof: float = 0,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_std`: as `segment_var_backward`, scale being 1 / (y (number of rows - ddof)), 0 where y is.

    Args:
        data: floats [N, ...] (or with batches [*batch, N, ...]).
        segment_ids: integers [N] (or [*batch, N]).
        mean, scale: as `segment_std` returns them: [num_segments, ...], float32 for float16 and bfloat16.
        dy: floats [num_segments, ...] of data's dtype, the cotangent of the result.
        ddof, indices_are_sorted: as in `segment_std`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    rest = (data, segment_ids, mean, scale, dy, ddof, indices_are_sorted, implementation)
    return _variance_backward("segment_std_backward", _std, *rest)


def _variance_backward(op, which, data, segment_ids, mean, scale, dy, ddof, indices_are_sorted, implementation):
    data, mean, scale, dy = (
        checks.array(op, name, x) for name, x in (("data", data), ("mean", mean), ("scale", scale), ("dy", dy))
    )
    same = [("mean", mean), ("scale", scale)]
    ids, index, params = backward_arguments(op, segment_ids, dy, indices_are_sorted, same=same)
    checks.same_dtype(op, "data", data, "dy", dy)
    expected = (*dy.shape[: params["axis"]], ids.shape[-1], *dy.shape[params["axis"] + 1 :])
    checks.shape(op, "data", data, expected, "that of dy with the rows of segment_ids")
    for name, x in same:
        checks.dtype(op, name, x, (wide_dtype(dy.dtype).name,))
    params |= _static(op, which, ddof, 0)
    return which.vjp(data, ids, mean, scale, *index, dy, **params, implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# The references. The residuals are functions of the rows, whose tangents need not be known.


def _add(x, ids, axis, num_segments):
    one = lambda x, ids: jax.ops.segment_sum(x, segment_or_last(ids, num_segments), num_segments)
    return per_batch(one, axis)(x, broadcast(ids, x.shape[:axis]))


def _counts(ids, like, axis, num_segments):
    """The number of rows of each segment, shaped to go with rows."""
    counts = broadcast(count(ids, num_segments), like.shape[:axis]).astype(like.dtype)
    return counts.reshape(counts.shape + (1,) * (like.ndim - axis - 1))


def _inside(x, ids, axis, num_segments):
    """x, and 0 for dropped rows."""
    inside = broadcast(within(ids, num_segments), x.shape[:axis])
    return jnp.where(inside.reshape(inside.shape + (1,) * (x.ndim - inside.ndim)), x, 0)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _difference(x, ids, mean, axis, num_segments):
    """What rows are above the mean of their segment."""
    return _inside(x - take(mean, ids, axis=axis), ids, axis, num_segments)


@_difference.defjvp
def _difference_tangent(axis, num_segments, primals, tangents):
    x, ids, mean = primals
    t, rows = tangents[0], jnp.maximum(_counts(ids, x, axis, num_segments), 1)
    center = take(_add(t, ids, axis, num_segments) / rows, ids, axis=axis)
    return _difference(x, ids, mean, axis, num_segments), _inside(t - center, ids, axis, num_segments)


@functools.partial(jax.custom_jvp, nondiff_argnums=(4, 5, 6))
def _scale_of_root(x, ids, mean, scale, axis, num_segments, ddof):
    """1 / (y (n - ddof)), which is known."""
    return scale


@_scale_of_root.defjvp
def _scale_tangent(axis, num_segments, ddof, primals, tangents):
    x, ids, mean, _ = primals
    scale = _scale_of_root(*primals, axis, num_segments, ddof)
    moved = _add(_difference(x, ids, mean, axis, num_segments) * tangents[0], ids, axis, num_segments)
    return scale, -(scale**3) * (_counts(ids, x, axis, num_segments) - ddof) * moved


def _scale(data, ids, mean, scale, *, axis, num_segments, ddof, root, **_):
    return _scale_of_root(wide(data), ids, mean, scale, axis, num_segments, ddof) if root else scale


def _results(squares, counts, mean, dtype, *, ddof, root, empty_bits, **_):
    """The results, of sums of squares, and of as many rows."""
    rest = counts - ddof
    is_known, divisor = rest > 0, jnp.where(rest > 0, rest, 1)
    y = squares / divisor
    scale = jnp.where(is_known, 2 / divisor, 0)
    if root:
        is_zero = squares == 0
        y = jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, y)))
        scale = jnp.where(is_known & ~is_zero, 1 / (jnp.where(is_zero, 1, y) * divisor), 0)
    y = jnp.where(is_known, y, jnp.nan).astype(dtype)
    mean = jnp.where(jnp.isfinite(mean), mean, jnp.nan)
    return jnp.where(counts == 0, from_bits(empty_bits, dtype), y), mean, jnp.broadcast_to(scale, y.shape)


def _reference(data, ids, *, axis, num_segments, **params):
    x = wide(data)
    counts = _counts(ids, x, axis, num_segments)
    mean_of = lambda x: _add(x, ids, axis, num_segments) / jnp.maximum(counts, 1)
    mean = mean_of(x)
    apart = x - take(mean, ids, axis=axis)
    missing = mean_of(apart)  # by rounding, of rows far from 0
    squares = _add(jnp.square(apart - take(missing, ids, axis=axis)), ids, axis, num_segments)
    return _results(squares, counts, mean + missing, data.dtype, **params)


def _tangent_reference(data, ids, mean, scale, t, *, axis, num_segments, **params):
    each = _difference(wide(data), ids, mean, axis, num_segments) * wide(t)
    scale = _scale(data, ids, mean, scale, axis=axis, num_segments=num_segments, **params)
    return (_scaled(_add(each, ids, axis, num_segments), scale).astype(t.dtype),)


def _backward_reference(data, ids, mean, scale, dy, *, axis, num_segments, **params):
    scale = _scale(data, ids, mean, scale, axis=axis, num_segments=num_segments, **params)
    slope = take(_scaled(wide(dy), scale), ids, axis=axis)
    return ((slope * _difference(wide(data), ids, mean, axis, num_segments)).astype(dy.dtype),)


def _scaled(x, scale):
    """scale x, 0 where the scale is."""
    return jnp.where(scale == 0, 0, scale * x)


# ---------------------------------------------------------------------------------------------------------------------
# The native bodies, and shards


def _native(data, ids, *, save, **params):
    saved = wide_dtype(data.dtype)
    return reduce("segment_var", data, ids, [data.dtype, saved, saved][: 3 if save else 1], values=4, **params)


def _backward_native(data, ids, mean, scale, dy, **params):
    return (gradient("segment_var_backward", ids, dy, data=[data], elements=[mean, scale], **params),)


def _tangent_native(data, ids, mean, scale, t, *, ddof, root, empty_bits, **params):
    (each,) = _backward_native(wide(data), ids, mean, scale, jnp.ones_like(mean), **params)
    (total,) = reduce("segment_sum", each * wide(t), ids, [each.dtype], empty_bits=0, **params)
    return (total.astype(t.dtype),)


def _forward_on_shards(run, axes, data, ids, *, save, ddof, root, empty_bits, **params):
    """Of the shards' parts: their means, and what these are apart."""
    variance, own, _ = run["forward"](wide(data), ids, save=True, ddof=0.0, root=False, empty_bits=0, **params)
    counts = _counts(ids, own, params["axis"], params["num_segments"])
    total = lax.psum(counts, axes)
    mean = lax.psum(own * counts, axes) / jnp.maximum(total, 1)
    squares = lax.psum(counts * (variance + jnp.square(own - mean)), axes)
    out = _results(squares, total, mean, data.dtype, ddof=ddof, root=root, empty_bits=empty_bits)
    return list(out)[: None if save else 1]


def _declare(public):
    return declare_with_index(
        public.__name__,
        **FAMILY,
        public=public,
        dtypes=checks.FLOATS,
        cases=(*cases(), *cases(ddof=1)[:1]),
        results=("y", "mean", "scale"),
        residuals=("data", "segment_ids", "mean", "scale"),
        cut=by_rows(forward=_forward_on_shards),
        forward=Body(_reference, _native),
        tangent=Body(_tangent_reference, _tangent_native),
        backward=Body(_backward_reference, _backward_native),
        kernels={
            "forward": ("segment_var",),
            "tangent": ("segment_var_backward", "segment_sum"),
            "backward": ("segment_var_backward",),
        },
    )


_var = _declare(segment_var)
_std = _declare(segment_std)
