"""Reductions on shards: what is kept is apart from each other; the results of shards of the reduced dimensions are combined,
by one collective for each result. `over` are the axes of the mesh."""

import math

import jax.numpy as jnp
from jax import lax

from .._core.extreme import extreme, same
from .._core.partition import Partition
from .._core.wide import wide, with_rest
from ._references import combined_log_sum_exp, combined_variance, norm_reference

_REDUCED = tuple(f"reduced{i}" for i in range(64))
_FULL = ("x", "x")


def _labels(names, types, params):
    """Of the kept and of the reduced dimensions."""

    def of(name, x):
        if name not in _FULL:
            return tuple(f"kept{i}" for i in range(x.ndim))
        kept = iter(range(x.ndim))
        return tuple(
            _REDUCED[params["axes"].index(i)] if i in params["axes"] else f"kept{next(kept)}" for i in range(x.ndim)
        )

    return [of(name, x) for name, x in zip(names, types, strict=True)]


def _by_slices(**combine):
    return Partition(_labels, combine=dict.fromkeys(_REDUCED, combine))


def _sum_of(kind):
    def run_on_shards(run, over, x, /, **params):
        (y,) = run[kind](
            wide(x), **{**params, "dtype": wide(x).dtype if x.dtype == params["dtype"] else params["dtype"]}
        )
        return [lax.psum(y, over).astype(params["dtype"])]

    return run_on_shards


sum_by_slices = _by_slices(forward=_sum_of("forward"), tangent=_sum_of("tangent"))
trace_by_slices = Partition(_labels, whole=frozenset(_REDUCED))


def extremum_by_slices(is_max):
    def forward(run, over, x, /, *, save, **params):
        part, *ties = run["forward"](x, save=save, **params)
        if x.dtype == bool:
            return [extreme(part.astype(jnp.int32), over, is_max).astype(bool)]
        y = extreme(part, over, is_max)
        return [y, *(lax.psum(jnp.where(same(part, y), count, 0), over) for count in ties)]

    return _by_slices(forward=forward)


def _multiply(x, axes):
    return lax.all_gather(x, axes).prod(0)


def _prod_forward(run, over, x, /, *, save, **params):
    dtype = params["dtype"]
    is_half = wide(x).dtype != x.dtype
    y, *more = run["forward"](wide(x), save=save, **{**params, "dtype": wide(x).dtype if is_half else dtype})
    y = _multiply(y, over).astype(dtype)
    if not save:
        return [y]
    zeros = lax.psum(more[1].astype(jnp.int32), over)
    return [y, _multiply(more[0], over), jnp.minimum(zeros, 2).astype(more[1].dtype)]


prod_by_slices = _by_slices(forward=_prod_forward)


def log_sum_exp_of_shards(parts, over, dtype):
    """Of all shards, and what rounding takes from it, from the two of this one."""
    return with_rest(*combined_log_sum_exp(*lax.all_gather(jnp.stack(parts), over, axis=1)), dtype)


def _log_sum_exp_forward(run, over, x, /, *, save, **params):
    parts = run["forward"](wide(x), save=True, **params)
    return log_sum_exp_of_shards(parts, over, x.dtype)[: None if save else 1]


log_sum_exp_by_slices = _by_slices(forward=_log_sum_exp_forward)


def _norm_forward(run, over, x, /, *, save, **params):
    """The norm of the shards' norms."""
    parts = lax.all_gather(run["forward"](wide(x), save=False, **params)[0], over)
    y = norm_reference(parts, (0,), params["order"])
    return [y.astype(x.dtype), y][: None if save else 1]


norm_by_slices = _by_slices(forward=_norm_forward)


def variance_by_slices(root):
    def forward(run, over, x, /, *, save, divisor, **params):
        count = math.prod(x.shape[i] for i in params["axes"])
        y, mean, *_ = run["forward"](wide(x), save=True, divisor=float(count), **params)
        variance = jnp.square(y) if root else y
        variances, means = (a for a in lax.all_gather(jnp.stack([variance, mean]), over, axis=1))
        squares, mean = combined_variance(variances, means, count)
        y = squares / divisor if divisor > 0 else jnp.full_like(squares, math.nan)
        y = jnp.sqrt(y) if root else y
        return [y.astype(x.dtype), mean, *([y] if root else [])][: None if save else 1]

    return _by_slices(forward=forward)


def count_by_slices(what):
    def forward(run, over, x, /, **params):
        (y,) = run["forward"](x, **params)
        if what == "count":
            return [lax.psum(y, over)]
        return [extreme(y.astype(jnp.int32), over, what == "any").astype(bool)]

    return _by_slices(forward=forward)
