"""Ops of one array with static parameters."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import checks
from .._core.bits import from_bits, highest, lowest, to_bits
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from . import _pattern
from ._arguments import cotangent, document, floats, number, wide, widen


def _declare(
    public, value, slope, cases, *, dtypes=checks.FLOATS, backward=None, decode=lambda dtype, **params: params
):
    """`value(x, **params)` and `slope(x, t, **params)`, the derivative times t, compute in the wide type. Since the
    derivative is a number for each element, tangent and backward are one kernel, which gets the parameters `backward`, or
    all. `decode(dtype, **params)` gives the parameters of value and slope where these are not the kernel's."""
    name = public.__name__

    def reference(x, **params):
        return (value(*widen(x), **decode(x.dtype, **params)).astype(x.dtype),)

    def native(x, *, save, **params):
        return _pattern.call(name, [x], [x.dtype], **params)

    def slope_reference(x, t, **params):
        return (slope(*widen(x, t), **decode(x.dtype, **params)).astype(t.dtype),)

    def slope_native(x, t, **params):
        read = {key: params[key] for key in backward or params}
        return _pattern.call(f"{name}_backward", [x, t], [t.dtype], **read)

    derivative = Body(slope_reference, slope_native)
    return declare(
        name,
        family="elementwise",
        category=OpCategory.UNARY_ELEMENTWISE,
        public=public,
        dtypes=dtypes,
        cases=cases,
        operands=("x",),
        differentiable=("x",),
        cut=_pattern.BY_DIMENSION,
        residuals=("x",),
        forward=Body(reference, native),
        tangent=derivative,
        backward=derivative,
        batched=as_they_are,
        kernels={"forward": (name,), "tangent": (f"{name}_backward",), "backward": (f"{name}_backward",)},
        default="xla",
    )


def _draw(*shape, avoid, gap):
    """Magnitudes to about 3, on both sides of the kinks `avoid` and not near them."""

    def draw(rng):
        x = rng.permutation(np.linspace(-3, 3, math.prod(shape)))
        for kink in avoid:
            x = np.where(np.abs(x - kink) < gap, kink + 2 * gap, x)
        return (x.reshape(shape),)

    return draw


def _cases(kinks, *kwargs, gap=0.02):
    shapes = ((3, 5, 7), (2, 16), (33,))
    return tuple(
        Case(", ".join(f"{k} {v}" for k, v in some.items()) or "defaults", _draw(*shape, avoid=kinks, gap=gap), some)
        for shape, some in zip(shapes, kwargs, strict=False)
    )


_BACKWARD = """The gradient of `{}`: its derivative at x, see the formula for dx, times dy.

    Args:
        x: the argument of `{}`.
        dy: the cotangent of its result, of x's shape and dtype.
        {}

    Returns:
        The cotangent of x.
    """


def _backward(forward, others="the other arguments: as there."):
    """Documents the backward function of `forward`."""

    def decorate(fun):
        fun.__doc__ = _BACKWARD.format(forward.__name__, forward.__name__, others)
        return fun

    return decorate


# ---------------------------------------------------------------------------------------------------------------------
# leaky_relu


@document(
    """y = x where x > 0, else negative_slope x
    dx = dy where x > 0, else negative_slope dy""",
    """x: array of floats.
    negative_slope: static number.""",
    "torch.nn.functional.leaky_relu; jax.nn.leaky_relu.",
)
def leaky_relu(x, negative_slope=0.01, *, prefer=None):
    """Leaky rectifier."""
    x = floats("leaky_relu", "x", x)
    return _LEAKY_RELU(x, negative_slope=number("leaky_relu", "negative_slope", negative_slope), prefer=prefer)


@_backward(leaky_relu)
def leaky_relu_backward(x, dy, negative_slope=0.01, *, prefer=None):
    op = "leaky_relu_backward"
    x = floats(op, "x", x)
    dy = cotangent(op, dy, x)
    return _LEAKY_RELU.vjp(x, dy, negative_slope=number(op, "negative_slope", negative_slope), prefer=prefer)


