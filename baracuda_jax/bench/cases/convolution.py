"""Convolutions as networks have them: 3 by 3 with many channels, depthwise, and transposed ones that double the size."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark

# N, C, spatial size along each axis, for one, two and three axes
SIZES = {
    "tiny": {1: (2, 8, 64), 2: (2, 8, 12), 3: (1, 4, 6)},
    "small": {1: (8, 64, 1024), 2: (8, 64, 56), 3: (2, 16, 16)},
    "large": {1: (32, 256, 4096), 2: (64, 128, 112), 3: (8, 32, 64)},
}


def _benchmark(name, rank, size, window, plain, torch, dtype, spread=1, **how):
    n, channels, elements = SIZES[size][rank]
    shape = n, channels, *(elements,) * rank
    weight = channels, channels // spread, *(window,) * rank
    draw = lambda draws: (draws.normal(shape), draws.normal(weight), jnp.zeros((channels,), jnp.float32))
    function = lambda *arrays, implementation: getattr(baracuda_jax, name)(
        *arrays, **how, implementation=implementation
    )
    # What is summed in bfloat16's gradients is rounded where XLA likes.
    return Benchmark(
        name, f"{list(shape)}, window {window}", dtype, draw, function, plain, torch, moving=3, needs=(0, 1), rough=4
    )


def _lax(rank, groups, window):
    def plain(x, weight, bias):
        y = jax.lax.conv_general_dilated(
            x, weight, (1,) * rank, ((window // 2, window // 2),) * rank, feature_group_count=groups
        )
        return y + bias.reshape(-1, *(1,) * rank)

    return plain


def _lax_transposed(rank):
    def plain(x, weight, bias):
        formats = ("NCHWD"[: rank + 2], "OIHWD"[: rank + 2], "NCHWD"[: rank + 2])
        y = jax.lax.conv_transpose(
            x, weight, (2,) * rank, ((2, 2),) * rank, dimension_numbers=formats, transpose_kernel=True
        )
        return y + bias.reshape(-1, *(1,) * rank)

    return plain


def _deformable(size, dtype):
    n, channels, elements = SIZES[size][2]
    shape = n, channels, elements, elements

    def draw(draws):
        weight, none = draws.normal((channels, channels, 3, 3)), jnp.zeros((channels,), jnp.float32)
        offset, mask = (draws.uniform((n, count, elements, elements), -1, 1) for count in (18, 9))
        return draws.normal(shape), offset, weight, none, mask

    function = lambda *arrays, implementation: baracuda_jax.deform_conv2d(
        *arrays, padding=1, implementation=implementation
    )
    return Benchmark(
        "deform_conv2d", f"{list(shape)}, window 3", dtype, draw, function, moving=5, needs=(0, 1, 2, 4), rough=10
    )


def benchmarks(size):
    for dtype in DTYPES:
        for rank in (1, 2, 3):
            torch_conv = lambda torch, *arrays, rank=rank: getattr(torch.nn.functional, f"conv{rank}d")(*arrays, 1, 1)
            yield _benchmark(f"conv{rank}d", rank, size, 3, _lax(rank, 1, 3), torch_conv, dtype, padding=1)
            torch_transposed = lambda torch, *arrays, rank=rank: getattr(torch.nn.functional, f"conv_transpose{rank}d")(
                *arrays, 2, 1
            )
            yield _benchmark(
                f"conv_transpose{rank}d", rank, size, 4, _lax_transposed(rank), torch_transposed, dtype, strides=2,
                padding=1,
            )  # fmt: skip
        torch_conv = lambda torch, *arrays: torch.nn.functional.conv2d(*arrays, 1, 1)
        yield _benchmark("conv_2d_direct", 2, size, 3, _lax(2, 1, 3), torch_conv, dtype, padding=1)
        yield _deformable(size, dtype)
        channels = SIZES[size][2][1]
        torch_depthwise = lambda torch, *arrays, groups=channels: torch.nn.functional.conv2d(*arrays, 1, 1, 1, groups)
        yield _benchmark(
            "depthwise_conv2d", 2, size, 3, _lax(2, channels, 3), torch_depthwise, dtype, spread=channels, padding=1
        )
