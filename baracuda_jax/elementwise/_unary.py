"""What ops of one array with static parameters share: the declaration, cases and the documentation of gradients."""

import math

import numpy as np

from .._core import checks
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from . import _pattern
from ._arguments import widen


def declare_unary(
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


def cases_around(kinks, *kwargs, gap=0.02):
    """A case for each set of parameters; x is not near a kink, where the derivative jumps."""
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


def backward_of(forward, others="the other arguments: as there."):
    """Documents the backward function of `forward`."""

    def decorate(fun):
        fun.__doc__ = _BACKWARD.format(forward.__name__, forward.__name__, others)
        return fun

    return decorate
