"""Softmax of the rows of matrices."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, Benchmark, along, normal

NAMES = ("softmax", "log_softmax")
LONG = {"tiny": (4, 5000), "small": (64, 32768), "large": (4096, 32768)}  # rows that XLA reads more than once
ODD = {"tiny": (3, 20001), "large": (4096, 50257)}  # long ones that are not aligned


def slices(name, shape, axis, dtype):
    return Benchmark(
        name, f"{list(shape)}{along(shape, axis)}", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, name)(x, axis, implementation=implementation),
        lambda x: getattr(jax.nn, name)(x, axis), lambda torch, x: getattr(torch.nn.functional, name)(x, axis),
        needs=("y",),
    )  # fmt: skip


def gumbel(shape, dtype):
    """One key: PyTorch's, of other numbers, is not compared."""

    def plain(x, key):
        noise = jax.random.gumbel(jax.random.wrap_key_data(key), x.shape, jnp.float32)
        return jax.nn.softmax(x.astype(jnp.float32) + noise).astype(x.dtype)

    return Benchmark(
        "gumbel_softmax", f"[{shape[0]}, {shape[1]}]", dtype,
        lambda draws: (draws.normal(shape), draws.integers((2,), 0, 2**31 - 1, jnp.uint32)),
        lambda x, key, implementation: baracuda_jax.gumbel_softmax(x, key, implementation=implementation),
        plain, needs=("y",),
    )  # fmt: skip


def _sparsemax(x):
    """As one writes it in JAX: with a sort."""
    z = jnp.sort(x - x.max(-1, keepdims=True), descending=True).astype(jnp.float32)
    total, rank = jnp.cumsum(z, -1), jnp.arange(1, x.shape[-1] + 1, dtype=z.dtype)
    count = (1 + rank * z > total).sum(-1, keepdims=True)
    t = (jnp.take_along_axis(total, count - 1, -1) - 1) / count
    return jnp.maximum((x - x.max(-1, keepdims=True)) - t, 0).astype(x.dtype)


def _entmax15(x):
    """As one writes it in JAX: with a sort."""
    shifted = (x - x.max(-1, keepdims=True)).astype(jnp.float32) / 2
    z, rank = jnp.sort(shifted, descending=True), jnp.arange(1, x.shape[-1] + 1, dtype=jnp.float32)
    mean, square = jnp.cumsum(z, -1) / rank, jnp.cumsum(z * z, -1) / rank
    t = mean - jnp.sqrt(jnp.maximum(1 / rank - (square - mean**2), 0))
    t = jnp.take_along_axis(t, (t <= z).sum(-1, keepdims=True) - 1, -1)
    return (jnp.maximum(shifted - t, 0) ** 2).astype(x.dtype)


PROJECTIONS = {"sparsemax": _sparsemax, "entmax15": _entmax15}


def projection(name, plain, shape, dtype):
    return Benchmark(
        name, f"[{', '.join(map(str, shape))}]", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, name)(x, implementation=implementation), plain, needs=("y",),
        flips=1e-4,  # what is just in the support or just not: its gradient differs
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        for name, plain in PROJECTIONS.items():
            yield projection(name, plain, MATRICES[size], dtype)
        for name in NAMES:
            yield slices(name, MATRICES[size], 1, dtype)
            yield slices(name, LONG[size], 1, dtype)
            if size in ODD:
                yield slices(name, ODD[size], 1, dtype)
        yield gumbel(MATRICES[size], dtype)
