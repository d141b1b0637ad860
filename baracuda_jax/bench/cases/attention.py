"""Caches of keys and values: a token for each sequence of a batch."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark

# sequences, heads, length, d
CACHES = {"tiny": (2, 4, 32, 64), "small": (8, 8, 256, 64), "large": (32, 8, 8192, 128)}


def append(batch, heads, length, d, dtype):
    def plain(cache, new, position):
        write = lambda cache, new, at: jax.lax.dynamic_update_slice(cache, new, (0, at, 0))
        return jax.vmap(write)(cache, new, position)

    return Benchmark(
        "kv_cache_append", f"[{batch}, {heads}, {length}, {d}]", dtype,
        lambda draws: (
            draws.normal((batch, heads, length, d)), draws.normal((batch, heads, 1, d)),
            draws.integers((batch,), 0, length, jnp.int32),
        ),
        lambda *arrays, implementation: baracuda_jax.kv_cache_append(*arrays, implementation=implementation),
        plain,
        moving=2, needs=(2,), passes=PASSES[:1],
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        yield append(*CACHES[size], dtype)
