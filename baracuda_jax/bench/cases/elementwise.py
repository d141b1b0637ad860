"""Elementwise ops on matrices."""

import jax
import jax.numpy as jnp
from jax import lax

import baracuda_jax

from ..._core.op import OPS
from ...elementwise._made import MADE
from ..benchmark import DTYPES, MATRICES, PASSES, Benchmark, normal

X, SLOPES = 0, 1

# op: its parameters, plain JAX, PyTorch
UNARY = {
    "leaky_relu": ((0.1,), lambda x: jax.nn.leaky_relu(x, 0.1), lambda t, x: t.nn.functional.leaky_relu(x, 0.1)),
    "elu": ((1.0,), lambda x: jax.nn.elu(x, 1.0), lambda t, x: t.nn.functional.elu(x, 1.0)),
    "threshold": (
        (0.1, 0.5),
        lambda x: jnp.where(x > 0.1, x, 0.5),
        lambda t, x: t.nn.functional.threshold(x, 0.1, 0.5),
    ),
    "hardtanh": ((), lambda x: jnp.clip(x, -1, 1), lambda t, x: t.nn.functional.hardtanh(x)),
    "softshrink": (
        (0.5,),
        lambda x: jnp.where(x > 0.5, x - 0.5, jnp.where(x < -0.5, x + 0.5, 0)),
        lambda t, x: t.nn.functional.softshrink(x, 0.5),
    ),
    "hardshrink": (
        (0.5,),
        lambda x: jnp.where(jnp.abs(x) > 0.5, x, 0),
        lambda t, x: t.nn.functional.hardshrink(x, 0.5),
    ),
    "integer_pow": ((3,), lambda x: lax.integer_pow(x, 3), lambda t, x: t.pow(x, 3)),
    "affine": ((2.0, 1.0), lambda x: 2 * x + 1, lambda t, x: 2 * x + 1),
    "softplus": ((), jax.nn.softplus, lambda t, x: t.nn.functional.softplus(x)),
    "logit": ((0.1,), None, lambda t, x: t.logit(x, 0.1)),
    "clamp": ((-1.0, 1.0), lambda x: jnp.clip(x, -1, 1), lambda t, x: t.clamp(x, -1, 1)),
}


def unary(op, shape, dtype):
    parameters, plain, torch = UNARY[op]
    return Benchmark(
        op, f"{list(shape)}", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, op)(x, *parameters, implementation=implementation), plain, torch,
        needs=() if op == "affine" else (X,),
    )  # fmt: skip


def made(op, shape, dtype):
    """An op of a table, on arrays of one shape."""
    line = MADE[op]

    def draw(draws):
        if dtype not in DTYPES:
            return tuple(draws.integers(shape, -2, 3, jnp.dtype(dtype)) for _ in line.at)
        return tuple(draws.uniform(shape, low, high) for low, high in line.at)

    return Benchmark(
        op, f"{list(shape)}", dtype, draw,
        lambda *arrays, implementation: getattr(baracuda_jax, op)(*arrays, implementation=implementation),
        line.value, (lambda torch, *arrays: line.call_theirs(torch, *arrays)) if line.theirs("torch") else None,
        moving=line.arrays, needs=tuple(range(line.arrays)), passes=PASSES if line.has_derivative else PASSES[:1],
    )  # fmt: skip


def gated(op, shape, dtype):
    return Benchmark(
        op, f"{list(shape)}", dtype, normal(*shape),
        lambda x, implementation: getattr(baracuda_jax, op)(x, implementation=implementation),
        torch=(lambda torch, x: torch.nn.functional.glu(x)) if op == "glu" else None, needs=(X,),
    )  # fmt: skip


def three(op, shape, dtype):
    torch = {"fma": None, "addcmul": lambda t, *a: t.addcmul(*a), "addcdiv": lambda t, *a: t.addcdiv(*a),
        "clamp_between": lambda t, *a: t.clamp(*a)}[op]  # fmt: skip
    return Benchmark(
        op, f"{list(shape)}", dtype,
        lambda draws: (draws.normal(shape), draws.uniform(shape, 0.5, 1), draws.uniform(shape, 1, 2)),
        lambda *arrays, implementation: OPS[op].public(*arrays, implementation=implementation), None, torch,
        moving=3, needs=(0, 1, 2),
    )  # fmt: skip


def where(shape, dtype):
    return Benchmark(
        "where", f"{list(shape)}", dtype, lambda draws: tuple(draws.normal(shape) for _ in range(3)),
        lambda x, y, c, implementation: baracuda_jax.where(c > 0, x, y, implementation=implementation),
        lambda x, y, c: jnp.where(c > 0, x, y), lambda torch, x, y, c: torch.where(c > 0, x, y), moving=2, needs=(2,),
    )  # fmt: skip


def ldexp(shape, dtype):
    return Benchmark(
        "ldexp", f"{list(shape)}", dtype, lambda draws: (draws.normal(shape), draws.integers(shape, -9, 9)),
        lambda x, n, implementation: baracuda_jax.ldexp(x, n, implementation=implementation), None,
        lambda torch, x, n: torch.ldexp(x, n), needs=(1,),
    )  # fmt: skip


def lerp(shape, dtype):
    return Benchmark(
        "lerp", f"{list(shape)}, one weight", dtype,
        lambda draws: tuple(draws.normal(shape) for _ in range(2)),
        lambda a, b, implementation: baracuda_jax.lerp(a, b, 0.3, implementation=implementation),
        lambda a, b: a + jnp.asarray(0.3, a.dtype) * (b - a),
        lambda torch, a, b: torch.lerp(a, b, 0.3), moving=2,
    )  # fmt: skip


def prelu(matrix, dtype):
    rows, channels = matrix
    shape = rows, channels // 64, 64
    return Benchmark(
        "prelu", f"{list(shape)}, a slope for each channel", dtype,
        lambda draws: (draws.normal(shape), draws.uniform(shape[1:2])),
        lambda x, w, implementation: baracuda_jax.prelu(x, w, implementation=implementation),
        lambda x, w: jnp.where(x > 0, x, w[:, None] * x),
        lambda torch, x, w: torch.nn.functional.prelu(x, w), moving=2, needs=(X, SLOPES),
    )  # fmt: skip


def of(matrix, dtype):
    """All ops that take the dtype, on one matrix. Those that take no floats are there with integers, or else with bools."""
    if dtype in DTYPES:
        yield from (unary(op, matrix, dtype) for op in UNARY)
        yield lerp(matrix, dtype)
        yield prelu(matrix, dtype)
        yield from (made(op, matrix, dtype) for op, line in MADE.items() if dtype in line.dtypes)
        yield from (gated(op, matrix, dtype) for op in ("glu", "reglu", "swiglu", "geglu", "geglu_tanh"))
        yield from (three(op, matrix, dtype) for op in ("fma", "addcmul", "addcdiv", "clamp_between"))
        yield from (where(matrix, dtype), ldexp(matrix, dtype))
        return
    for op, line in MADE.items():
        takes = "int32" if "int32" in line.dtypes else "bool"
        if "float32" not in line.dtypes and takes == dtype:
            yield made(op, matrix, dtype)


def benchmarks(size):
    return [b for dtype in (*DTYPES, "int32", "bool") for b in of(MATRICES[size], dtype)]
