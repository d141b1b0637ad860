"""Normalization of the rows of matrices."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, Benchmark


def layers(rows, columns, dtype):
    def plain(x, weight, bias):
        return jax.nn.standardize(x) * weight + bias

    return Benchmark(
        "layer_norm", f"[{rows}, {columns}]", dtype,
        lambda draws: (draws.normal((rows, columns)), draws.normal((columns,)), jnp.zeros((columns,), jnp.float32)),
        lambda *arrays, implementation: baracuda_jax.layer_norm(*arrays, implementation=implementation),
        plain,
        lambda torch, x, weight, bias: torch.nn.functional.layer_norm(x, (columns,), weight, bias),
        moving=3, needs=(0, 1),
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        yield layers(*MATRICES[size], dtype)
