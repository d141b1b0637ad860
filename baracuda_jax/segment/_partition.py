"""Segment ops on shards: features are apart from each other; shards of rows give parts of each segment."""

import jax.numpy as jnp
from jax import lax

from .._core.bits import from_bits, from_bytes, highest, lowest, to_bits
from .._core.extreme import extreme, same
from .._core.partition import Partition
from .._core.wide import wide, wide_dtype, with_rest
from .._core.within import within
from ._family import INDEX
from ._kernels import index_dtype
from ._references import broadcast, column, count, per_batch

WHOLE = frozenset({"s", "index0", "index1"})
_BY_ROW = ("data", "segment_ids", "rows", "weights")


def _labels(names, types, params):
    """[*batch, n, *features], with segments for rows where an array is by segment. The ids, and what is counted by them,
    have no features."""

    def of(name, rank):
        if name.startswith("index"):
            return (*(f"batch{i}" for i in range(rank - 1)), name)
        lead = rank - 1 if name in ("segment_ids", "counts") else params["axis"]
        rows = "n" if name in _BY_ROW else "s"
        return (*(f"batch{i}" for i in range(lead)), rows, *(f"feature{i}" for i in range(rank - lead - 1)))

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def by_rows(**combine):
    return Partition(_labels, WHOLE, {"n": combine}, {"n": INDEX}, plain=True)


def _filled(y, ids, axes, *, axis, num_segments, empty_bits, **_):
    """y with the empty value where no shard has rows."""
    rows = lax.psum(count(ids, num_segments), axes)
    return _where_empty(rows == 0, y, axis, empty_bits)


def _where_empty(empty, y, axis, bits):
    fill = lambda y, empty: jnp.where(column(empty, y), from_bits(bits, y.dtype), y)
    return per_batch(fill, axis)(y, broadcast(empty, y.shape[:axis]))


# ---------------------------------------------------------------------------------------------------------------------
# The sum and the mean


def _sum_forward(run, axes, data, ids, **params):
    y = lax.psum(run["forward"](data, ids, **{**params, "empty_bits": 0})[0], axes)
    return [_filled(y, ids, axes, **params) if params["empty_bits"] else y]


def _mean_forward(run, axes, data, ids, *, save, **params):
    """The parts are divided by the counts of all shards, as a tangent is."""
    counts = lax.psum(run["forward"](data, ids, save=True, **params)[1], axes)
    y = lax.psum(run["tangent"](ids, counts, data, **params)[0], axes)
    if params["empty_bits"]:
        y = _where_empty(counts == 0, y, params["axis"], params["empty_bits"])
    return [y, counts] if save else [y]


sum_by_rows = by_rows(forward=_sum_forward)
mean_by_rows = by_rows(forward=_mean_forward)

# ---------------------------------------------------------------------------------------------------------------------
# Rows that are taken, of which a shard has some


def rows_here(ids, count, axes):
    """The ids of this shard's `count` rows, which are sorted where those of all are."""
    ids = ids if jnp.iinfo(ids.dtype).bits >= 32 else ids.astype(jnp.int32)
    shard, row = ids // count, (ids % count).astype(jnp.int32)
    here = lax.axis_index(axes).astype(ids.dtype)
    return jnp.where(shard == here, row, jnp.where(shard < here, -1, count))


def _take_forward(run, axes, x, ids, *, axis, fill, **params):
    """What other shards have is 0 here."""
    count = x.shape[axis]
    params["num_segments"] = count
    (y,) = run["forward"](x, rows_here(ids, count, axes), axis=axis, fill=bytes(len(fill)), **params)
    y = lax.psum(y.astype(jnp.int8), axes).astype(bool) if y.dtype == bool else lax.psum(y, axes)
    filled = per_batch(lambda y, known: jnp.where(column(known, y), y, from_bytes(fill, y.dtype)), axis)
    return [filled(y, within(ids, count * lax.axis_size(axes)))]


def _take_tangent(run, axes, ids, t, *, axis, **params):
    count = t.shape[axis]
    params["num_segments"] = count
    return [lax.psum(run["tangent"](rows_here(ids, count, axes), t, axis=axis, **params)[0], axes)]


def _take_backward(run, axes, ids, dy, *, num_segments, **params):
    count = num_segments // lax.axis_size(axes)
    return run["backward"](rows_here(ids, count, axes), dy, **params, num_segments=count)


taken_by_rows = Partition(
    _labels,
    WHOLE - {"s"},
    {"s": {"forward": _take_forward, "tangent": _take_tangent, "backward": _take_backward}},
    {"n": INDEX, "s": INDEX},
    plain=True,
)

