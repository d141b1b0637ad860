"""Elementwise ops on matrices."""

import jax
import jax.numpy as jnp
from jax import lax

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, Benchmark, normal

X, SLOPES = 0, 1

# op: its parameters, plain JAX, PyTorch
UNARY = {
    "leaky_relu": ((0.1,), lambda x: jax.nn.leaky_relu(x, 0.1), lambda t, x: t.nn.functional.leaky_relu(x, 0.1)),
    "elu": ((1.0,), lambda x: jax.nn.elu(x, 1.0), lambda t, x: t.nn.functional.elu(x, 1.0)),
    "threshold": (
        (0.1, 0.5),
        lambda x: jnp.where(x > 0.1, x, 0.5),
        lambda t, x: t.nn.functional.threshold(x, 0.1, 0.5),
    ),
    "hardtanh": ((), lambda x: jnp.clip(x, -1, 1), lambda t, x: t.nn.functional.hardtanh(x)),
    "softshrink": (
        (0.5,),
        lambda x: jnp.where(x > 0.5, x - 0.5, jnp.where(x < -0.5, x + 0.5, 0)),
        lambda t, x: t.nn.functional.softshrink(x, 0.5),
    ),
    "hardshrink": (
        (0.5,),
        lambda x: jnp.where(jnp.abs(x) > 0.5, x, 0),
        lambda t, x: t.nn.functional.hardshrink(x, 0.5),
    ),
    "powi": ((3,), lambda x: lax.integer_pow(x, 3), lambda t, x: t.pow(x, 3)),
    "affine": ((2.0, 1.0), lambda x: 2 * x + 1, lambda t, x: 2 * x + 1),
    "clamp": ((-1.0, 1.0), lambda x: jnp.clip(x, -1, 1), lambda t, x: t.clamp(x, -1, 1)),
}


def unary(op, shape, dtype):
    parameters, plain, torch = UNARY[op]
    return Benchmark(
        op, f"{list(shape)}", dtype, normal(*shape),
        lambda x, prefer: getattr(baracuda_jax, op)(x, *parameters, prefer=prefer), plain, torch,
        needs=() if op == "affine" else (X,),
    )  # fmt: skip


def lerp(shape, dtype):
    return Benchmark(
        "lerp", f"{list(shape)}, one weight", dtype,
        lambda draws: tuple(draws.normal(shape) for _ in range(2)),
        lambda a, b, prefer: baracuda_jax.lerp(a, b, 0.3, prefer=prefer),
        lambda a, b: a + jnp.asarray(0.3, a.dtype) * (b - a),
        lambda torch, a, b: torch.lerp(a, b, 0.3), moving=2,
    )  # fmt: skip


def prelu(matrix, dtype):
    rows, channels = matrix
    shape = rows, channels // 64, 64
    return Benchmark(
        "prelu", f"{list(shape)}, a slope for each channel", dtype,
        lambda draws: (draws.normal(shape), draws.uniform(shape[1:2])),
        lambda x, w, prefer: baracuda_jax.prelu(x, w, prefer=prefer),
        lambda x, w: jnp.where(x > 0, x, w[:, None] * x),
        lambda torch, x, w: torch.nn.functional.prelu(x, w), moving=2, needs=(X, SLOPES),
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        yield from (unary(op, MATRICES[size], dtype) for op in UNARY)
        yield lerp(MATRICES[size], dtype)
        yield prelu(MATRICES[size], dtype)
