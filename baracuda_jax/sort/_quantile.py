"""Medians and quantiles: between two order statistics, by plain JAX, which differentiates that."""

import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.types import Axes, Implementation
from .._core.wide import wide_dtype
from . import _ranks
from ._arguments import document
from ._family import cases, spaced
from ._statistics import statistics

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")

_A = """\
        x: array of a float or integer type.
"""
_AXIS = """\
        axis: static integer or a tuple of them, the axes along which it is taken; None for all.
"""
_KEEP = """\
        keepdims: keep these axes, with length 1.
"""
_Q = """\
        q: number or vector, in [0, 1]; may be traced.
"""
_METHOD = """\
        method: what is taken between two elements: "linear", "lower", "higher", "nearest" or "midpoint".
"""
_PRECISION = "floats of 16 bits are interpolated in float32, and rounded once. Elements themselves are exact."
_MEDIAN = dict(
    args=_A + _AXIS + _KEEP,
    returns="Array without these axes, of x's dtype; for integers of the default float type.",
    precision=_PRECISION,
)
_QUANTILE = dict(
    args=_A + _Q + _AXIS + _METHOD + _KEEP,
    returns="Array without these axes, after one of q's length if q is a vector; of x's dtype, for integers of the default "
    "float type. NaN where a traced q is outside [0, 1].",
    precision=_PRECISION,
)


@api
@document(
    "y = (s_{floor(h)} + s_{ceil(h)}) / 2, h = (n - 1) / 2, s = sort(x); NaN if any element is. dy goes to these elements",
    source="jax.numpy.median; torch.quantile with q=0.5 and midpoint, torch.median takes the lower one",
    **_MEDIAN,
)
def median(x: ArrayLike, axis: Axes = None, *, keepdims: bool = False, implementation: Implementation = None) -> Array:
    """Median along axes, the mean of the two middle elements where their number is even."""
    return _between("median", _median, x, None, axis, "midpoint", keepdims, False, implementation)


@api
@document(
    "that of `median`, of the elements that are not NaN; NaN where there is none",
    source="jax.numpy.nanmedian; torch.nanmedian takes the lower one",
    **_MEDIAN,
)
def nanmedian(
    x: ArrayLike, axis: Axes = None, *, keepdims: bool = False, implementation: Implementation = None
) -> Array:
    """The median of the elements that are not NaN."""
    return _between("nanmedian", _nanmedian, x, None, axis, "midpoint", keepdims, True, implementation)


