"""How many values are between each two edges."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.types import Implementation
from .._core.wide import wide
from ..segment import segment_sum
from ..segment._references import broadcast, per_batch
from ._arguments import floating, numbers
from ._bincount import count_ids
from ._edges import edges_of
from ._family import COUNTS, FAMILY
from ._partition import counts_are_added
from ._search import search


@api
def histogram(
    x: ArrayLike,
    bins: int | ArrayLike = 10,
    range: tuple[ArrayLike, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    *,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Count of the values in each bin, or sum of their weights.

    Formula:
        y[b] = the number of values with edges[b] <= x < edges[b + 1], and of the last bin <= edges[b + 1]; or the sum of
        their weights. With density, that over the width of the bin and over the sum of all bins.

    Args:
        x: array of a float or integer type, of any shape. Values outside all bins, and NaN, are in none.
        bins: static integer, the number of bins of one width; or their edges, an array [bins + 1] that rises.
        range: the first and the last edge, where bins is a number; by default the smallest and the largest value.
        weights: array of x's shape and a float or integer type.
        density: whether the result is one over whose bins the integral is 1.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        (y, edges), [bins] and [bins + 1] of x's dtype, or of that which a and weights promote to; integers are taken as
        the floats that jax.numpy makes of them.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: a value is compared with the edges themselves, so the counts are exact; they are rounded once to the dtype.
    Sums of weights are those of `segment_sum`, which has a gradient in the weights, and densities are computed in float32
    at least. Results are the same bits every time.

    Source: jax.numpy.histogram; torch.histogram, torch.histc.
    """
    op = "histogram"
    x = numbers(op, "x", x)
    if weights is None:
        x = floating(x)
    else:
        weights = numbers(op, "weights", weights)
        checks.shape(op, "weights", weights, x.shape, "that of x")
        x, weights = _promoted(x, weights)
    density = density is not None and checks.flag(op, "density", density)
    elements = explicit.reshape(x, -1)
    checks.positions(op, "x", elements.shape[0])
    edges, is_uniform = edges_of(op, elements, bins, range)
    if weights is None:
        counts = _histogram(elements, edges, uniform=is_uniform, implementation=implementation)
    else:
        counts = segment_sum(
            explicit.reshape(weights, -1),
            _bin(elements, edges, implementation),
            edges.shape[0] - 1,
            implementation=implementation,
        )
    if density:
        counts = _density(counts.astype(wide(edges).dtype), [wide(edges)])
    return counts.astype(x.dtype), edges


