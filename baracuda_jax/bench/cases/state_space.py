"""Layers of state-space models. Plain JAX adds shifted arrays; PyTorch convolves by groups."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark

# Batch, channels, length.
SHAPES = {"tiny": (2, 64, 256), "small": (4, 1024, 1024), "large": (8, 4096, 4096)}
WIDTH = 4


def convolution(shape, dtype, data_format):
    batch, channels, length = shape
    is_last = data_format == "NLC"
    sizes = (batch, length, channels) if is_last else shape
    axis = 1 if is_last else 2

    def plain(x, weight, bias):
        x, pads = x.astype(jnp.float32), [(WIDTH - 1, 0) if i == axis else (0, 0) for i in range(3)]
        padded, along = jnp.pad(x, pads), (lambda w: w if is_last else w[:, None])
        z = along(bias.astype(jnp.float32))
        for k in range(WIDTH):
            earlier = jax.lax.slice_in_dim(padded, k, k + length, axis=axis)
            z = z + along(weight[:, k].astype(jnp.float32)) * earlier
        return jax.nn.silu(z).astype(dtype)

    def torchs(torch, x, weight, bias):
        rows = x.transpose(1, 2) if is_last else x
        z = torch.nn.functional.conv1d(rows, weight[:, None], bias, padding=WIDTH - 1, groups=channels)[..., :length]
        y = torch.nn.functional.silu(z)
        return y.transpose(1, 2) if is_last else y

    def call(x, weight, bias, implementation):
        return baracuda_jax.causal_conv1d(
            x, weight, bias, activation="silu", data_format=data_format, implementation=implementation
        )

    return Benchmark(
        "causal_conv1d",
        f"[{', '.join(map(str, sizes))}] by {WIDTH}",
        dtype,
        lambda draws: (draws.normal(sizes), draws.normal((channels, WIDTH)), draws.normal((channels,))),
        call,
        plain,
        torchs,
        variant="channels last" if is_last else "",
        moving=3,
        needs=(0, 1, 2),
    )


def update(shape, dtype):
    batch, channels = 16 * shape[0], shape[1]

    def plain(x, state, weight, bias):
        elements = jnp.concatenate([state, x[..., None]], -1).astype(jnp.float32)
        return jax.nn.silu((elements * weight).sum(-1) + bias).astype(dtype), elements[..., 1:].astype(dtype)

    def call(x, state, weight, bias, implementation):
        return baracuda_jax.causal_conv1d_update(
            x, state, weight, bias, activation="silu", implementation=implementation
        )

    def draw(draws):
        shapes = (batch, channels), (batch, channels, WIDTH - 1), (channels, WIDTH), (channels,)
        return tuple(map(draws.normal, shapes))

    return Benchmark(
        "causal_conv1d_update", f"[{batch}, {channels}] by {WIDTH}", dtype, draw, call, plain, passes=("forward",)
    )


def benchmarks(size):
    for dtype in DTYPES:
        for data_format in ("NCL", "NLC"):
            yield convolution(SHAPES[size], dtype, data_format)
        yield update(SHAPES[size], dtype)
