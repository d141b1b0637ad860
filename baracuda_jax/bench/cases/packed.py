"""Packed weights, versus their definition in plain JAX."""

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import PASSES, Benchmark

# Rows and weights of a row.
SHAPES = {"tiny": (64, 512), "small": (1024, 4096), "large": (8192, 8192)}
FORWARD = PASSES[:1]
GROUPS = {"nf4": 64, "int4": 128}


def blocks(draws, format, shape):
    """Small bytes, so that factors in half precision are finite."""
    rows, weights = shape
    of = baracuda_jax.packed.FORMATS[format]
    return draws.integers((rows, weights // of.block * of.bytes), 0, 60, jnp.uint8)


def scaled(draws, format, shape):
    rows, weights = shape
    data = draws.integers((rows, weights // 2), 0, 256, jnp.uint8)
    return data, draws.uniform((rows, weights // GROUPS[format]), 0.01, 0.1)


def gguf_dequantize(format, shape, dtype):
    return Benchmark(
        "gguf_dequantize",
        f"{list(shape)} {format}",
        dtype,
        lambda draws: (blocks(draws, format, shape),),
        lambda data, implementation: baracuda_jax.gguf_dequantize(
            data, format, dtype=dtype, implementation=implementation
        ),
        passes=FORWARD,
    )


def scaled_dequantize(format, shape, dtype):
    name = f"{format}_dequantize"
    return Benchmark(
        name,
        f"{list(shape)}, groups of {GROUPS[format]}",
        dtype,
        lambda draws: scaled(draws, format, shape),
        lambda data, scale, implementation: getattr(baracuda_jax, name)(
            data, scale, dtype=dtype, implementation=implementation
        ),
        passes=FORWARD,
        wide=(1,),
    )


def product(format, count, shape, dtype):
    """Of so many rows; the plain program unpacks the weights first."""
    is_gguf = format in baracuda_jax.packed.GGUF
    name = "gguf_mmvq" if is_gguf else f"{format}_mmvq"
    more = (format,) if is_gguf else ()
    draw = (lambda draws: (blocks(draws, format, shape),)) if is_gguf else (lambda draws: scaled(draws, format, shape))
    return Benchmark(
        name,
        f"{count} x {list(shape)} {format}",
        dtype,
        lambda draws: (draws.normal((count, shape[1])), *draw(draws)),
        lambda x, *packed, implementation: getattr(baracuda_jax, name)(
            x, *packed, *more, implementation=implementation
        ),
        needs=(1, 2) if not is_gguf else (1,),
        wide=(2,),
        rough=4.0,
    )


def benchmarks(size):
    shape = SHAPES[size]
    for format in ("Q4_K", "Q6_K", "Q8_0", "nf4", "int4"):
        for count in (1, 8, 16):
            yield product(format, count, shape, "bfloat16")
    for format in ("Q4_K", "Q8_0"):
        yield gguf_dequantize(format, shape, "bfloat16")
    for format in GROUPS:
        yield scaled_dequantize(format, shape, "bfloat16")
