"""Ops of three arrays."""

import jax.numpy as jnp

from .._core import checks
from ._arguments import document, number
from ._nary import RETURNS, backward_of, broadcast_cases, declare_nary, operands, vjp

NAMES = ("x1", "x2", "x3")
_THREE = "arrays or numbers, which broadcast; JAX promotes their dtypes to one of floats."

# ---------------------------------------------------------------------------------------------------------------------
# fma


@document(
    """y = x1 x2 + x3
    dx1 = x2 dy, dx2 = x1 dy, dx3 = dy""",
    f"x1, x2, x3: {_THREE}",
    "math.fma; std::fma of C++.",
    returns=RETURNS,
    precision="rounded once; float16 and bfloat16 compute in float32, and round again. Plain JAX may round twice.",
)
def fma(x1, x2, x3, *, implementation=None):
    """The product of two, and the sum with a third."""
    return _FMA(*operands("fma", NAMES, (x1, x2, x3), checks.FLOATS)[0], implementation=implementation)


@backward_of(fma, "x1, x2, x3")
def fma_backward(x1, x2, x3, dy, *, implementation=None):
    return vjp(_FMA, NAMES, (x1, x2, x3), dy, implementation)


_FMA = declare_nary(
    fma,
    NAMES,
    lambda x, y, z: x * y + z,
    lambda x, y, z, d: (y * d, x * d, d),
    broadcast_cases((-3, 3), (-3, 3), (-3, 3)),
)

# ---------------------------------------------------------------------------------------------------------------------
# addcmul, addcdiv


@document(
    """y = x1 + value x2 x3
    dx1 = dy, dx2 = value x3 dy, dx3 = value x2 dy""",
    f"""x1, x2, x3: {_THREE}
    value: static number.""",
    "torch.addcmul.",
    returns=RETURNS,
)
def addcmul(x1, x2, x3, value=1.0, *, implementation=None):
    """A sum with a scaled product."""
    value = number("addcmul", "value", value)
    return _ADDCMUL(
        *operands("addcmul", NAMES, (x1, x2, x3), checks.FLOATS)[0], value=value, implementation=implementation
    )


@backward_of(addcmul, "x1, x2, x3, value")
def addcmul_backward(x1, x2, x3, dy, value=1.0, *, implementation=None):
    return vjp(_ADDCMUL, NAMES, (x1, x2, x3), dy, implementation, value=number("addcmul_backward", "value", value))


@document(
    """y = x1 + value x2 / x3
    dx1 = dy, dx2 = value dy / x3, dx3 = -value x2 dy / x3^2""",
    f"""x1, x2, x3: {_THREE}
    value: static number.""",
    "torch.addcdiv.",
    returns=RETURNS,
)
def addcdiv(x1, x2, x3, value=1.0, *, implementation=None):
    """A sum with a scaled quotient."""
    value = number("addcdiv", "value", value)
    return _ADDCDIV(
        *operands("addcdiv", NAMES, (x1, x2, x3), checks.FLOATS)[0], value=value, implementation=implementation
    )


@backward_of(addcdiv, "x1, x2, x3, value")
def addcdiv_backward(x1, x2, x3, dy, value=1.0, *, implementation=None):
    return vjp(_ADDCDIV, NAMES, (x1, x2, x3), dy, implementation, value=number("addcdiv_backward", "value", value))


_ADDCMUL = declare_nary(
    addcmul,
    NAMES,
    lambda x, y, z, value: x + value * y * z,
    lambda x, y, z, d, value: (d, value * z * d, value * y * d),
    broadcast_cases((-3, 3), (-3, 3), (-3, 3), value=-0.7),
)
_ADDCDIV = declare_nary(
    addcdiv,
    NAMES,
    lambda x, y, z, value: x + value * (y / z),
    lambda x, y, z, d, value: (d, value * (d / z), -value * (y / z) * (d / z)),
    broadcast_cases((-3, 3), (-3, 3), (0.5, 3), value=1.3),
)

# ---------------------------------------------------------------------------------------------------------------------
# clamp_between

BOUNDS = ("x", "min", "max")


@document(
    """y = min(max(x, min), max)
    dx = dy where min <= x <= max, else 0
    dmin = dy where x < min < max, else 0; dmax = dy where x > max or min > max, else 0""",
    f"x, min, max: {_THREE}",
    "torch.clamp with tensors; jnp.clip, whose gradient at a bound is split.",
    returns=RETURNS,
    precision="exact. NaN in any of the three propagates.",
)
def clamp_between(x, min, max, *, implementation=None):
    """Clamp to a range whose bounds are arrays; `clamp` takes static numbers."""
    return _CLAMP_BETWEEN(
        *operands("clamp_between", BOUNDS, (x, min, max), checks.FLOATS)[0], implementation=implementation
    )


@backward_of(clamp_between, "x, min, max")
def clamp_between_backward(x, min, max, dy, *, implementation=None):
    return vjp(_CLAMP_BETWEEN, BOUNDS, (x, min, max), dy, implementation)


def _between(x, low, high):
    return jnp.minimum(jnp.maximum(x, low), high)


def _between_slopes(x, low, high, d):
    some = lambda condition: jnp.where(condition, d, 0)
    return some((x >= low) & (x <= high)), some((x < low) & (low < high)), some((x > high) | (high < low))


# XLA's compiler for CPUs (jaxlib 0.10.2) ends at the derivatives in float16 of a column, a row and a matrix.
_CASES = tuple(case for case in broadcast_cases((-3, 3), (-2, 0), (0.2, 2)) if case.name != "columns")
_CLAMP_BETWEEN = declare_nary(clamp_between, BOUNDS, _between, _between_slopes, _CASES)
