"""Positions of nonzero elements, and distinct values: those of all elements, and of elements that are sorted."""

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import PASSES, Benchmark

ELEMENTS = {"tiny": (2**15, 2**15), "small": (2**20, 2**18), "large": (2**26, 2**24)}  # of positions, of values
VALUES = 4096
FORWARD = PASSES[:1]


def positions(elements):
    """About half of them are zero."""
    size = elements // 2

    def torch(torch, a):
        return torch.nonzero(a)

    return Benchmark(
        "nonzero", f"[{elements}], half of them", "float32",
        lambda draws: (jnp.maximum(draws.normal((elements,)), 0),),
        lambda a, implementation: baracuda_jax.nonzero(a, size=size, implementation=implementation)[0],
        lambda a: jnp.nonzero(a, size=size)[0],
        torch, passes=FORWARD,
    )  # fmt: skip


def distinct(elements, dtype):
    return Benchmark(
        "unique", f"[{elements}] of {VALUES} values", dtype,
        lambda draws: (draws.integers((elements,), 0, VALUES, jnp.dtype(dtype)),),
        lambda x, implementation: baracuda_jax.unique(x, size=VALUES, implementation=implementation),
        lambda x: jnp.unique(x, size=VALUES),
        lambda torch, x: torch.unique(x),
        passes=FORWARD,
    )  # fmt: skip


def runs(elements, dtype):
    return Benchmark(
        "unique_consecutive", f"[{elements}] in {VALUES} runs", dtype,
        lambda draws: (jnp.sort(draws.integers((elements,), 0, VALUES, jnp.dtype(dtype))),),
        lambda x, implementation: baracuda_jax.unique_consecutive(x, size=VALUES, implementation=implementation),
        None,
        lambda torch, x: torch.unique_consecutive(x),
        passes=FORWARD,
    )  # fmt: skip


def benchmarks(size):
    of_positions, of_values = ELEMENTS[size]
    yield positions(of_positions)
    for dtype in ("float32", "int32"):
        yield distinct(of_values, dtype)
        yield runs(of_positions, dtype)
