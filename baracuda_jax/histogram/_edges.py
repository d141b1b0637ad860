"""The edges of bins."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import checks, explicit
from .._core.compiled import compiled, sent
from ._arguments import floating, numbers


def edges_of(op, x, bins, range):
    """The edges, in x's dtype, and whether they are meant to be uniform."""
    if np.ndim(bins) == 0:
        bins = checks.integer(op, "bins", _number(bins), 1)
        if bins > checks.MOST_POSITIONS:
            raise ValueError(f"{op}: bins must be at most {checks.MOST_POSITIONS}, got {bins}")
        return _uniform(op, x, bins, range), True
    edges = explicit.whole(numbers(op, "bins", bins))
    if edges.ndim != 1 or edges.shape[0] < 2:
        raise ValueError(f"{op}: bins must be an integer or two or more edges [n], got shape {tuple(edges.shape)}")
    return floating(edges).astype(x.dtype), False


def _number(bins):
    """An array of one integer is one, if its value is known."""
    if isinstance(bins, np.ndarray | jax.Array) and not isinstance(bins, jax.core.Tracer):
        return bins.item()
    return bins


def _uniform(op, x, bins, range):
    if range is None:
        if not x.shape[0]:
            raise ValueError(
                f"{op}: range must be given where there are no values, since their extremes are its default"
            )
        return _between(jnp.min(x), jnp.max(x), bins, x.dtype)
    ends = [range] if np.ndim(range) == 0 else list(range)
    if len(ends) != 2 or any(np.ndim(end) for end in ends):
        raise ValueError(f"{op}: range must be None or two numbers, the first and the last edge, got {range!r}")
    if any(isinstance(end, jax.core.Tracer) for end in ends):
        return _between(*(numbers(op, "range", end).astype(x.dtype) for end in ends), bins, x.dtype)
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise TypeError(
            f"{op}: range must be None or two numbers, the first and the last edge, got {range!r}"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise ValueError(f"{op}: range must be two finite numbers, the second not below the first, got {range!r}")
    return sent(_known(low, high, bins, x.dtype.name))


@functools.lru_cache(maxsize=16)
def _known(low, high, bins, dtype):
    """Edges that are known, from a program of their own: in one with what reads them they would have other roundings."""
    end = jax.ShapeDtypeStruct((), dtype)
    spread = functools.partial(jnp.linspace, num=bins + 1, dtype=dtype)
    low, high = _ends(*(np.asarray(end, dtype) for end in (low, high)), np)
    with jax.transfer_guard("allow"), jax.disable_jit(False):
        edges = np.asarray(jax.jit(spread).lower(end, end).compile()(low, high))
    return np.maximum.accumulate(np.minimum(edges, high))


def _ends(low, high, numpy):
    """A range that is a point becomes one of width 1."""
    half = numpy.asarray(0.5, low.dtype)
    return numpy.where(low == high, low - half, low), numpy.where(low == high, high + half, high)


@compiled("bins", "dtype")
def _between(low, high, bins, dtype):
    low, high = _ends(low, high, jnp)
    edges = jnp.linspace(low, high, bins + 1, dtype=dtype)
    return lax.cummax(jnp.minimum(edges, high))  # as narrow as the dtype's steps they might fall, by rounding