_LEAKY_RELU = _declare(
    leaky_relu,
    lambda x, negative_slope: jnp.where(x > 0, x, negative_slope * x),
    lambda x, t, negative_slope: jnp.where(x > 0, t, negative_slope * t),
    _cases([0], {}, {"negative_slope": -0.5}),
)

# ---------------------------------------------------------------------------------------------------------------------
# elu


@document(
    """y = x where x > 0, else alpha (exp(x) - 1)
    dx = dy where x > 0, else alpha exp(x) dy""",
    """x: array of floats.
    alpha: static number.""",
    "torch.nn.functional.elu; jax.nn.elu. Clevert et al., Exponential linear units (2016).",
)
def elu(x, alpha=1.0, *, prefer=None):
    """Exponential linear unit."""
    return _ELU(floats("elu", "x", x), alpha=number("elu", "alpha", alpha), prefer=prefer)


@_backward(elu)
def elu_backward(x, dy, alpha=1.0, *, prefer=None):
    op = "elu_backward"
    x = floats(op, "x", x)
    return _ELU.vjp(x, cotangent(op, dy, x), alpha=number(op, "alpha", alpha), prefer=prefer)


def _below(x):
    """x where the exponential is taken; elsewhere its overflow would make derivatives NaN."""
    return jnp.where(x > 0, 0, x)


_ELU = _declare(
    elu,
    lambda x, alpha: jnp.where(x > 0, x, alpha * jnp.expm1(_below(x))),
    lambda x, t, alpha: jnp.where(x > 0, t, alpha * jnp.exp(_below(x)) * t),
    _cases([0], {}, {"alpha": 0.7}),
)

# ---------------------------------------------------------------------------------------------------------------------
# threshold


@document(
    """y = value where x <= threshold, else x
    dx = 0 where x <= threshold, else dy""",
    """x: array of floats.
    threshold, value: static numbers.""",
    "torch.nn.functional.threshold.",
)
def threshold(x, threshold, value, *, prefer=None):
    """What is not above a threshold becomes a value."""
    op = "threshold"
    return _THRESHOLD(
        floats(op, "x", x),
        threshold=number(op, "threshold", threshold),
        value=number(op, "value", value),
        prefer=prefer,
    )


@_backward(threshold, "threshold, prefer: as there.")
def threshold_backward(x, dy, threshold, *, prefer=None):
    op = "threshold_backward"
    x = floats(op, "x", x)
    dy = cotangent(op, dy, x)
    return _THRESHOLD.vjp(x, dy, threshold=number(op, "threshold", threshold), value=0.0, prefer=prefer)


_THRESHOLD = _declare(
    threshold,
    lambda x, threshold, value: jnp.where(x <= threshold, value, x),
    lambda x, t, threshold, value: jnp.where(x <= threshold, 0, t),
    _cases([0.25], {"threshold": 0.25, "value": -1.5}),
    backward=("threshold",),
)

# ---------------------------------------------------------------------------------------------------------------------
# hardtanh


@document(
    """y = min(max(x, min_val), max_val)
    dx = 0 where x <= min_val or x >= max_val, else dy""",
    """x: array of floats.
    min_val, max_val: static numbers, min_val <= max_val.""",
    "torch.nn.functional.hardtanh; jax.nn.hard_tanh.",
)
def hardtanh(x, min_val=-1.0, max_val=1.0, *, prefer=None):
    """Clamp with a gradient of 0 at the bounds."""
    return _HARDTANH(floats("hardtanh", "x", x), **_range("hardtanh", min_val, max_val), prefer=prefer)


@_backward(hardtanh)
def hardtanh_backward(x, dy, min_val=-1.0, max_val=1.0, *, prefer=None):
    op = "hardtanh_backward"
    x = floats(op, "x", x)
    return _HARDTANH.vjp(x, cotangent(op, dy, x), **_range(op, min_val, max_val), prefer=prefer)


def _range(op, min_val, max_val):
    low, high = number(op, "min_val", min_val), number(op, "max_val", max_val)
    if low > high:
        raise ValueError(f"{op}: min_val must be at most max_val, {high}, got {low}")
    return {"min_val": low, "max_val": high}


def _clip(x, low, high):
    """NaN stays."""
    raised = jnp.where(x < low, low, x)
    return jnp.where(raised > high, high, raised)


