"""Steps of optimizers on a table of which each row is a segment: the sum of what a row has is its gradient, and the kernel
that forms it makes the step, in the table's own memory where nobody reads the table after. Rows without any stay as they
are. `axis` is the number of batch dimensions."""

import jax
import jax.numpy as jnp

from .._core import checks
from .._core.body import Body
from .._core.op import declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.wide import wide
from ..segment._kernels import flat, reduce
from ..segment._references import broadcast, column, count, per_batch, reduce_by
from ._rows import UPDATE


def is_dense(ids, weight):
    """Whether enough rows of a table have something that all of them are looked at. XLA would copy one that kernels get in
    another shape."""
    rows = weight.shape[0]
    return weight.ndim == 2 and all(isinstance(size, int) for size in (ids.size, rows)) and rows <= 8 * ids.size


def _labels(names, types, params):
    """[*batch, rows, *features]; ids have no features, and a rate has batches alone."""

    def of(name, rank):
        batches = rank - {"x": 1, "learning_rate": 0}.get(name, rank - params["axis"])
        rows = {"x": ("n",), "dy": ("n",), "learning_rate": ()}.get(name, ("s",))
        return (
            *(f"batch{i}" for i in range(batches)), *rows, *(f"feature{i}" for i in range(rank - batches - len(rows)))
        )  # fmt: skip

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _reference(step):
    def reference(weight, *arrays, axis, **params):
        *states, ids, dy, rate = arrays
        size = weight.shape[axis]
        add = lambda x, i: jax.ops.segment_sum(x, i, size)
        gradient = reduce_by(add, 0, wide(dy), ids, axis=axis, num_segments=size, empty_bits=0)
        has_any = broadcast(count(ids, size) > 0, weight.shape[:axis])
        where = per_batch(lambda has_any, new, old: jnp.where(column(has_any, new), new, old), axis)
        rate = rate.reshape(*rate.shape, *(1,) * (weight.ndim - axis)).astype(gradient.dtype)
        tables = (weight, *states)
        new = step(gradient, rate, *map(wide, tables), **params)
        return tuple(where(has_any, a.astype(b.dtype), b) for a, b in zip(new, tables, strict=True))

    return reference


def _native(target):
    def native(weight, *arrays, axis, save=False, **params):
        *states, ids, dy, rate = arrays
        tables = [flat(a, axis) for a in (weight, *states)]
        more = [*((a, "...sd") for a in tables), (rate.astype(wide(weight).dtype), "...")]
        how = dict(axis=axis, num_segments=weight.shape[axis], more=more, **params)
        aliases = tuple((3 + i, 1 + i) for i in range(len(tables)))  # after dy and the index, and after the workspace
        return tuple(reduce(target, dy, ids, [a.dtype for a in tables], aliases=aliases, **how))

    return native


def _sgd(gradient, rate, weight):
    return (weight - rate * gradient,)


def _adagrad(gradient, rate, weight, squares, *, eps):
    squares = squares + gradient * gradient
    root = jnp.sqrt(squares) + jnp.asarray(eps, gradient.dtype)
    return weight - jnp.where(gradient == 0, 0, rate * gradient / root), squares


def declare_step(public, cases, states=()):
    """Of "embedding_sgd_step", or of "embedding_adagrad_step" with its state."""
    step, target = {
        "embedding_sgd_step": (_sgd, "segment_sgd_step"),
        "embedding_adagrad_step": (_adagrad, "segment_adagrad_step"),
    }[public.__name__]
    operands = ("weight", *states, "x", "dy", "learning_rate")
    results = ("y", *(f"new_{name}" for name in states))
    return declare(
        public.__name__,
        family="embedding",
        category=OpCategory.EMBEDDING,
        public=public,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=operands,
        results=results,
        outputs=results,
        aliases=dict(zip(("weight", *states), results, strict=True)),
        constant=dict.fromkeys(operands, UPDATE),
        shared={"x": 1},
        batched=lambda params: {**params, "axis": params["axis"] + 1},
        cut=Partition(_labels, frozenset("ns")),
        forward=Body(_reference(step), _native(target)),
        kernels={"forward": (target,)},
        sometimes=("segment_index", "sort", "run_starts", "segment_sum"),  # the latter of few ids of a large table
        also=("sort", "unique_consecutive", "aggregate_sum"),
    )
