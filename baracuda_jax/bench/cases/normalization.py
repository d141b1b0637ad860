"""Normalization of the rows of matrices, and of the channels of images."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, Benchmark

IMAGES = {"tiny": (2, 32, 8, 8), "small": (8, 64, 32, 32), "large": (32, 256, 56, 56)}  # N, C, H, W
ODD_IMAGES = {"tiny": (2, 32, 3, 3), "small": (16, 64, 7, 7), "large": (256, 512, 7, 7)}  # no whole vectors
GROUPS = 32


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


def mean_squares(rows, columns, dtype):
    def plain(x, weight):
        wide = x.astype(jnp.float32)
        y = wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-6)
        return (y * weight).astype(x.dtype)

    return Benchmark(
        "rms_norm", f"[{rows}, {columns}]", dtype,
        lambda draws: (draws.normal((rows, columns)), draws.normal((columns,))),
        lambda *arrays, implementation: baracuda_jax.rms_norm(*arrays, implementation=implementation),
        plain,
        lambda torch, x, weight: torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6),
        moving=2, needs=(0, 1),
    )  # fmt: skip


def residuals(rows, columns, dtype):
    def plain(x, residual, weight):
        total = x + residual
        wide = total.astype(jnp.float32)
        y = wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + 1e-6)
        return (y * weight).astype(x.dtype), total

    def torch_program(torch, x, residual, weight):
        total = x + residual
        return torch.nn.functional.rms_norm(total, (columns,), weight, 1e-6), total

    return Benchmark(
        "add_rms_norm", f"[{rows}, {columns}]", dtype,
        lambda draws: (*(draws.normal((rows, columns)) for _ in range(2)), draws.normal((columns,))),
        lambda *arrays, implementation: baracuda_jax.add_rms_norm(*arrays, implementation=implementation),
        plain,
        torch_program,
        moving=3, needs=(0, 1),
    )  # fmt: skip


def _images(name, shape, dtype, function, plain, torch):
    draw = lambda draws: (draws.normal(shape), draws.normal(shape[1:2]), draws.normal(shape[1:2]))
    return Benchmark(
        name, f"[{', '.join(map(str, shape))}]", dtype, draw, function, plain, torch, moving=3, needs=(0, 1),
    )  # fmt: skip


def _normalized(over, groups=None):
    """As one writes it: of mean and variance over axes of x, or of its groups."""

    def plain(x, weight, bias):
        y = x.astype(jnp.float32).reshape(x.shape[0], groups, -1) if groups else x.astype(jnp.float32)
        y = (y - y.mean(over, keepdims=True)) * jax.lax.rsqrt(y.var(over, keepdims=True) + 1e-5)
        weight, bias = (a.reshape(-1, *(1,) * (x.ndim - 2)) for a in (weight, bias))
        return (y.reshape(x.shape) * weight + bias).astype(x.dtype)

    return plain


def groups(shape, count, dtype):
    return _images(
        "group_norm", shape, dtype,
        lambda *arrays, implementation: baracuda_jax.group_norm(*arrays, num_groups=count, implementation=implementation),
        _normalized((2,), count), lambda torch, x, w, b: torch.nn.functional.group_norm(x, count, w, b),
    )  # fmt: skip


def channels(shape, dtype):
    return _images(
        "batch_norm", shape, dtype,
        lambda x, w, b, implementation: baracuda_jax.batch_norm(
            x, None, None, w, b, training=True, implementation=implementation
        )[0],
        _normalized((0, *range(2, len(shape)))),
        lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True),
    )  # fmt: skip


def images(shape, dtype):
    yield groups(shape, GROUPS, dtype)
    yield _images(
        "instance_norm", shape, dtype,
        lambda *arrays, implementation: baracuda_jax.instance_norm(*arrays, implementation=implementation),
        _normalized((2, 3)), lambda torch, x, w, b: torch.nn.functional.instance_norm(x, None, None, w, b),
    )  # fmt: skip
    yield channels(shape, dtype)


ROWS = layers, mean_squares, residuals


def benchmarks(size):
    for dtype in DTYPES:
        yield from (of(*MATRICES[size], dtype) for of in ROWS)
        yield from images(IMAGES[size], dtype)
        yield from images(ODD_IMAGES[size], dtype)
