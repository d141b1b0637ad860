"""The extreme value of the rows that entries name: the lowest entry that has it takes the gradient."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from .._core import checks
from .._core.body import Body
from .._core.case import Case
from .._core.extreme import extreme, same
from .._core.take_along import take_along
from .._core.wide import wide
from ..segment._family import declare_with_index
from ..segment._kernels import flat, index_dtype, unflat
from ..segment._partition import arg_here, arg_of_all, first_arg
from ..segment._references import broadcast, column, per_batch, take
from ._family import FAMILY, by_receiver, by_sender, draws
from ._kernels import by_segment, rows
from ._partition import added, apart, by_edges_or_rows, on_rows
from ._references import add_up, receivers_of


def _entry_of(extremum, x, senders, receivers, num_segments):
    """[S, ...]: the first entry that has the extreme value, their number where there is none."""
    receivers = receivers_of(senders, receivers, x.shape[0], num_segments)
    messages = take(x, senders, axis=0)
    best = extremum(wide(messages), receivers, num_segments).astype(x.dtype)
    has_it = same(messages, take(best, receivers, axis=0))
    number = jnp.arange(senders.shape[0], dtype=index_dtype(senders.shape[0]))
    number = jnp.where(has_it, column(number, messages), senders.shape[0])
    return jnp.minimum(jax.ops.segment_min(number, receivers, num_segments), senders.shape[0])


def _at(x, senders, arg, axis):
    """x where the entry `arg` of each element says, 0 where that is none."""

    def one(x, senders, arg):
        sources = jnp.append(rows(senders, x.shape[0]), rows(jnp.full(1, -1), 0))
        source = sources[jnp.minimum(arg, senders.shape[0])]
        inside = source < x.shape[0]
        if not x.shape[0]:
            return jnp.zeros(arg.shape, x.dtype)
        return jnp.where(inside, jnp.take_along_axis(x, jnp.where(inside, source, 0).astype(jnp.int32), 0), 0)

    return per_batch(one, axis)(x, broadcast(senders, x.shape[:axis]), arg)


def _first_of_edges(has_it, arg, entries, axes):
    """The first entry of those of all shards, and what stands for none."""
    return first_arg(has_it, arg, entries, axes), entries * lax.axis_size(axes)


def _first_of_rows(has_it, arg, entries, axes):
    """The same, of shards that have all entries."""
    return lax.pmin(jnp.where(has_it, arg, entries), axes), entries


def _on_shards(is_max):
    def forward(first):
        def of_shard(run, axes, x, senders, receivers, *, save, axis, num_segments, **params):
            """A shard's segment that is empty has 0, which no other shard's value may lose against."""
            params |= dict(axis=axis, num_segments=num_segments)
            part, arg = run["forward"](x, senders, receivers, save=True, **params)
            entries = senders.shape[-1]
            nothing = -jnp.inf if is_max else jnp.inf
            if not jnp.issubdtype(x.dtype, jnp.floating):
                info = jnp.iinfo(x.dtype)
                nothing = info.min if is_max else info.max
            has_any = arg < entries
            y = extreme(jnp.where(has_any, part, nothing), axes, is_max)
            arg, none = first(has_any & same(part, y), arg, entries, axes)
            y = jnp.where(arg < none, y, 0)
            return [y, arg][: None if save else 1]

        return of_shard

    def forward_of_even(run, axes, x, senders, receivers, *, save, **params):
        """Segments are whole, and their entries are counted among those of all shards."""
        y, *args = run["forward"](x, senders, receivers, save=save, **params)
        return [y, *(arg_of_all(arg, senders.shape[-1], axes) for arg in args)]

    def of_edges(fun):
        return lambda run, axes, senders, receivers, arg, *operands, **params: fun(
            run, axes, senders, receivers, arg_here(arg, senders.shape[-1], axes), *operands, **params
        )

    return by_edges_or_rows(
        on_rows(forward=forward(_first_of_rows), tangent=added("tangent"), backward=apart("backward")),
        dict(forward=forward_of_even, tangent=of_edges(apart("tangent")), backward=of_edges(added("backward"))),
        forward=forward(_first_of_edges), tangent=of_edges(added("tangent")), backward=of_edges(added("backward")),
    )  # fmt: skip


def declare_extremum(name, public):
    kind = name.removeprefix("aggregate_")
    extremum = {"max": jax.ops.segment_max, "min": jax.ops.segment_min}[kind]

    def reference(x, senders, receivers, *, axis, num_segments, **_):
        fun = lambda x, s, r: _entry_of(extremum, x, s, r, num_segments)
        batch = x.shape[:axis]
        arg = per_batch(fun, axis)(lax.stop_gradient(x), broadcast(senders, batch), broadcast(receivers, batch))
        return _at(x, senders, arg, axis), arg

    def native(x, senders, receivers, *, save, axis, num_segments, sorted, index, length=0):
        # Where an entry may name no row, only the second result tells a segment of such entries from others.
        out = [x.dtype, index_dtype(senders.shape[-1])][: 2 if save else 1]
        shape = dict(axis=axis, num_segments=num_segments, sorted=sorted, index=by_receiver(index), length=length)
        return by_segment(f"segment_{kind}", x, senders, receivers, out, empty_bits=0, **shape)

    def tangent_native(senders, receivers, arg, t, *, axis, **_):
        x = flat(t, axis)
        sources = broadcast(rows(senders, t.shape[axis]), x.shape[:axis])
        # An index past the end takes 0: with 1 added before and taken after, an element without entry has no row.
        wanted = flat(arg, axis)
        every = wanted.reshape(*wanted.shape[:axis], math.prod(wanted.shape[axis:]), 1)
        of_entry = take_along(every, sources[..., None] + 1) - 1
        return (unflat(take_along(of_entry.reshape(wanted.shape), x), t, axis),)

    def backward_reference(senders, receivers, arg, dy, *, axis, num_rows, num_segments, **_):
        given, wanted = take(dy, receivers, axis=axis), take(arg + 1, receivers, axis=axis)
        number = jnp.arange(1, senders.shape[-1] + 1, dtype=arg.dtype)
        number = number.reshape((1,) * axis + (-1,) + (1,) * (dy.ndim - axis - 1))
        back = receivers_of(receivers, senders, num_segments, num_rows)
        each = jnp.where(wanted == number, wide(given), 0)
        return (add_up(each, back, axis=axis, num_segments=num_rows).astype(dy.dtype),)

    def backward_native(senders, receivers, arg, dy, *, axis, num_rows, index, length=0, **_):
        shape = dict(axis=axis, num_segments=num_rows, sorted=False, index=by_sender(index), repeats=length)
        more = [(flat(arg, axis), "...nd")]
        return tuple(by_segment("segment_sum_of_arg", dy, receivers, senders, [dy.dtype], more=more, **shape))

    def with_rows(fun):
        return lambda *arrays, num_rows, **params: fun(*arrays, **params)

    return declare_with_index(
        name,
        **FAMILY,
        public=public,
        dtypes=checks.NUMBERS,
        cases=(
            Case("edges", draws(11, (6,), 41, 11), dict(reduce=kind)),
            Case("out of range", draws(7, (3, 2), 30, 9, outside=2), dict(num_segments=9, reduce=kind)),
            Case(
                "sorted",
                draws(9, (8,), 28, 6, is_sorted=True, outside=1),
                dict(num_segments=6, indices_are_sorted=True, reduce=kind),
            ),
            Case("index", draws(9, (4,), 31, 7, outside=1, is_indexed=True), dict(reduce=kind)),
        ),
        operands=("x", "senders", "receivers"),
        results=("y", "arg"),
        differentiable=("x",),
        residuals=("senders", "receivers", "arg"),
        cut=_on_shards(kind == "max"),
        forward=Body(with_rows(reference), with_rows(native)),
        tangent=Body(
            lambda senders, receivers, arg, t, *, axis, **_: (_at(t, senders, arg, axis),), with_rows(tangent_native)
        ),
        backward=Body(backward_reference, backward_native),
        kernels={
            "forward": (f"segment_{kind}",),
            "tangent": ("take_along",),
            "backward": ("segment_sum_of_arg",),
        },
    )
