"""Pooling of images, and of the same elements as sequences and as volumes."""

import jax
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


def shape_of(rank, images):
    """The same elements as sequences, or as volumes."""
    batch, channels, height, width = images
    return {1: (batch, channels, height * width), 2: images, 3: (batch, max(channels // 8, 1), 8, height, width)}[rank]


def lines_or_volumes(rank, window, images, dtype):
    shape = shape_of(rank, images)
    op = f"lp_pool{rank}d"
    return Benchmark(
        op, f"{list(shape)}, p=2, window {window}, stride 2", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, op)(x, 2, window, 2, implementation=implementation),
        torch=lambda torch, x: getattr(torch.nn.functional, op)(x, 2.0, window, 2), needs=(X, "y"),
    )  # fmt: skip


# Maxima and averages. A gradient of maxima reads an index, of which a byte is enough; one of averages nothing.


def _argument(out):
    return (jax.ShapeDtypeStruct(out, jnp.uint8),)


def _slide(kind, rank, x, window, stride, padding):
    """What one writes with `lax.reduce_window`, of channels first."""
    ones, sides = (1, 1), ((0, 0), (0, 0), *((padding, padding),) * rank)
    windows = (*ones, *(window,) * rank), (*ones, *(stride,) * rank), sides
    if kind == "max":
        return lax.reduce_window(x, np.array(-np.inf, x.dtype), lax.max, *windows)
    return lax.reduce_window(x, np.zeros((), x.dtype), lax.add, *windows) / window**rank


def sliding(kind, rank, images, dtype, window=3, stride=2, padding=1, is_last=False):
    shape, op = shape_of(rank, images), f"{kind}_pool{rank}d"
    out = *shape[:2], *((n + 2 * padding - window) // stride + 1 for n in shape[2:])
    given, how = shape, {}
    if is_last:
        given, how = (shape[0], *shape[2:], shape[1]), dict(data_format={1: "NLC", 2: "NHWC", 3: "NDHWC"}[rank])
    windows = window, stride, padding
    return Benchmark(
        op, f"{list(given)}, window {window}, stride {stride}, padding {padding}", dtype, normal(*given),
        lambda x, implementation: getattr(baracuda_jax, op)(x, *windows, **how, implementation=implementation),
        None if is_last else lambda x: _slide(kind, rank, x, *windows),
        None if is_last else lambda torch, x: getattr(torch.nn.functional, op)(x, *windows),
        variant="channels last" if is_last else "", needs=(X,) if kind == "max" else (),
        saved=_argument(out) if kind == "max" else (), rough=4,
    )  # fmt: skip


def adaptive(kind, rank, images, size, dtype):
    shape, op = shape_of(rank, images), f"adaptive_{kind}_pool{rank}d"
    out = (size,) * rank
    return Benchmark(
        op, f"{list(shape)} to {list(out)}", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, op)(x, out, implementation=implementation),
        torch=lambda torch, x: getattr(torch.nn.functional, op)(x, out), needs=(X,) if kind == "max" else (),
        saved=_argument((*shape[:2], *out)) if kind == "max" else (), rough=10,
    )  # fmt: skip


def fractional(rank, images, dtype):
    """Windows of 2, about 1.5 apart."""
    shape, op = shape_of(rank, images), f"fractional_max_pool{rank}d"
    out = tuple(max(1, n * 2 // 3) for n in shape[2:])

    def of_torch(torch, x, samples):
        # In another order of the axes where there are two.
        samples = (samples.flip(-1) if rank == 2 else samples).to(x.dtype).contiguous()
        return getattr(torch.nn.functional, op)(x, 2, out, _random_samples=samples)

    return Benchmark(
        op, f"{list(shape)} to {list(out)}, window 2", dtype,
        lambda draws: (draws.normal(shape), draws.uniform((*shape[:2], rank))),
        lambda x, samples, implementation: getattr(baracuda_jax, op)(
            x, samples, 2, out, implementation=implementation
        ),
        torch=of_torch, needs=(X,), saved=_argument((*shape[:2], *out)), wide=(1,),
    )  # fmt: skip


def unpool(rank, images, dtype):
    """Of maxima of windows of 2."""
    shape, op = shape_of(rank, images), f"max_unpool{rank}d"
    pooled = *shape[:2], *(n // 2 for n in shape[2:])

    def draw(draws):
        y, index = getattr(baracuda_jax, f"max_pool{rank}d")(draws.normal(shape), 2, return_indices=True)
        return y, index

    return Benchmark(
        op, f"{list(pooled)}, window 2", dtype, draw,
        lambda x, index, implementation: getattr(baracuda_jax, op)(
            x, index, 2, output_size=shape[2:], implementation=implementation
        ),
        torch=lambda torch, x, index: getattr(torch.nn.functional, op)(x, index.long(), 2, output_size=shape[2:]),
        needs=(1,),
    )  # fmt: skip


def of(images, dtype):
    """All but LP pooling: windows that overlap, and as many as are asked for."""
    for rank in (1, 2, 3):
        for kind in ("max", "avg"):
            yield sliding(kind, rank, images, dtype)
            yield adaptive(kind, rank, images, 7, dtype)
        yield unpool(rank, images, dtype)
    for kind in ("max", "avg"):
        yield sliding(kind, 2, images, dtype, window=2, padding=0)
        yield sliding(kind, 2, images, dtype, is_last=True)
        yield adaptive(kind, 2, images, 1, dtype)
    for rank in (2, 3):
        yield fractional(rank, images, dtype)


def benchmarks(size):
    for dtype in DTYPES:
        yield lines_or_volumes(1, 4, SHAPES[size], dtype)
        yield images(SHAPES[size], dtype)
        yield lines_or_volumes(3, 2, SHAPES[size], dtype)
        yield from of(SHAPES[size], dtype)
