"""Sorts, selection and order statistics of the rows of matrices, and of one long row."""

import jax
import jax.numpy as jnp
from jax import lax

import baracuda_jax

from ..benchmark import DTYPES, Benchmark, normal

# Long rows, short rows, one row.
SHAPES = {
    "tiny": ((20, 3000), (300, 200), (50000,)),
    "small": ((64, 4096), (1024, 256), (2**18,)),
    "large": ((4096, 32768), (16384, 256), (2**26,)),
}
FORWARD = ("forward",)
Q = 0.25


def _indices(shape):
    return (jax.ShapeDtypeStruct(shape, jnp.int32),)


def _benchmark(op, shape, dtype, function, plain, torch=None, **options):
    return Benchmark(
        op, str(list(shape)), dtype, options.pop("draw", normal(*shape)), function, plain, torch, **options
    )


def sort(shape, dtype):
    return _benchmark(
        "sort", shape, dtype,
        lambda x, implementation: baracuda_jax.sort(x, implementation=implementation),
        lambda x: jnp.sort(x, axis=-1),
        lambda torch, x: torch.sort(x, stable=True).values,
        needs=(0,), saved=_indices(shape),
    )  # fmt: skip


def argsort(shape, dtype):
    return _benchmark(
        "argsort", shape, dtype,
        lambda x, implementation: baracuda_jax.argsort(x, implementation=implementation),
        lambda x: jnp.argsort(x, axis=-1).astype(jnp.int32),
        lambda torch, x: torch.argsort(x, stable=True),
        passes=FORWARD,
    )  # fmt: skip


def sort_key_val(shape, dtype):
    return _benchmark(
        "sort_key_val", shape, dtype,
        lambda values, keys, implementation: baracuda_jax.sort_key_val(keys, values, implementation=implementation)[1],
        lambda values, keys: lax.sort_key_val(keys, values)[1],
        lambda torch, values, keys: torch.gather(values, -1, torch.argsort(keys, stable=True)),
        draw=lambda draws: (draws.normal(shape), draws.normal(shape)),
        needs=(1,), saved=_indices(shape),
    )  # fmt: skip


def topk(shape, k, dtype):
    found = (*shape[:-1], k)
    return _benchmark(
        "topk", shape, dtype,
        lambda x, implementation: baracuda_jax.topk(x, k, implementation=implementation)[0],
        lambda x: lax.top_k(x, k)[0],
        lambda torch, x: torch.topk(x, k).values,
        variant=f"k={k}", saved=_indices(found), needs=(0,),
    )  # fmt: skip


def kthvalue(shape, dtype):
    k = shape[-1] // 4
    return _benchmark(
        "kthvalue", shape, dtype,
        lambda x, implementation: baracuda_jax.kthvalue(x, k, implementation=implementation)[0],
        lambda x: jnp.sort(x, axis=-1)[..., k - 1],
        lambda torch, x: torch.kthvalue(x, k).values,
        saved=_indices(shape[:-1]), needs=(0,),
    )  # fmt: skip


def median(op, shape, dtype):
    return _benchmark(
        op, shape, dtype,
        lambda x, implementation: getattr(baracuda_jax, op)(x, -1, implementation=implementation),
        lambda x: getattr(jnp, op)(x, -1),
        saved=_indices((*shape[:-1], 2)), needs=(0,),
    )  # fmt: skip


def quantile(op, shape, dtype):
    return _benchmark(
        op, shape, dtype,
        lambda x, implementation: getattr(baracuda_jax, op)(x, Q, -1, implementation=implementation),
        lambda x: getattr(jnp, op)(x, Q, -1),
        variant=f"q={Q}", saved=_indices((*shape[:-1], 2)), needs=(0,),
    )  # fmt: skip


def argextremum(op, shape, dtype):
    return _benchmark(
        op, shape, dtype,
        lambda x, implementation: getattr(baracuda_jax, op)(x, -1, implementation=implementation),
        lambda x: getattr(jnp, op)(x, -1).astype(jnp.int32),
        lambda torch, x: getattr(torch, op)(x, -1),
        passes=FORWARD,
    )  # fmt: skip


def benchmarks(size):
    long, short, vector = SHAPES[size]
    for dtype in DTYPES:
        for shape in (long, short, vector):
            yield sort(shape, dtype)
            yield argsort(shape, dtype)
        yield sort_key_val(long, dtype)
        yield topk(long, 64, dtype)
        yield topk(short, 8, dtype)
        yield kthvalue(long, dtype)
        yield from (median(op, long, dtype) for op in ("median", "nanmedian"))
        yield from (quantile(op, long, dtype) for op in ("quantile", "nanquantile"))
        yield from (argextremum(op, long, dtype) for op in ("argmax", "argmin"))
