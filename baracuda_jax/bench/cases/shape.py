"""Copies of a matrix side by side."""

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark, normal

SHAPES = {"tiny": (64, 64), "small": (1024, 256), "large": (16384, 1024)}


def repeat(shape, dtype):
    return Benchmark(
        "repeat", f"{list(shape)}, 2 x 2 copies", dtype, normal(*shape),
        lambda x, prefer: baracuda_jax.repeat(x, (2, 2), prefer=prefer), lambda x: jnp.tile(x, (2, 2)),
        lambda torch, x: x.repeat(2, 2),
    )  # fmt: skip


def benchmarks(size):
    return [repeat(SHAPES[size], dtype) for dtype in DTYPES]