_HARDTANH = _declare(
    hardtanh,
    lambda x, min_val, max_val: _clip(x, min_val, max_val),
    lambda x, t, min_val, max_val: jnp.where((x <= min_val) | (x >= max_val), 0, t),
    _cases([-1, 1, -0.5, 2], {}, {"min_val": -0.5, "max_val": 2.0}),
)

# ---------------------------------------------------------------------------------------------------------------------
# softshrink, hardshrink


@document(
    """y = x - lambd where x > lambd, x + lambd where x < -lambd, else 0
    dx = 0 where |x| <= lambd, else dy""",
    """x: array of floats.
    lambd: static number >= 0.""",
    "torch.nn.functional.softshrink.",
)
def softshrink(x, lambd=0.5, *, prefer=None):
    """Shrinks towards 0."""
    return _SOFTSHRINK(floats("softshrink", "x", x), lambd=_not_negative("softshrink", lambd), prefer=prefer)


@_backward(softshrink)
def softshrink_backward(x, dy, lambd=0.5, *, prefer=None):
    op = "softshrink_backward"
    x = floats(op, "x", x)
    return _SOFTSHRINK.vjp(x, cotangent(op, dy, x), lambd=_not_negative(op, lambd), prefer=prefer)


@document(
    """y = 0 where |x| <= lambd, else x
    dx = 0 where |x| <= lambd, else dy""",
    """x: array of floats.
    lambd: static number; nothing is shrunk if it is negative.""",
    "torch.nn.functional.hardshrink.",
)
def hardshrink(x, lambd=0.5, *, prefer=None):
    """What is near 0 becomes 0."""
    return _HARDSHRINK(floats("hardshrink", "x", x), lambd=number("hardshrink", "lambd", lambd), prefer=prefer)


@_backward(hardshrink)
def hardshrink_backward(x, dy, lambd=0.5, *, prefer=None):
    op = "hardshrink_backward"
    x = floats(op, "x", x)
    return _HARDSHRINK.vjp(x, cotangent(op, dy, x), lambd=number(op, "lambd", lambd), prefer=prefer)


def _not_negative(op, lambd):
    lambd = number(op, "lambd", lambd)
    if lambd < 0:
        raise ValueError(f"{op}: lambd must be at least 0, got {lambd}")
    return lambd


def _inside(x, lambd):
    return (x >= -lambd) & (x <= lambd)


def _shrink_slope(x, t, lambd):
    return jnp.where(_inside(x, lambd), 0, t)


_SOFTSHRINK = _declare(
    softshrink,
    lambda x, lambd: jnp.where(_inside(x, lambd), 0, jnp.where(x > lambd, x - lambd, x + lambd)),
    _shrink_slope,
    _cases([-0.5, 0.5, -1.25, 1.25], {}, {"lambd": 1.25}),
)
_HARDSHRINK = _declare(
    hardshrink,
    lambda x, lambd: jnp.where(_inside(x, lambd), 0, x),
    _shrink_slope,
    _cases([-0.5, 0.5, -1.25, 1.25], {}, {"lambd": 1.25}),
)

# ---------------------------------------------------------------------------------------------------------------------
# powi

_MOST = 2**31 - 1


@document(
    """y = x^exponent
    dx = exponent x^(exponent - 1) dy, 0 for exponent 0""",
    """x: array of floats.
    exponent: static integer of 32 bits, of either sign.""",
    "torch.pow; jax.lax.integer_pow.",
    precision="float16 and bfloat16 compute in float32. By repeated squaring; 1 / x^-exponent where that is negative.",
)
def powi(x, exponent, *, prefer=None):
    """Integer power."""
    return _POWI(floats("powi", "x", x), exponent=_exponent("powi", exponent), prefer=prefer)


@_backward(powi)
def powi_backward(x, dy, exponent, *, prefer=None):
    op = "powi_backward"
    x = floats(op, "x", x)
    return _POWI.vjp(x, cotangent(op, dy, x), exponent=_exponent(op, exponent), prefer=prefer)


