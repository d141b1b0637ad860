"""Searches in a sorted sequence, and counts of ids and of values."""

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark

ELEMENTS = {"tiny": 2**16, "small": 2**20, "large": 2**26}
IDS, BINS, SEQUENCE = 4096, 256, 2**16
RANGE = (-4, 4)  # edges that bfloat16 holds
FORWARD = PASSES[:1]


def searches(elements, dtype):
    def torch(torch, sequence, values):
        return torch.searchsorted(sequence, values, out_int32=True)

    return Benchmark(
        "searchsorted", f"[{elements}] in [{SEQUENCE}]", dtype,
        lambda draws: (jnp.sort(draws.normal((SEQUENCE,))), draws.normal((elements,))),
        lambda sequence, values, implementation: baracuda_jax.searchsorted(sequence, values, implementation=implementation),
        jnp.searchsorted, torch, passes=FORWARD,
    )  # fmt: skip


def ids(elements):
    return Benchmark(
        "bincount", f"[{elements}] into {IDS}", "int32",
        lambda draws: (draws.integers((elements,), 0, IDS),),
        lambda x, implementation: baracuda_jax.bincount(x, length=IDS, implementation=implementation),
        lambda x: jnp.bincount(x, length=IDS),
        lambda torch, x: torch.bincount(x, minlength=IDS),
        passes=FORWARD,
    )  # fmt: skip


def values(elements, dtype):
    return Benchmark(
        "histogram", f"[{elements}] into {BINS}", dtype,
        lambda draws: (draws.normal((elements,)),),
        lambda a, implementation: baracuda_jax.histogram(a, BINS, RANGE, implementation=implementation)[0],
        lambda a: jnp.histogram(a, BINS, RANGE)[0],
        (lambda torch, a: torch.histc(a, BINS, *RANGE)) if dtype == "float32" else None,
        passes=FORWARD,
    )  # fmt: skip


def benchmarks(size):
    elements = ELEMENTS[size]
    yield ids(elements)
    for dtype in DTYPES:
        yield values(elements, dtype)
        yield searches(elements, dtype)
