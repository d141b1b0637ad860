"""Quantization of [tokens, features], versus the definition in plain JAX."""

import itertools

import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, PASSES, Benchmark, normal

GROUP = 128
SCALES = {
    "tensor": lambda rows, columns: (),
    "channel": lambda rows, columns: (columns,),
    "token": lambda rows, columns: (rows,),
    "group": lambda rows, columns: (rows, columns // GROUP),
}
FORWARD = PASSES[:1]


def scales(draws, kind, shape):
    return draws.uniform(SCALES[kind](*shape), 0.01, 0.02)


def quantize(kind, shape, dtype):
    op, more = f"quantize_per_{kind}", {"group_size": GROUP} if kind == "group" else {}

    def torch(torch, x, scale):
        zeros = torch.zeros_like(scale, dtype=torch.int32)
        if kind == "tensor":
            return torch.quantize_per_tensor(x.float(), float(scale), 0, torch.qint8)
        return torch.quantize_per_channel(x.float(), scale, zeros, 1 if kind == "channel" else 0, torch.qint8)

    return Benchmark(
        op, f"{list(shape)} to int8", dtype,
        lambda draws: (draws.normal(shape), scales(draws, kind, shape)),
        lambda x, scale, implementation: getattr(baracuda_jax, op)(x, scale, **more, implementation=implementation),
        torch=torch if dtype == "float32" and kind != "group" else None, passes=FORWARD, wide=(1,),
    )  # fmt: skip


def dequantize(kind, shape, dtype):
    op, more = f"dequantize_per_{kind}", {"group_size": GROUP} if kind == "group" else {}
    q = 1
    return Benchmark(
        op, f"{list(shape)} from int8", dtype,
        lambda draws: (scales(draws, kind, shape), draws.integers(shape, -128, 128, jnp.int8)),
        lambda scale, q, implementation: getattr(baracuda_jax, op)(
            q, scale, **more, dtype=dtype, implementation=implementation
        ),
        needs=(q,), wide=(0,),
    )  # fmt: skip


def fake_quantize(op, axis, shape, dtype):
    kind, lsq = "tensor" if axis is None else "channel", op.endswith("lsq")
    x, scale = 0, 1

    def function(x, scale, implementation):
        gradient = "lsq" if lsq else "straight_through"
        return baracuda_jax.fake_quantize(x, scale, axis=axis, gradient=gradient, implementation=implementation)

    def torch(torch, x, scale):
        if kind == "tensor":
            return torch.fake_quantize_per_tensor_affine(x, float(scale), 0, -128, 127)
        zeros = torch.zeros_like(scale, dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(x, scale, zeros, axis, -128, 127)

    return Benchmark(
        op, f"{list(shape)}", dtype,
        lambda draws: (draws.normal(shape), scales(draws, kind, shape)), function,
        torch=torch if dtype == "float32" and not lsq else None,
        variant=f"per {kind}", moving=2 if lsq else 1, needs=(x, scale), wide=(1,), flips=1e-5,
    )  # fmt: skip


def dynamic_quantize(code, group, shape, dtype):
    return Benchmark(
        "dynamic_quantize", f"{list(shape)}", dtype, normal(*shape),
        lambda x, implementation: baracuda_jax.dynamic_quantize(x, code, group_size=group, implementation=implementation)[0],
        variant=f"to {code}, {f'groups of {group}' if group else 'per token'}", passes=FORWARD,
    )  # fmt: skip


def linear(smooth, shape, dtype):
    """Of square weights."""
    _, features = shape
    name = "smooth_quant_linear" if smooth else "quantized_linear"
    factors = (lambda draws: (draws.uniform((features,), 0.5, 2),)) if smooth else (lambda draws: ())
    return Benchmark(
        name,
        f"{list(shape)} by {[features, features]}",
        dtype,
        lambda draws: (
            draws.normal(shape),
            *factors(draws),
            draws.integers((features, features), -127, 128, jnp.int8),
            draws.uniform((features,), 0.01, 0.02),
        ),
        lambda *args, implementation: getattr(baracuda_jax, name)(*args, implementation=implementation),
        needs=(1, 2, 3) if smooth else (1, 2),
        wide=(1, 3) if smooth else (2,),
        # A quotient rounded to the next int8 is one of its steps off.
        rough=40.0,
    )


def of(shape, dtype):
    """All ops on one matrix."""
    for kind in SCALES:
        yield quantize(kind, shape, dtype)
        yield dequantize(kind, shape, dtype)
    for op, axis in itertools.product(("fake_quantize", "fake_quantize_lsq"), (None, 1)):
        yield fake_quantize(op, axis, shape, dtype)
    for code, group in (("int8", None), ("float8_e4m3fn", None), ("int8", GROUP)):
        yield dynamic_quantize(code, group, shape, dtype)
    for smooth in (False, True):
        yield linear(smooth, shape, dtype)


def benchmarks(size):
    return [b for dtype in DTYPES for b in of(MATRICES[size], dtype)]