# ---------------------------------------------------------------------------------------------------------------------
# The logarithm of a sum of exponentials


def _log_sum_exp_forward(run, axes, data, ids, *, save, **params):
    """Of the shards' parts: the largest, and the logarithm of what they add up to."""
    nothing = to_bits(lowest(data.dtype), wide_dtype(data.dtype))
    part, rest = run["forward"](wide(data), ids, save=True, **{**params, "empty_bits": nothing})
    y, rest = log_sum_of_parts(part, rest, axes, data.dtype)
    is_default = params["empty_bits"] == to_bits(lowest(data.dtype), data.dtype)
    return [y if is_default else _filled(y, ids, axes, **params), rest][: None if save else 1]


def log_sum_of_parts(part, rest, axes, dtype):
    """The logarithm of all shards' sums of exponentials, and what rounding took from it."""
    most = extreme(part, axes, True)
    is_finite = jnp.isfinite(most)
    total = lax.psum(jnp.exp((part - jnp.where(is_finite, most, 0)) + rest), axes)
    return with_rest(most, jnp.where(is_finite, jnp.log(jnp.where(is_finite, total, 1)), 0), dtype)


log_sum_exp_by_rows = by_rows(forward=_log_sum_exp_forward)

# ---------------------------------------------------------------------------------------------------------------------
# The product: the parts are gathered, for there is no reduction that multiplies


def _prod_forward(run, axes, data, ids, *, save, **params):
    one = to_bits(1, data.dtype)
    parts = run["forward"](data, ids, save=save, **{**params, "empty_bits": one})
    multiply = lambda x: jnp.prod(lax.all_gather(wide(x), axes), 0).astype(x.dtype)
    y = multiply(parts[0])
    y = y if params["empty_bits"] == one else _filled(y, ids, axes, **params)
    if not save:
        return [y]
    zeros = lax.psum(parts[2].astype(jnp.int32), axes)
    return [y, multiply(parts[1]), jnp.minimum(zeros, 2).astype(parts[2].dtype)]


prod_by_rows = by_rows(forward=_prod_forward)

# ---------------------------------------------------------------------------------------------------------------------
# The extrema


def _first_row(rows, axes, dtype):
    """The number of this shard's first row."""
    return lax.axis_index(axes).astype(dtype) * rows


def arg_here(arg, rows, axes):
    """The row of this shard, `rows` where another shard has it."""
    first = _first_row(rows, axes, arg.dtype)
    return jnp.where((arg >= first) & (arg < first + rows), arg - first, rows)


def first_arg(has_it, arg, rows, axes):
    """Of the shards' rows `arg`, where they have the value of all, the first; the number of all rows where none has."""
    return lax.pmin(jnp.where(has_it, arg_of_all(arg, rows, axes), rows * lax.axis_size(axes)), axes)


def arg_of_all(arg, rows, axes):
    """The row among those of all shards, their number where there is none."""
    total = rows * lax.axis_size(axes)
    dtype = index_dtype(total)
    return jnp.where(arg < rows, arg.astype(dtype) + _first_row(rows, axes, dtype), total)


def _all_ties(has_it, ties, rows, axes):
    return lax.psum(jnp.where(has_it, ties, 0), axes)


def _extreme_forward(is_max, combine):
    """`combine(has_it, residual, rows, axes)` makes the residual of all from the shard's, where the shard has the value of
    all."""

    def forward(run, axes, data, ids, *, save, **params):
        identity = to_bits(lowest(data.dtype) if is_max else highest(data.dtype), data.dtype)
        part, *own = run["forward"](data, ids, save=save, **{**params, "empty_bits": identity})
        y = extreme(part, axes, is_max)
        residual = [combine(same(part, y), *own, data.shape[params["axis"]], axes)] if save else []
        return [y if params["empty_bits"] == identity else _filled(y, ids, axes, **params), *residual]

    return forward


def extremum_by_rows(name):
    def tangent(run, axes, ids, arg, t, **params):
        here = arg_here(arg, t.shape[params["axis"]], axes)
        return [lax.psum(run["tangent"](ids, here, t, **params)[0], axes)]

    def backward(run, axes, ids, arg, dy, **params):
        return run["backward"](ids, arg_here(arg, ids.shape[-1], axes), dy, **params)

    forward = _extreme_forward(name == "segment_max", first_arg)
    return by_rows(forward=forward, tangent=tangent, backward=backward)


def split_by_rows(name):
    return by_rows(forward=_extreme_forward(name == "segment_max", _all_ties))
