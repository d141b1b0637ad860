"""Scans on shards: all dimensions but the one that is scanned are apart from each other. Sums and linear recurrences are
computed on each shard of that one too: the totals of shards are gathered, and what is before a shard is added to it. For
other scans it is gathered."""

import functools

import jax.numpy as jnp
from jax import lax

from .._core.partition import Partition
from .._core.wide import ranged_dtype, wide
from ._references import before, last, linear_scan


def _labels(names, types, params, seen="n"):
    """[*batch, n, *features]; `seen` is the scanned axis of all but x."""

    def of(name, rank):
        axis, n = params["axis"], "n" if name == "x" else seen
        return (*(f"batch{i}" for i in range(axis)), n, *(f"feature{i}" for i in range(rank - axis - 1)))

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _first(x, *, axis, reverse, **_):
    return last(x, axis=axis, reverse=not reverse)


def _add_to_first(x, more, *, axis, reverse, **_):
    """x with `more`, one element along the axis, added to the first."""
    rest = lax.slice_in_dim(x, 0, -1, axis=axis) if reverse else lax.slice_in_dim(x, 1, None, axis=axis)
    end = _first(x, axis=axis, reverse=reverse) + more
    return lax.concatenate([rest, end] if reverse else [end, rest], axis)


def _here(x, axes):
    """This shard's of x [shards, ...]."""
    return lax.dynamic_index_in_dim(x, lax.axis_index(axes), 0, keepdims=False)


def _shard_before(x, axes, reverse):
    """Of x [shards, ...], what the shard before this one has, in the direction of the scan; 0 for the first."""
    return _here(before(x, 0, axis=0, reverse=reverse), axes)


# ---------------------------------------------------------------------------------------------------------------------
# The sum


def _sum_of(kind):
    def run_on_shards(run, axes, x, **params):
        x_wide = wide(x)
        y = run[kind](x_wide, **params)[0]
        turned = {**params, "reverse": params["reverse"] != (kind == "backward")}
        total = last(y, **turned) + last(x_wide, **turned) if params["exclusive"] else last(y, **turned)
        totals = lax.all_gather(total, axes)
        position = lax.broadcasted_iota(jnp.int32, totals.shape, 0)
        here = lax.axis_index(axes)
        is_before = position > here if turned["reverse"] else position < here
        return [(y + jnp.where(is_before, totals, 0).sum(0, dtype=y.dtype)).astype(x.dtype)]

    return run_on_shards


sum_by_totals = Partition(
    _labels,
    combine={"n": {kind: _sum_of(kind) for kind in ("forward", "tangent", "backward")}},
    plain=True,
)

# ---------------------------------------------------------------------------------------------------------------------
# The linear recurrence. A shard is one step of it: the product of its factors, and its last state.


def _state_before(factors, states, axes, reverse):
    """The total of all shards before this one."""
    return _shard_before(linear_scan(factors, states, axis=0, reverse=reverse), axes, reverse)


def _gather(axes, *elements):
    """Elements of all shards, by one collective."""
    return lax.all_gather(jnp.stack(elements), axes, axis=1)


def _product(a, *, axis, **_):
    return jnp.prod(a, axis, keepdims=True)


def _states(run, a, b, axes, params):
    """Those of wide factors and what is added, on this shard."""
    scan = lambda b: run["forward"](a, b, save=False, **params)[0]
    steps = _gather(axes, _product(a, **params), last(scan(b), **params))
    state = _state_before(*steps, axes, params["reverse"])
    return scan(_add_to_first(b, _first(a, **params) * state, **params))


def _linear_forward(run, axes, a, b, *, save, **params):
    h = _states(run, wide(a), wide(b), axes, params)
    return [h.astype(b.dtype), h.astype(ranged_dtype(b.dtype))][: None if save else 1]


def _linear_tangent(run, axes, a, h, da, db, **params):
    h, da = wide(h), wide(da)
    h_before = _shard_before(*_gather(axes, last(h, **params)), axes, params["reverse"])
    added = wide(db) + da * before(h, 0, **params)
    added = _add_to_first(added, _first(da, **params) * h_before, **params)
    return [_states(run, wide(a), added, axes, params).astype(db.dtype)]


def _linear_backward(run, axes, a, h, dh, **params):
    """The recurrence in the other direction, of a shard's s_first = s + (product of the factors after the first) s_after,
    where s_after, of the next shard, is its a_first s_first."""
    dtype, a, h, dh = a.dtype, wide(a), wide(h), wide(dh)
    turned = {**params, "reverse": not params["reverse"]}
    first = lambda x: _first(x, **params)
    pull = lambda dh: run["backward"](a, h, dh, **params)
    factors, steps, h_ends = _gather(axes, _product(a, **params), first(a) * first(pull(dh)[1]), last(h, **params))
    da, s = pull(_add_to_first(dh, _state_before(factors, steps, axes, turned["reverse"]), **turned))
    da = _add_to_first(da, first(s) * _shard_before(h_ends, axes, params["reverse"]), **params)
    return [da.astype(dtype), s.astype(dtype)]


linear_by_totals = Partition(
    _labels,
    combine={"n": {"forward": _linear_forward, "tangent": _linear_tangent, "backward": _linear_backward}},
    plain=True,
)

# ---------------------------------------------------------------------------------------------------------------------
# The others

# Two labels: else the compiler would cut the results too, and gather them again for the derivatives.
whole_axis = Partition(functools.partial(_labels, seen="m"), whole=frozenset("nm"), plain=True)
