"""Convolutions as networks have them: 3 by 3 with many channels, depthwise, and transposed ones that double the size."""

import jax
import jax.numpy as jnp

import baracuda_jax
from baracuda_jax._core.data_format import FORMATS

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
        name,
        f"{list(shape)}, window {window}",
        dtype,
        draw,
        function,
        plain,
        torch,
        moving=3,
        needs=(0, 1),
        rough=4,
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


# N, C, spatial size, as networks of depthwise convolutions have them
DEPTHWISE = {
    "tiny": {1: (2, 8, 64), 2: (2, 8, 12), 3: (1, 4, 6)},
    "small": {1: (8, 64, 1024), 2: (8, 64, 56), 3: (2, 16, 16)},
    "large": {1: (32, 256, 4096), 2: (32, 256, 56), 3: (8, 64, 32)},
}


def depthwise(rank, sizes, window, dtype, channels_last=False):
    """Of n arrays with so many channels and elements along each axis."""
    n, channels, elements = sizes
    spatial = (elements,) * rank
    shape = (n, *spatial, channels) if channels_last else (n, channels, *spatial)
    draw = lambda draws: (
        draws.normal(shape), draws.normal((channels, 1, *(window,) * rank)), jnp.zeros((channels,), jnp.float32)
    )  # fmt: skip
    form = FORMATS[rank][channels_last]
    name, half, last = f"depthwise_conv{rank}d", window // 2, ", channels last" * channels_last
    function = lambda *arrays, implementation: getattr(baracuda_jax, name)(
        *arrays, padding=half, data_format=form, implementation=implementation
    )

    def plain(x, weight, bias):
        letters = "DHW"[3 - rank :]
        forms = f"N{letters}C" if channels_last else f"NC{letters}", f"OI{letters}"
        y = jax.lax.conv_general_dilated(
            x, weight, (1,) * rank, ((half, half),) * rank, dimension_numbers=(*forms, forms[0]),
            feature_group_count=channels,
        )  # fmt: skip
        return y + (bias if channels_last else bias.reshape(-1, *(1,) * rank))

    def torch(torch, x, weight, bias):
        x = x.movedim(-1, 1) if channels_last else x
        y = getattr(torch.nn.functional, f"conv{rank}d")(x, weight, bias, 1, half, 1, channels)
        return y.movedim(1, -1) if channels_last else y

    return Benchmark(
        name,
        f"{list(shape)}, window {window}{last}",
        dtype,
        draw,
        function,
        plain,
        torch,
        moving=3,
        needs=(0, 1),
        rough=4,
    )


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
        for rank, window in ((1, 3), (2, 3), (2, 4), (2, 7), (3, 3)):
            for channels_last in (False, True):
                yield depthwise(rank, DEPTHWISE[size][rank], window, dtype, channels_last)
