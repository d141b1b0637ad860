"""Pooling of images, and of the same elements as sequences and as volumes."""

import jax.numpy as jnp
import numpy as np
from jax import lax

import baracuda_jax

from ..benchmark import DTYPES, Benchmark, normal

SHAPES = {"tiny": (2, 4, 28, 28), "small": (8, 32, 56, 56), "large": (32, 64, 112, 112)}
X = 0


def plain_lp_pool(x):
    """p = 3, window 3, stride 2."""
    total = lax.reduce_window(jnp.abs(x) ** 3, np.zeros((), x.dtype), lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    return total ** (1 / 3)


def images(shape, dtype):
    return Benchmark(
        "lp_pool2d", f"{list(shape)}, p=3, window 3, stride 2", dtype, normal(*shape),
        lambda x, implementation: baracuda_jax.lp_pool2d(x, 3, 3, 2, implementation=implementation), plain_lp_pool,
        lambda torch, x: torch.nn.functional.lp_pool2d(x, 3.0, 3, 2), needs=(X, "y"),
    )  # fmt: skip


def lines_or_volumes(rank, window, images, dtype):
    batch, channels, height, width = images
    shape = {1: (batch, channels, height * width), 3: (batch, channels // 8, 8, height, width)}[rank]
    op = f"lp_pool{rank}d"
    return Benchmark(
        op, f"{list(shape)}, p=2, window {window}, stride 2", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, op)(x, 2, window, 2, implementation=implementation),
        torch=lambda torch, x: getattr(torch.nn.functional, op)(x, 2.0, window, 2), needs=(X, "y"),
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        yield lines_or_volumes(1, 4, SHAPES[size], dtype)
        yield images(SHAPES[size], dtype)
        yield lines_or_volumes(3, 2, SHAPES[size], dtype)
