"""The mean of the rows that entries name, of those that name any."""

import jax.numpy as jnp
from jax import lax

from .._core import checks
from .._core.bits import to_bits
from .._core.body import Body
from .._core.case import Case
from .._core.wide import wide
from ..segment._family import declare_with_index
from ..segment._kernels import is_even
from ..segment._references import broadcast, count, take
from ._family import FAMILY, by_receiver, by_sender, draws
from ._kernels import by_segment, total
from ._partition import by_edges_or_rows, on_rows
from ._references import add_up, even_counts, receivers_of


def _counts(senders, receivers, num_rows, num_segments):
    return count(receivers_of(senders, receivers, num_rows, num_segments), num_segments)


def _like(counts, y, axis):
    """Counts [*batch, S], as what goes with y."""
    counts = broadcast(counts, y.shape[:axis]).astype(wide(y).dtype)
    return counts.reshape(*counts.shape, *(1,) * (y.ndim - axis - 1))


def _over(y, counts, axis):
    return wide(y) / jnp.maximum(_like(counts, y, axis), 1)


def _reference(x, senders, receivers, *, axis, num_rows, num_segments, **_):
    of_segment = receivers_of(senders, receivers, num_rows, num_segments)
    sums = add_up(wide(take(x, senders, axis=axis)), of_segment, axis=axis, num_segments=num_segments)
    return (_over(sums, count(of_segment, num_segments), axis).astype(x.dtype),)


def _native(x, senders, receivers, *, save=False, axis, num_rows, num_segments, sorted, index, length=0):
    segments = dict(num_segments=num_segments, sorted=sorted, index=by_receiver(index), length=length)
    empty = to_bits(0, x.dtype)
    return tuple(
        by_segment("segment_mean_of_sources", x, senders, receivers, [x.dtype], axis=axis, empty_bits=empty, **segments)
    )


def _backward_reference(senders, receivers, dy, *, axis, num_rows, num_segments, **_):
    each = take(_over(dy, _counts(senders, receivers, num_rows, num_segments), axis), receivers, axis=axis)
    rows = receivers_of(receivers, senders, num_segments, num_rows)
    return (add_up(each, rows, axis=axis, num_segments=num_rows).astype(dy.dtype),)


def _backward_native(senders, receivers, dy, *, axis, num_rows, num_segments, sorted, index, length=0):
    if is_even(senders.shape[-1], num_segments, length):
        counts = even_counts(senders, num_rows, length)
    else:
        batch = max((ids.shape[:-1] for ids in (senders, receivers)), key=len)
        segments = dict(num_segments=num_segments, sorted=sorted, index=by_receiver(index))
        ones = jnp.ones((*batch, num_rows), jnp.int32)
        counts = total(ones, senders, receivers, axis=len(batch), dtype=ones.dtype, **segments)
    each = _over(dy, counts, axis)
    rows = dict(num_segments=num_rows, sorted=False, index=by_sender(index), repeats=length)
    return (total(each, receivers, senders, axis=axis, dtype=each.dtype, **rows).astype(dy.dtype),)


def _mean_of_shards(run, axes, counts, x, senders, receivers, params):
    """The shards' means times their counts, over those of all."""
    here = _counts(senders, receivers, params["num_rows"], params["num_segments"])
    part = run(wide(x))
    total = lax.psum(part * _like(here, part, params["axis"]), axes)
    return [_over(total, counts, params["axis"]).astype(x.dtype)]


def _forward_of_shards(run, axes, counts, x, senders, receivers, *, save, **params):
    mean = lambda x: run["forward"](x, senders, receivers, save=save, **params)[0]
    return _mean_of_shards(mean, axes, counts, x, senders, receivers, params)


def _tangent_of_shards(run, axes, counts, senders, receivers, t, **params):
    mean = lambda t: run["tangent"](senders, receivers, t, **params)[0]
    return _mean_of_shards(mean, axes, counts, t, senders, receivers, params)


def _backward_of_shards(run, axes, counts, senders, receivers, dy, **params):
    """A shard divides by its own counts."""
    here = _counts(senders, receivers, params["num_rows"], params["num_segments"])
    each = _over(wide(dy) * _like(here, dy, params["axis"]), counts, params["axis"])
    return [run["backward"](senders, receivers, each, **params)[0].astype(dy.dtype)]


def _counts_of(kind, operands, params):
    """Of operands that are (x, senders, receivers) or begin with the ids."""
    senders, receivers = operands[1:3] if kind == "forward" else operands[:2]
    return _counts(senders, receivers, params["num_rows"], params["num_segments"])


def _on_edges(kind, of_shard):
    """`of_shard`, told the counts of all shards' edges."""

    def combined(run, axes, *operands, **params):
        counts = _counts_of(kind, operands, params)
        if kind != "backward":
            return of_shard(run, axes, lax.psum(counts, axes), *operands, **params)
        *ids, dy = operands
        (dx,) = of_shard(run, axes, lax.psum(counts.astype(wide(dy).dtype), axes), *ids, wide(dy), **params)
        return [lax.psum(dx, axes).astype(dy.dtype)]

    return combined


def _on_rows(kind, of_shard):
    """`of_shard`, told the counts of all edges, which every shard has."""

    def combined(run, axes, *operands, **params):
        counts = _counts_of(kind, operands, params)
        told = lambda run, axes, *operands, **params: of_shard(run, axes, counts, *operands, **params)
        return on_rows(**{kind: told})[kind](run, axes, *operands, **params)

    return combined


_SHARDS = {"forward": _forward_of_shards, "tangent": _tangent_of_shards, "backward": _backward_of_shards}


def declare_mean(public):
    return declare_with_index(
        "aggregate_mean",
        **FAMILY,
        public=public,
        dtypes=checks.FLOATS,
        cases=(
            Case("edges", draws(11, (6,), 41, 11), dict(reduce="mean")),
            Case("out of range", draws(7, (3, 2), 30, 9, outside=2), dict(num_segments=9, reduce="mean")),
            Case(
                "sorted",
                draws(9, (8,), 28, 6, is_sorted=True, outside=1),
                dict(num_segments=6, indices_are_sorted=True, reduce="mean"),
            ),
            Case("index", draws(9, (4,), 31, 7, outside=1, is_indexed=True), dict(reduce="mean")),
        ),
        operands=("x", "senders", "receivers"),
        differentiable=("x",),
        residuals=("senders", "receivers"),
        linear=lambda params: params,
        cut=by_edges_or_rows(
            {kind: _on_rows(kind, fun) for kind, fun in _SHARDS.items()},
            **{kind: _on_edges(kind, fun) for kind, fun in _SHARDS.items()},
        ),
        forward=Body(_reference, _native),
        backward=Body(_backward_reference, _backward_native),
        kernels={"forward": ("segment_mean_of_sources",), "backward": ("segment_sum",)},
    )