@api
@document(
    "y = (1 - w) s_{floor(h)} + w s_{ceil(h)}, h = q (n - 1), w = h - floor(h), s = sort(x); NaN if any element is. "
    "dy goes to these elements, by their weights; dq = (n - 1) (s_{ceil(h)} - s_{floor(h)}) dy",
    source="jax.numpy.quantile; torch.quantile",
    **_QUANTILE,
)
def quantile(
    x: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The element below which a share q of all is."""
    return _between("quantile", _quantile, x, q, axis, method, keepdims, False, implementation)


@api
@document(
    "that of `quantile`, of the elements that are not NaN; NaN where there is none",
    source="jax.numpy.nanquantile; torch.nanquantile",
    **_QUANTILE,
)
def nanquantile(
    x: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: Literal["linear", "lower", "higher", "midpoint", "nearest"] = "linear",
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The quantile of the elements that are not NaN."""
    return _between("nanquantile", _nanquantile, x, q, axis, method, keepdims, True, implementation)


# ---------------------------------------------------------------------------------------------------------------------


def _between(op, statistics, x, q, axis, method, keepdims, skips_nan, implementation):
    """`q` is None for the middle."""
    x = checks.array(op, "x", x)
    checks.dtype(op, "x", x, checks.NUMBERS)
    q = None if q is None else explicit.whole(_share(op, q))
    method = checks.choice(op, "method", method, METHODS)
    axes = _axes(op, x, axis)
    keepdims = checks.flag(op, "keepdims", keepdims)
    rows = _rows(x, axes)
    *batch, n = rows.shape
    checks.positions(op, "x", n, "elements along axis")
    kept = [1 if i in axes else size for i, size in enumerate(x.shape)] if keepdims else batch
    dtype, many = jnp.result_type(x.dtype, float), () if q is None else q.shape
    if not n:
        return jnp.full((*many, *kept), jnp.nan, dtype)
    of = wide_dtype(dtype if q is None else jnp.result_type(dtype, q))
    if many == ():
        q = q if q is None else q.reshape(1)
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    how = dict(method=method, has_last=is_float and not skips_nan, dtype=of)  # NaNs come last
    ranks, weight, is_share = _wanted(rows, q, skips_nan=is_float and skips_nan, **how)
    y = _value(statistics(rows, ranks, count=n, implementation=implementation), weight, is_share, **how).astype(dtype)
    return explicit.reshape(jnp.moveaxis(y, -1, 0) if many else y, *many, *kept)


def _expanded(x, rank):
    """With so many dimensions."""
    return jax.lax.expand_dims(x, range(rank - x.ndim))


@compiled("method", "skips_nan", "has_last", "dtype")
def _wanted(rows, q, *, method, skips_nan, has_last, dtype):
    """The ranks whose elements are needed, [m'] or, of rows without their NaN, [*batch, m']; with as many dimensions as rows
    have, the fraction between two of them, and whether it is of a share in [0, 1]."""
    n = rows.shape[-1]
    q = jnp.full(1, 0.5, dtype) if q is None else q.astype(dtype)
    is_share = (q >= 0) & (q <= 1)
    share, count = jnp.where(is_share, q, 0), jnp.full(1, n - 1, jnp.int32)
    if skips_nan:
        count = jnp.maximum((~jnp.isnan(rows)).sum(-1, dtype=jnp.int32, keepdims=True) - 1, 0)
        share = _expanded(share, rows.ndim)
    low, high, weight = _ranks.around(count, share, n - 1)
    ranks = {"lower": [low], "higher": [high]}.get(method, [low, high])
    if has_last:
        ranks.append(jnp.full((*low.shape[:-1], 1), n - 1, jnp.int32))
    return jnp.concatenate(ranks, -1), _expanded(weight, rows.ndim), _expanded(is_share, rows.ndim)


@functools.partial(jax.jit, static_argnames=("method", "has_last", "dtype"))
def _value(found, weight, is_share, *, method, has_last, dtype):
    """Of the found elements, [*batch, m]. One program, also where others are run step by step: products and their sum are
    rounded alike."""
    found, m = found.astype(dtype), weight.shape[-1]
    first, second = found[..., :m], found[..., :m] if method in ("lower", "higher") else found[..., m : 2 * m]
    if method == "linear":
        # Where only one element counts, another that is infinite must not.
        idle = (weight == 0) & jnp.isinf(second)
        y = first * (1 - weight) + jnp.where(idle, 0, second) * weight
    elif method == "midpoint":
        y = jnp.where(weight == 0, first, (first + second) * jnp.asarray(0.5, dtype))
    else:
        y = jnp.where(weight <= 0.5, first, second) if method == "nearest" else first
    if has_last:
        y = jnp.where(jnp.isnan(found[..., -1:]), jnp.nan, y)
    return jnp.where(is_share, y, jnp.nan)


def _share(op, q):
    x = checks.array(op, "q", q)
    checks.dtype(op, "q", x, checks.NUMBERS)
    if x.ndim > 1:
        raise ValueError(f"{op}: q must be a number or a vector, got shape {x.shape}")
    if not isinstance(q, jax.core.Tracer):
        values = np.asarray(q).astype(np.float64)
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"{op}: q must be in [0, 1], got {values.tolist()}")
    return x


def _axes(op, x, axis):
    """The axes, counted from the first, in order."""
    if axis is None:
        return tuple(range(x.ndim))
    several = axis if isinstance(axis, tuple | list) else (axis,)
    axes = []
    for i, value in enumerate(several):
        name = f"axis[{i}]" if isinstance(axis, tuple | list) else "axis"
        value = checks.integer(op, name, value, -x.ndim)
        if value >= x.ndim:
            raise ValueError(f"{op}: {name} must be in [{-x.ndim}, {x.ndim - 1}] for x of shape {x.shape}, got {value}")
        axes.append(value % x.ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{op}: axis must name each axis once, got {axis}")
    return tuple(sorted(axes))


def _rows(x, axes):
    """[*batch, n], with these axes made one, after the others."""
    rest = [i for i in range(x.ndim) if i not in axes]
    n = math.prod(x.shape[i] for i in axes)
    return explicit.reshape(x.transpose(*rest, *axes), *(x.shape[i] for i in rest), n)


_SHAPES = {
    "rows": ((5, 41), dict(axis=-1)),
    "columns": ((38, 6), dict(axis=0, keepdims=True)),
    "all": ((6, 7), {}),
    "two axes": ((3, 17, 4), dict(axis=(0, 1))),
}


def _quantile_cases():
    def draw(q, shape):
        return lambda rng: (spaced(rng, *shape), np.asarray(q, np.float64))

    return (
        Case("rows", draw(0.3, (5, 41)), dict(axis=-1)),
        Case("columns", draw([0.0, 0.625, 1.0], (38, 6)), dict(axis=0, keepdims=True)),
        Case("midpoint", draw([0.25, 0.75], (6, 7)), dict(method="midpoint")),
        Case("nearest", draw(0.4, (3, 17, 4)), dict(axis=(0, 1), method="nearest")),
    )


def _declare(name, public, cases, fused=False):
    return statistics(name, "x", public=public, cases=cases, dtypes=checks.FLOATS, fused=fused)


_median = _declare("median", median, cases(_SHAPES))
_nanmedian = _declare("nanmedian", nanmedian, cases(_SHAPES))
_quantile = _declare("quantile", quantile, _quantile_cases(), fused=True)
_nanquantile = _declare("nanquantile", nanquantile, _quantile_cases(), fused=True)
