"""The variance of each segment's rows, and its root."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import compose
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import arguments, document
from ._family import FAMILY, cases
from ._index import with_index
from ._mean import segment_mean
from ._sum import segment_sum
from ._take import take_or_zero

_MORE = """\
        ddof: static number, what is taken from the number of rows in the divisor; a segment with no more rows than that is
            NaN.
"""
_PRECISION = (
    "float16 and bfloat16 are computed in float32 and rounded once. Differences from the mean are squared, not squares "
    "subtracted: rows far from 0 lose nothing."
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
    empty_value: float = 0,
    implementation: Implementation = None,
) -> Array:
    """Variance of the rows of each segment."""
    rest = (data, segment_ids, num_segments, ddof, indices_are_sorted, empty_value, implementation)
    return _variance("segment_var", False, *rest)


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
    empty_value: float = 0,
    implementation: Implementation = None,
) -> Array:
    """Standard deviation of the rows of each segment."""
    rest = (data, segment_ids, num_segments, ddof, indices_are_sorted, empty_value, implementation)
    return _variance("segment_std", True, *rest)


def _variance(op, root, data, segment_ids, num_segments, ddof, indices_are_sorted, empty, implementation):
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    if not checks.is_number(ddof):
        raise TypeError(f"{op}: ddof must be a static number, got {ddof!r}")
    if not checks.is_number(empty):
        raise TypeError(f"{op}: empty_value must be a static scalar, got {empty!r}")
    options = dict(indices_are_sorted=params["sorted"], implementation=implementation)
    x, count, indexed = _wide(data), params["num_segments"], with_index(ids, index)
    mean, counts = segment_mean(x, indexed, count, return_residuals=True, **options)
    each = take_or_zero(mean, ids, *index, **params, implementation=implementation)
    squares = segment_sum(_squares(x, each), indexed, count, **options)
    static = dict(ddof=float(ddof), root=root, empty=float(empty), dtype=data.dtype.name, axis=params["axis"])
    return _over(squares, counts, **static)


@compiled()
def _wide(x):
    return wide(x)


@compiled()
def _squares(x, mean):
    return jnp.square(x - mean)


@compiled("ddof", "root", "empty", "dtype", "axis")
def _over(squares, counts, *, ddof, root, empty, dtype, axis):
    counts = counts.reshape(counts.shape + (1,) * (squares.ndim - counts.ndim))
    rest = counts.astype(squares.dtype) - ddof
    y = squares / jnp.where(rest > 0, rest, 1)
    if root:
        y = jnp.where(squares == 0, 0, jnp.sqrt(jnp.where(squares == 0, 1, y)))
    y = jnp.where(rest > 0, y, jnp.nan)
    return jnp.where(counts == 0, empty, y).astype(dtype)


def _declare(public):
    compose(
        public.__name__,
        family=FAMILY["family"],
        category=FAMILY["category"],
        public=public,
        cases=cases(),
        dtypes=checks.FLOATS,
        operands=FAMILY["operands"],
        made_of=("segment_mean", "segment_take", "segment_sum"),
        differentiable=FAMILY["differentiable"],
        constant=FAMILY["constant"],
    )


_declare(segment_var)
_declare(segment_std)
