"""Casts of a matrix to 8-bit floats and back, the scales of many arrays, and a linear layer."""

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import MATRICES, Benchmark

SIDES = {"tiny": 64, "small": 512, "large": 4096}
LARGEST, SCALE = 448.0, 64.0


def _cast(shape):
    def plain(x):
        return jnp.clip(x * SCALE, -LARGEST, LARGEST).astype(jnp.float8_e4m3fn), jnp.abs(x).max()

    return Benchmark(
        "fp8_cast", str(list(shape)), "float32", lambda draws: (draws.normal(shape),),
        lambda x, implementation: baracuda_jax.fp8_cast(x, SCALE, implementation=implementation), plain,
        moving=1, passes=("forward",),
    )  # fmt: skip


def _dequant(shape):
    return Benchmark(
        "fp8_dequant", str(list(shape)), "float32",
        lambda draws: (draws.normal(shape).astype(jnp.float8_e4m3fn),),
        lambda q, implementation: baracuda_jax.fp8_dequant(q, SCALE, implementation=implementation),
        lambda q: q.astype(jnp.float32) / SCALE, moving=0, passes=("forward",),
    )  # fmt: skip


def _update(arrays, steps=1024):
    def plain(history, scale):
        amax = history.max(-1)
        return jnp.roll(history, -1, -1).at[..., 0].set(0), jnp.where(amax > 0, LARGEST / amax, scale)

    return Benchmark(
        "fp8_recipe_update", f"[{arrays}, {steps}]", "float32",
        lambda draws: (jnp.abs(draws.normal((arrays, steps))), jnp.ones(arrays, jnp.float32)),
        lambda *args, implementation: baracuda_jax.fp8_recipe_update(*args, implementation=implementation), plain,
        moving=0, passes=("forward",),
    )  # fmt: skip


def _linear(n):
    """Compared with the product of float32: rounding to 8 bits is most of the difference."""
    state = lambda: baracuda_jax.fp8_state(16)
    return Benchmark(
        "fp8_linear", f"[{n}, {n}] x [{n}, {n}]", "float32",
        lambda draws: (draws.normal((n, n)) * n**-0.5, draws.normal((n, n))),
        lambda x, kernel, implementation: baracuda_jax.fp8_linear(x, kernel, state(), implementation=implementation),
        jnp.matmul, moving=2, passes=("forward",), rough=1e5,
    )  # fmt: skip


def benchmarks(size):
    yield _cast(MATRICES[size])
    yield _dequant(MATRICES[size])
    yield _update(SIDES[size])
    yield _linear(SIDES[size])
