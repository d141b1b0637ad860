"""Clamps to a range, which differ in the gradient at its bounds, and in dtypes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bits, highest, lowest, to_bits
from .._core.types import Implementation
from .._core.wide import wide_dtype
from ._arguments import cotangent, document, floats, number
from ._comparison import maximum, minimum
from ._nary import broadcast_cases, declare_nary, operands, vjp
from ._unary import backward_of, cases_around, declare_unary

# ---------------------------------------------------------------------------------------------------------------------
# hardtanh


@api
@document(
    """y = min(max(x, min_val), max_val)
    dx = 0 where x <= min_val or x >= max_val, else dy""",
    """x: array of floats.
    min_val, max_val: static numbers, min_val <= max_val.""",
    "torch.nn.functional.hardtanh; jax.nn.hard_tanh.",
)
def hardtanh(
    x: ArrayLike, min_val: float = -1.0, max_val: float = 1.0, *, implementation: Implementation = None
) -> Array:
    """Clamp with a gradient of 0 at the bounds."""
    return _HARDTANH(floats("hardtanh", "x", x), **_range("hardtanh", min_val, max_val), implementation=implementation)


@api
@backward_of(hardtanh)
def hardtanh_backward(
    x: ArrayLike, dy: ArrayLike, min_val: float = -1.0, max_val: float = 1.0, *, implementation: Implementation = None
) -> Array:
    op = "hardtanh_backward"
    x = floats(op, "x", x)
    return _HARDTANH.vjp(x, cotangent(op, dy, x), **_range(op, min_val, max_val), implementation=implementation)


def _range(op, min_val, max_val):
    low, high = number(op, "min_val", min_val), number(op, "max_val", max_val)
    if low > high:
        raise ValueError(f"{op}: min_val must be at most max_val, {high}, got {low}")
    return {"min_val": low, "max_val": high}


def _clip(x, low, high):
    """NaN stays."""
    raised = jnp.where(x < low, low, x)
    return jnp.where(raised > high, high, raised)


_HARDTANH = declare_unary(
    hardtanh,
    lambda x, min_val, max_val: _clip(x, min_val, max_val),
    lambda x, t, min_val, max_val: jnp.where((x <= min_val) | (x >= max_val), 0, t),
    cases_around([-1, 1, -0.5, 2], {}, {"min_val": -0.5, "max_val": 2.0}),
)

# ---------------------------------------------------------------------------------------------------------------------
# clamp


@api
@document(
    """y = min(max(x, min), max)
    dx = dy where min <= x <= max, else 0
    dmin = dy where x < min < max, else 0; dmax = dy where x > max or min > max, else 0, of bounds that are arrays""",
    """x: array of floats or integers.
    min, max: None for no bound, numbers, or arrays. Numbers are static, integers for an x of integers, and are rounded to
        x's dtype. Arrays broadcast with x, and JAX promotes their dtypes to one; they have gradients.""",
    "torch.clamp, whose gradient at a bound is dy too; jnp.clip, whose gradient there is dy / 2.",
    returns="An array of x's shape and dtype, or those of x and bounds that are arrays.",
    precision="Exact. NaN in x or a bound propagates.",
)
def clamp(
    x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None, *, implementation: Implementation = None
) -> Array:
    """Clamp to a range."""
    if _is_array(min) or _is_array(max):
        return _clamped_by_arrays(x, min, max, implementation)
    x = checks.array("clamp", "x", x)
    checks.dtype("clamp", "x", x, checks.NUMBERS)
    return _CLAMP(x, **_bounds("clamp", min, max, x.dtype), implementation=implementation)


