"""Packed weights, versus their definition in plain JAX."""

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import PASSES, Benchmark, normal

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
    """Of so many rows; the plain program unpacks the weights first, PyTorch's has them as floats."""
    is_gguf = format in baracuda_jax.packed.GGUF
    name = "gguf_mmvq" if is_gguf else f"{format}_mmvq"
    more = (format,) if is_gguf else ()
    unpack = getattr(baracuda_jax, "gguf_dequantize" if is_gguf else f"{format}_dequantize")
    draw = (lambda draws: (blocks(draws, format, shape),)) if is_gguf else (lambda draws: scaled(draws, format, shape))
    return Benchmark(
        name,
        f"{count} x {list(shape)} {format}",
        dtype,
        lambda draws: (draws.normal((count, shape[1])), *draw(draws)),
        lambda x, *packed, implementation: getattr(baracuda_jax, name)(
            x, *packed, *more, implementation=implementation
        ),
        torch=lambda torch, x, weights: x @ weights.T,
        of_torch=lambda x, *packed: (x, unpack(*packed, *more, dtype=dtype)),
        needs=(1, 2) if not is_gguf else (1,),
        wide=(2,),
        rough=4.0,
    )


def by_expert(shape, dtype):
    """Eight tokens of two experts each."""
    return _by_expert(16, 8, shape, dtype, lambda draws: draws.integers((16,), 0, 8), needs=(1, 2))


def by_few_experts(shape, dtype):
    """A token of eight of 128 experts."""
    chosen, experts, of = 8, 128, baracuda_jax.packed.FORMATS["Q4_K"]
    apart = experts // chosen
    return _by_expert(
        chosen, experts, shape, dtype,
        lambda draws: jnp.arange(chosen, dtype=jnp.int32) * apart + draws.integers((chosen,), 0, apart),
        passes=FORWARD,
        unread=(experts - chosen) * (shape[0] // 4) * shape[1] // of.block * of.bytes,
    )  # fmt: skip


def _by_expert(chosen, experts, shape, dtype, draw, **more):
    """So many rows of x, each by the matrix of the expert that is drawn for it."""
    rows, weights = shape[0] // 4, shape[1]
    data = lambda draws: blocks(draws, "Q4_K", (experts * rows, weights)).reshape(experts, rows, -1)
    return Benchmark(
        "gguf_mmvq_batched",
        f"{chosen} of {experts} x [{rows}, {weights}] Q4_K",
        dtype,
        lambda draws: (draws.normal((chosen, weights)), data(draws), draw(draws)),
        lambda x, data, experts, implementation: baracuda_jax.gguf_mmvq_batched(
            x, data, experts, "Q4_K", implementation=implementation
        ),
        rough=4.0,
        **more,
    )


def words(draws, *shape):
    return draws.integers(shape, -(2**31), 2**31 - 1)


def awq(name, count, shape, dtype):
    """Of so many rows of x; without any, the weights as floats."""
    rows, weights = shape
    scales = lambda draws, groups: draws.uniform((groups, rows), 0.01, 0.1)
    x = (lambda draws: (draws.normal((count, weights)),)) if count else (lambda draws: ())
    packed = lambda draws: (
        words(draws, weights, rows // 8), scales(draws, weights // 128), words(draws, weights // 128, rows // 8)
    )  # fmt: skip
    return Benchmark(
        name,
        f"{f'{count} x ' if count else ''}{[weights, rows]}, groups of 128",
        dtype,
        lambda draws: (*x(draws), *packed(draws)),
        lambda *args, implementation: getattr(baracuda_jax, name)(*args, implementation=implementation),
        needs=(1, 2, 3) if count else (),
        wide=(2,) if count else (),
        passes=PASSES if count else FORWARD,
        rough=4.0,
    )


def marlin(count, shape, dtype):
    rows, weights = shape
    return Benchmark(
        "int4_marlin_gemm",
        f"{count} x {[weights, rows]}, groups of 128",
        dtype,
        lambda draws: (
            draws.normal((count, weights)),
            words(draws, weights // 16, 2 * rows),
            draws.uniform((weights // 128, rows), 0.01, 0.1),
        ),
        lambda *args, implementation: baracuda_jax.int4_marlin_gemm(*args, implementation=implementation),
        needs=(1, 2),
        wide=(2,),
        rough=4.0,
    )


def q8_1(shape, dtype):
    return Benchmark(
        "quantize_q8_1",
        f"{list(shape)}",
        dtype,
        normal(*shape),
        lambda x, implementation: baracuda_jax.quantize_q8_1(x, implementation=implementation),
        passes=FORWARD,
    )


def benchmarks(size):
    shape = SHAPES[size]
    yield by_expert(shape, "bfloat16")
    yield by_few_experts(shape if size == "tiny" else (shape[0], 4096), "bfloat16")
    yield awq("int4_awq_dequantize", 0, shape, "bfloat16")
    yield awq("int4_awq_gemm", 8, shape, "bfloat16")
    yield marlin(8, shape, "bfloat16")
    yield q8_1(shape, "bfloat16")
    for format in ("Q4_K", "Q6_K", "Q8_0", "nf4", "int4"):
        for count in (1, 8, 16, 32, 64):
            yield product(format, count, shape, "bfloat16")
    for format in ("Q4_K", "Q8_0", "nf4", "int4"):
        yield product(format, 1, shape, "float32")
    for format in ("Q4_K", "Q8_0"):
        yield gguf_dequantize(format, shape, "bfloat16")
    for format in GROUPS:
        yield scaled_dequantize(format, shape, "bfloat16")
