"""Elementwise ops: NumPy's functions, or else PyTorch's, and what neither has."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from baracuda_jax.elementwise._made import MADE

from .wide import wide


def _gated(x, axis, gate):
    first, second = np.split(x, 2, axis)
    return first * gate(second)


_ELEMENTWISE = {
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    "elu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "threshold": lambda x, threshold, value: np.where(x > threshold, x, value),
    "hardtanh": lambda x, min_val=-1, max_val=1: np.clip(x, min_val, max_val),
    "softshrink": lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
    "hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    "softplus": lambda x, beta=1: np.logaddexp(0, beta * x) / beta,
    "logit": lambda x, eps=0: np.log(np.clip(x, eps, 1 - eps) / (1 - np.clip(x, eps, 1 - eps))),
    "ldexp": lambda x, n: x * 2.0**n,
    "where": lambda condition, x, y: np.where(condition, x, y),
    "fma": lambda x, y, z: x * y + z,
    "addcmul": lambda x, y, z, value=1: x + value * y * z,
    "addcdiv": lambda x, y, z, value=1: x + value * y / z,
    "clamp_between": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "glu": lambda x, axis: _gated(x, axis, lambda b: 1 / (1 + np.exp(-b))),
    "reglu": lambda x, axis: _gated(x, axis, lambda b: np.maximum(b, 0)),
    "swiglu": lambda x, axis: _gated(x, axis, lambda b: b / (1 + np.exp(-b))),
    "geglu": lambda x, axis: _gated(x, axis, lambda b: b * np.vectorize(math.erfc)(-b / math.sqrt(2)) / 2),
    "geglu_tanh": lambda x, axis: _gated(
        x, axis, lambda b: b * (1 + np.tanh(math.sqrt(2 / math.pi) * (b + 0.044715 * b**3))) / 2
    ),
    "integer_pow": lambda x, exponent: np.power(x, float(exponent)),
    "affine": lambda x, scale, shift: scale * x + shift,
    "clamp": lambda x, min=-math.inf, max=math.inf: np.minimum(np.maximum(x, min), max),
    "lerp": lambda start, end, weight: (1 - weight) * start + weight * end,
    "prelu": lambda x, weight: np.where(x > 0, x, x * weight.reshape(1, -1, *(1,) * (x.ndim - 2))),
}


def made(line, *args):
    """NumPy's function of the same name as JAX's, or else PyTorch's."""
    if line.name in _BITS:
        return _BITS[line.name](*args)
    if line.name != "nextafter" and jnp.issubdtype(args[0].dtype, jnp.inexact):
        args = [wide(a) for a in args]
    theirs = (line.theirs("jax") or "").removeprefix("jax.numpy.")
    if hasattr(np, theirs):
        return getattr(np, theirs)(*args)
    torch = pytest.importorskip("torch")
    return line.call_theirs(torch, *map(torch.tensor, args)).numpy()


def _by_bits(fun):
    """A function of the string of an integer's bits."""

    def of(x):
        width = 8 * x.dtype.itemsize
        return np.array([fun(format(int(v) % 2**width, f"0{width}b")) for v in x.flat], x.dtype).reshape(x.shape)

    return of


def _shift(fun):
    """Exact, then wrapped; a shift by nothing sensible moves every bit out."""

    def of(x, count):
        width = 8 * x.dtype.itemsize
        wrap = lambda v: np.array(v % 2**width, f"uint{width}").astype(x.dtype)
        out = [
            wrap(fun(int(v), int(n) if 0 <= n < width else 2 * width)) for v, n in zip(x.flat, count.flat, strict=True)
        ]
        return np.array(out, x.dtype).reshape(x.shape)

    return lambda x, count: of(*np.broadcast_arrays(x, count))


_BITS = {
    "population_count": _by_bits(lambda bits: bits.count("1")),
    "clz": _by_bits(lambda bits: len(bits) - len(bits.lstrip("0"))),
    "ctz": _by_bits(lambda bits: len(bits) - len(bits.rstrip("0"))),
    "left_shift": _shift(lambda x, n: x << n),
    "right_shift": _shift(lambda x, n: x >> n),
    "cube": lambda x: (x if x.dtype.kind in "iu" else wide(x)) ** 3,
}


def value(name, *args, **kwargs):
    if name in MADE and name not in _ELEMENTWISE:
        return made(MADE[name], *args)
    return _ELEMENTWISE[name](*map(wide, args), **kwargs)