@api
def histogramdd(
    sample: ArrayLike,
    bins: int | Sequence[int | ArrayLike] = 10,
    range: Sequence[tuple[ArrayLike, ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    *,
    implementation: Implementation = None,
) -> tuple[Array, list[Array]]:
    """Count of the points in each box of a grid, or sum of their weights.

    Formula:
        y[b, c, ...] = the number of points whose first coordinate is in bin b of the first dimension, whose second is in bin
        c of the second, and so on, with bins as those of `histogram`; or the sum of their weights. With density, that over
        the volume of the box and over the sum of all.

    Args:
        sample: array [n, d] of a float or integer type, n points.
        bins: static integer for all dimensions, or for each dimension one, or its edges.
        range: None, or for each dimension None or the first and the last edge.
        weights: array [n] of a float or integer type.
        density: whether the result is one whose integral over the grid is 1.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        (y, edges): y of rank d, int32, or of the dtype of weights as they promote with sample, or of sample's where density
        is; and a list of d arrays.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `histogram`.

    Source: jax.numpy.histogramdd; torch.histogramdd.
    """
    op = "histogramdd"
    sample = explicit.whole(numbers(op, "sample", sample), (1,))
    if sample.ndim != 2 or not sample.shape[1]:
        raise ValueError(f"{op}: sample must be [n, d], n points of d coordinates, got shape {tuple(sample.shape)}")
    if weights is None:
        sample = floating(sample)
    else:
        weights = numbers(op, "weights", weights)
        checks.shape(op, "weights", weights, sample.shape[:1], "one a point")
        sample, weights = _promoted(sample, weights)
    density = density is not None and checks.flag(op, "density", density)
    checks.positions(op, "sample", sample.shape[0])
    count = sample.shape[1]
    bins = _each(op, "bins", bins, count, isinstance(bins, tuple | list))
    ranges = _each(op, "range", range, count, range is not None)
    columns = list(sample.T)
    edges = [edges_of(op, *which)[0] for which in zip(columns, bins, ranges, strict=True)]
    shape = tuple(e.shape[0] - 1 for e in edges)
    if math.prod(shape) > checks.MOST_POSITIONS:
        raise ValueError(
            f"{op}: bins may make at most {checks.MOST_POSITIONS} boxes, got {' x '.join(map(str, shape))}"
        )
    box = _box([_bin(x, e, implementation) for x, e in zip(columns, edges, strict=True)], shape=shape)
    if weights is None:
        counts = count_ids(box, math.prod(shape), implementation)
    else:
        counts = segment_sum(weights, box, math.prod(shape), implementation=implementation)
    counts = counts.reshape(shape)
    if density:
        counts = _density(counts.astype(wide(sample).dtype), list(map(wide, edges))).astype(sample.dtype)
    return counts, edges


@compiled("shape")
def _box(bins, *, shape):
    """The number of the box of each point; -1 outside of all."""
    box, inside = 0, True
    for b, size in zip(bins, shape, strict=True):
        box, inside = box * size + b, inside & (b >= 0) & (b < size)
    return jnp.where(inside, box, -1)


def _promoted(x, weights):
    dtype = jnp.result_type(x, weights)
    return floating(x.astype(dtype)), floating(weights.astype(dtype))


def _each(op, name, value, count, are_several):
    """One for each dimension."""
    if not are_several:
        return [value] * count
    try:
        values = list(value)
    except TypeError:
        values = None
    if values is None or len(values) != count:
        raise ValueError(f"{op}: {name} must be one for all dimensions or {count}, one for each, got {value!r}")
    return values


def _bin(x, edges, implementation):
    """The number of each element's bin; less or more where it is in none."""
    return _with_last(search(edges, x, right=True, implementation=implementation), x, edges)


@compiled()
def _with_last(position, x, edges):
    return jnp.where(x == edges[-1], edges.shape[0] - 1, position) - 1


@compiled()
def _density(counts, edges):
    counts = counts / counts.sum()
    for i, e in enumerate(edges):
        counts = counts / jnp.diff(e).reshape(-1, *(1,) * (len(edges) - i - 1))
    return counts


def _native(x, bins, *, save, uniform):
    out = jax.ShapeDtypeStruct((*x.shape[:-1], bins.shape[-1] - 1), jnp.int32)
    return kernel("histogram", "...n, ...e -> ...b", x, bins, out=[out], uniform=uniform)


def _reference(x, bins, *, uniform):
    def one(x, edges):
        count = edges.shape[0] - 1
        position = jnp.searchsorted(edges, x, side="right").astype(jnp.int32)
        position = jnp.where(x == edges[-1], count, position)
        return jnp.zeros(count + 1, jnp.int32).at[position].add(1, mode="drop")[1:]

    return (per_batch(one, x.ndim - 1)(x, broadcast(bins, x.shape[:-1])),)


def _edges(rng, *shape):
    return np.sort(rng.uniform(0.1, 2, shape))  # as unsigned integers they rise too


_histogram = declare(
    "histogram",
    **FAMILY,
    public=histogram,
    operands=("x", "bins"),
    constant={"x": COUNTS, "bins": COUNTS},
    dtypes=checks.NUMBERS,
    cases=(
        Case("uniform", lambda r: (r.standard_normal(200),), dict(bins=8, range=(-2, 2))),
        Case("edges", lambda r: (r.standard_normal((5, 41)), _edges(r, 12))),
        Case("few", lambda r: (r.standard_normal(9),), dict(bins=128, range=(-1, 1))),
    ),
    shared={"bins": 1},
    cut=counts_are_added,
    forward=Body(_reference, _native),
    kernels={"forward": ("histogram",)},
)