@api
def clamp_backward(
    x: ArrayLike,
    dy: ArrayLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array | tuple[Array | None, ...]:
    """The gradient of `clamp`: see its formula.

    Args:
        x, min, max: the arguments of `clamp`; x of floats.
        dy: the cotangent of its result, of its shape and dtype.
        implementation: as there.

    Returns:
        The cotangent of x; where a bound is an array, a tuple of those of x, min and max, None for a bound that is none.
    """
    op = "clamp_backward"
    if _is_array(min) or _is_array(max):
        found = vjp(_CLAMP_BETWEEN, BOUNDS, (x, *_filled(min, max)), dy, implementation, op)
        return tuple(
            ct if i == 0 or _is_array(b) else None for i, (ct, b) in enumerate(zip(found, (x, min, max), strict=True))
        )
    x = floats(op, "x", x)
    return _CLAMP.vjp(x, cotangent(op, dy, x), **_bounds(op, min, max, x.dtype), implementation=implementation)


BOUNDS = ("x", "min", "max")


def _is_array(bound):
    return isinstance(bound, jax.Array | np.ndarray)


def _clamped_by_arrays(x, low, high, implementation):
    given = {name: value for name, value in zip(BOUNDS, (x, low, high), strict=True) if value is not None}
    arrays = dict(zip(given, operands("clamp", tuple(given), tuple(given.values()), checks.NUMBERS)[0], strict=True))
    y = arrays["x"]
    if jnp.issubdtype(y.dtype, jnp.inexact):
        return _CLAMP_BETWEEN(
            *operands("clamp", BOUNDS, (x, *_filled(low, high)), checks.FLOATS)[0], implementation=implementation
        )
    y = maximum(y, arrays["min"], implementation=implementation) if "min" in arrays else y
    return minimum(y, arrays["max"], implementation=implementation) if "max" in arrays else y


def _filled(low, high):
    """Both bounds; one that is None is infinite, of a weak type that changes no dtype."""
    return -math.inf if low is None else low, math.inf if high is None else high


def _bounds(op, low, high, dtype):
    """The bounds, rounded to x's dtype, as the bits of what is computed in."""
    bits = lambda *bound: to_bits(np.asarray(_bound(op, *bound, dtype=dtype), dtype), wide_dtype(dtype))
    return {"min_bits": bits("min", low, lowest(dtype)), "max_bits": bits("max", high, highest(dtype))}


def _bound(op, name, value, without, *, dtype):
    if value is None:
        return without
    if not jnp.issubdtype(dtype, jnp.integer):
        return number(op, name, value)
    smallest, most = jnp.iinfo(dtype).min, jnp.iinfo(dtype).max
    value = checks.integer(op, name, value, smallest if name == "max" else -math.inf)
    if name == "min" and value > most:
        raise ValueError(f"{op}: min must be at most {most}, the largest {dtype.name}, got {value}")
    return min(max(value, smallest), most)


def _bounds_of(dtype, *, min_bits, max_bits):
    of = lambda bits: from_bits(bits, wide_dtype(dtype))
    return {"low": of(min_bits), "high": of(max_bits)}


_CLAMP = declare_unary(
    clamp,
    _clip,
    lambda x, t, low, high: jnp.where((x >= low) & (x <= high), t, 0),
    cases_around([-1, 2], {"min": -1, "max": 2}, {"min": -1}, {"max": 2}),
    dtypes=checks.NUMBERS,
    decode=_bounds_of,
)


def _between(x, low, high):
    return jnp.minimum(jnp.maximum(x, low), high)


def _between_slopes(x, low, high, d):
    some = lambda condition: jnp.where(condition, d, 0)
    return some((x >= low) & (x <= high)), some((x < low) & (low < high)), some((x > high) | (high < low))


# XLA's compiler for CPUs (jaxlib 0.10.2) ends at the derivatives in float16 of a column, a row and a matrix.
_CASES = tuple(case for case in broadcast_cases((-3, 3), (-2, 0), (0.2, 2)) if case.name != "columns")
_CLAMP_BETWEEN = declare_nary(clamp, BOUNDS, _between, _between_slopes, _CASES, name="clamp_between")
