"""Integer powers, and scale and shift."""

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from ._arguments import cotangent, document, floats, number
from ._unary import backward_of, cases_around, declare_unary

# ---------------------------------------------------------------------------------------------------------------------
# integer_pow


_MOST = 2**31 - 1


@api
@document(
    """y = x^exponent
    dx = exponent x^(exponent - 1) dy, 0 for exponent 0""",
    """x: array of floats or complex numbers.
    exponent: static integer of 32 bits, of either sign.""",
    "torch.pow; jax.lax.integer_pow.",
    precision="float16 and bfloat16 compute in float32. By repeated squaring; 1 / x^-exponent where that is negative.",
)
def integer_pow(x: ArrayLike, exponent: int, *, implementation: Implementation = None) -> Array:
    """Integer power."""
    return _INTEGER_POW(
        floats("integer_pow", "x", x, checks.INEXACT),
        exponent=_exponent("integer_pow", exponent),
        implementation=implementation,
    )


powi = integer_pow


@api
@backward_of(integer_pow)
def integer_pow_backward(x: ArrayLike, dy: ArrayLike, exponent: int, *, implementation: Implementation = None) -> Array:
    op = "integer_pow_backward"
    x = floats(op, "x", x, checks.INEXACT)
    return _INTEGER_POW.vjp(x, cotangent(op, dy, x), exponent=_exponent(op, exponent), implementation=implementation)


def _exponent(op, value):
    checks.no_array(op, "exponent", value, "pow")
    if isinstance(value, float):
        raise TypeError(f"{op}: exponent must be an integer, got {value!r}; pow takes any number")
    value = checks.integer(op, "exponent", value, -_MOST)
    if value > _MOST:
        raise ValueError(f"{op}: exponent must be at most {_MOST}, got {value}")
    return float(value)


_INTEGER_POW = declare_unary(
    integer_pow,
    lambda x, exponent: lax.integer_pow(x, int(exponent)),
    lambda x, t, exponent: exponent * lax.integer_pow(x, int(exponent) - 1) * t if exponent else jnp.zeros_like(t),
    cases_around([0], {"exponent": 3}, {"exponent": -2}, {"exponent": 1}, gap=0.6),
    dtypes=checks.INEXACT,
    target="powi",
)

# ---------------------------------------------------------------------------------------------------------------------
# affine


@api
@document(
    """y = scale x + shift
    dx = scale dy""",
    """x: array of floats.
    scale, shift: static numbers.""",
    "x * scale + shift in plain JAX.",
)
def affine(x: ArrayLike, scale: float, shift: float, *, implementation: Implementation = None) -> Array:
    """Scale and shift by numbers."""
    op = "affine"
    return _AFFINE(
        floats(op, "x", x),
        scale=number(op, "scale", scale),
        shift=number(op, "shift", shift),
        implementation=implementation,
    )


@api
@backward_of(affine, "scale, implementation: as there.")
def affine_backward(x: ArrayLike, dy: ArrayLike, scale: float, *, implementation: Implementation = None) -> Array:
    op = "affine_backward"
    x = floats(op, "x", x)
    return _AFFINE.vjp(
        x, cotangent(op, dy, x), scale=number(op, "scale", scale), shift=0.0, implementation=implementation
    )


_AFFINE = declare_unary(
    affine,
    lambda x, scale, shift: scale * x + shift,
    lambda x, t, scale, shift: scale * t,
    cases_around([], {"scale": -1.75, "shift": 0.3}),
    backward=("scale",),
)
