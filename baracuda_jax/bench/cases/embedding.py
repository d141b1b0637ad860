"""Rows of a table for ids that are drawn evenly or by Zipf's law; bags of them; and updates of the rows that a batch has."""

import functools
import itertools

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark
from .segment import even_ids, power_law

# Ids, rows of the table, features.
TABLES = {
    "tiny": ((600, 512, 16),),
    "small": ((8192, 10000, 64),),
    "large": ((65536, 100000, 64), (65536, 100000, 128), (65536, 100000, 256)),
}
# Entries, rows of the table, features; in bags of LENGTH.
BAGS = {"tiny": (1024, 512, 16), "small": (65536, 10000, 64), "large": (2**20, 100000, 64)}
LENGTH = 32
RATE, EPS = 1e-2, 1e-6


def embedded(ids, rows, features, dtype, ids_of=even_ids, **more):
    """The table and ids."""
    return Benchmark(
        "embedding", f"[{ids}] of [{rows}, {features}]", dtype,
        lambda draws: (draws.normal((rows, features)), ids_of(draws, ids, rows)),
        lambda weight, x, *, implementation: baracuda_jax.embedding(x, weight, implementation=implementation),
        lambda weight, x: jnp.take(weight, x, 0),
        lambda torch, weight, x: torch.nn.functional.embedding(x, weight),
        needs=(1,), rough=4.0, **more,
    )  # fmt: skip


def skewed(ids, rows, features, dtype):
    even = embedded(ids, rows, features, dtype)
    return embedded(
        ids, rows, features, dtype, power_law, variant="power law", even=even.case, passes=PASSES[1:]
    )  # fmt: skip


def _plain_bag(mode, weight, x, offsets):
    bags = offsets.shape[0]
    reduce = jax.ops.segment_max if mode == "max" else jax.ops.segment_sum
    y = reduce(weight[x], jnp.arange(x.shape[0]) // LENGTH, bags, indices_are_sorted=True)
    return y / LENGTH if mode == "mean" else y


def bags(mode, entries, rows, features, dtype):
    """The table, ids, and where each bag begins."""
    return Benchmark(
        f"embedding_bag_{mode}", f"[{entries}] of [{rows}, {features}], bags of {LENGTH}", dtype,
        lambda draws: (
            draws.normal((rows, features)), draws.integers((entries,), 0, rows),
            jnp.arange(0, entries, LENGTH, dtype=jnp.int32),
        ),
        lambda weight, x, offsets, *, implementation: baracuda_jax.embedding_bag(
            x, weight, offsets, mode=mode, implementation=implementation
        ),
        functools.partial(_plain_bag, mode),
        lambda torch, weight, x, offsets: torch.nn.functional.embedding_bag(x, weight, offsets, mode=mode),
        needs=(1, 2), rough=4.0,
        saved=(jax.ShapeDtypeStruct((entries // LENGTH, features), jnp.int32),) if mode == "max" else (),
    )  # fmt: skip


def bags_in_rows(mode, entries, rows, features, dtype):
    """The table and ids, with a bag in each row."""
    bags = entries // LENGTH
    return Benchmark(
        f"embedding_bag_{mode}", f"[{bags}, {LENGTH}] of [{rows}, {features}]", dtype,
        lambda draws: (draws.normal((rows, features)), draws.integers((bags, LENGTH), 0, rows)),
        lambda weight, x, *, implementation: baracuda_jax.embedding_bag(
            x, weight, mode=mode, implementation=implementation
        ),
        lambda weight, x: getattr(weight[x], mode)(1),
        lambda torch, weight, x: torch.nn.functional.embedding_bag(x, weight, mode=mode),
        needs=(1,), rough=4.0,
        saved=(jax.ShapeDtypeStruct((bags, features), jnp.int32),) if mode == "max" else (),
    )  # fmt: skip


def backward_rows(ids, rows, features, dtype):
    """What each id has, and the ids."""

    def plain(dy, x):
        size = min(ids, rows)
        _, inverse = jnp.unique(x, return_inverse=True, size=size)
        return jax.ops.segment_sum(dy, inverse, size)

    return Benchmark(
        "embedding_backward_rows", f"[{ids}] of [{rows}, {features}]", dtype,
        lambda draws: (draws.normal((ids, features)), draws.integers((ids,), 0, rows)),
        lambda dy, x, *, implementation: baracuda_jax.embedding_backward_rows(
            x, dy, rows, implementation=implementation
        )[1],
        plain, passes=PASSES[:1], rough=4.0,
    )  # fmt: skip


def sgd(ids, rows, features):
    return Benchmark(
        "embedding_sgd_step", f"[{ids}] of [{rows}, {features}]", "float32",
        lambda draws: (draws.normal((rows, features)), draws.normal((ids, features)), draws.integers((ids,), 0, rows)),
        lambda weight, dy, x, *, implementation: baracuda_jax.embedding_sgd_step(
            weight, x, dy, RATE, implementation=implementation
        ),
        lambda weight, dy, x: weight.at[x].add(-RATE * dy),
        lambda torch, weight, dy, x: torch.index_add(weight, 0, x, dy, alpha=-RATE),
        moving=2, passes=PASSES[:1], rough=4.0,
    )  # fmt: skip


def adagrad(ids, rows, features):
    def function(weight, roots, dy, x, *, implementation):
        return jnp.stack(
            baracuda_jax.embedding_adagrad_step(
                weight, roots * roots, x, dy, RATE, eps=EPS, implementation=implementation
            )
        )

    def dense(package, gradient, weight, roots):
        squares = roots * roots + gradient * gradient
        return package.stack([weight - RATE * gradient / (package.sqrt(squares) + EPS), squares])

    return Benchmark(
        "embedding_adagrad_step", f"[{ids}] of [{rows}, {features}]", "float32",
        lambda draws: (
            draws.normal((rows, features)), draws.normal((rows, features)), draws.normal((ids, features)),
            draws.integers((ids,), 0, rows),
        ),
        function,
        lambda weight, roots, dy, x: dense(jnp, jnp.zeros_like(weight).at[x].add(dy), weight, roots),
        lambda torch, weight, roots, dy, x: dense(
            torch, torch.index_add(torch.zeros_like(weight), 0, x, dy), weight, roots
        ),
        moving=3, passes=PASSES[:1], rough=4.0,
    )  # fmt: skip


def benchmarks(size):
    for shape, dtype in itertools.product(TABLES[size], DTYPES):
        yield embedded(*shape, dtype)
        yield skewed(*shape, dtype)
    for mode, dtype in itertools.product(("sum", "mean", "max"), DTYPES):
        yield bags(mode, *BAGS[size], dtype)
        yield bags_in_rows(mode, *BAGS[size], dtype)
    for dtype in DTYPES:
        yield backward_rows(*TABLES[size][0], dtype)
    yield sgd(*TABLES[size][0])
    yield adagrad(*TABLES[size][0])