def _exponent(op, value):
    value = checks.integer(op, "exponent", value, -_MOST)
    if value > _MOST:
        raise ValueError(f"{op}: exponent must be at most {_MOST}, got {value}")
    return float(value)


_POWI = _declare(
    powi,
    lambda x, exponent: lax.integer_pow(x, int(exponent)),
    lambda x, t, exponent: exponent * lax.integer_pow(x, int(exponent) - 1) * t if exponent else jnp.zeros_like(t),
    _cases([0], {"exponent": 3}, {"exponent": -2}, {"exponent": 1}, gap=0.6),
)

# ---------------------------------------------------------------------------------------------------------------------
# affine


@document(
    """y = scale x + shift
    dx = scale dy""",
    """x: array of floats.
    scale, shift: static numbers.""",
    "x * scale + shift in plain JAX.",
)
def affine(x, scale, shift, *, prefer=None):
    """Scale and shift by numbers."""
    op = "affine"
    return _AFFINE(
        floats(op, "x", x), scale=number(op, "scale", scale), shift=number(op, "shift", shift), prefer=prefer
    )


@_backward(affine, "scale, prefer: as there.")
def affine_backward(x, dy, scale, *, prefer=None):
    op = "affine_backward"
    x = floats(op, "x", x)
    return _AFFINE.vjp(x, cotangent(op, dy, x), scale=number(op, "scale", scale), shift=0.0, prefer=prefer)


_AFFINE = _declare(
    affine,
    lambda x, scale, shift: scale * x + shift,
    lambda x, t, scale, shift: scale * t,
    _cases([], {"scale": -1.75, "shift": 0.3}),
    backward=("scale",),
)

# ---------------------------------------------------------------------------------------------------------------------
# clamp


@document(
    """y = min(max(x, min), max)
    dx = dy where min <= x <= max, else 0""",
    """x: array of floats or integers.
    min, max: static numbers, integers for an x of integers, or None for no bound. They are rounded to x's dtype.""",
    "torch.clamp, whose gradient at a bound is dy too; jnp.clip, whose gradient there is dy / 2.",
    precision="Exact. NaN propagates.",
)
def clamp(x, min=None, max=None, *, prefer=None):
    """Clamp to a range."""
    x = checks.array("clamp", "x", x)
    checks.dtype("clamp", "x", x, (*checks.FLOATS, *checks.INTEGERS))
    return _CLAMP(x, **_bounds("clamp", min, max, x.dtype), prefer=prefer)


@_backward(clamp)
def clamp_backward(x, dy, min=None, max=None, *, prefer=None):
    op = "clamp_backward"
    x = floats(op, "x", x)
    return _CLAMP.vjp(x, cotangent(op, dy, x), **_bounds(op, min, max, x.dtype), prefer=prefer)


def _bounds(op, low, high, dtype):
    """The bounds in x's dtype, as the bits that a kernel gets."""
    bound = functools.partial(_bound, op, dtype=dtype)
    return {
        "min_bits": to_bits(bound("min", low, lowest(dtype)), dtype),
        "max_bits": to_bits(bound("max", high, highest(dtype)), dtype),
    }


def _bound(op, name, value, without, *, dtype):
    if value is None:
        return without
    if not jnp.issubdtype(dtype, jnp.integer):
        return number(op, name, value)
    least, most = jnp.iinfo(dtype).min, jnp.iinfo(dtype).max
    value = checks.integer(op, name, value, least if name == "max" else -math.inf)
    if name == "min" and value > most:
        raise ValueError(f"{op}: min must be at most {most}, the largest {dtype.name}, got {value}")
    return min(max(value, least), most)


def _bounds_of(dtype, *, min_bits, max_bits):
    of = lambda bits: from_bits(bits, dtype).astype(wide(dtype))
    return {"low": of(min_bits), "high": of(max_bits)}


_CLAMP = _declare(
    clamp,
    _clip,
    lambda x, t, low, high: jnp.where((x >= low) & (x <= high), t, 0),
    _cases([-1, 2], {"min": -1, "max": 2}, {"min": -1}, {"max": 2}),
    dtypes=(*checks.FLOATS, *checks.INTEGERS),
    decode=_bounds_of,
)
