"""Ops of one array: their declaration, what a line of a table makes of them, and the documentation of gradients."""

import functools
import math

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation, Unary, UnaryBackward
from . import _pattern
from ._arguments import BOOL, PRECISION, cotangent, document, floats, listed, widen
from ._made import MADE, Made, named


def unary(
    name, summary, y, dx, value, source, *, slope=None, dtypes=checks.FLOATS, at=(-3, 3), kinks=(), precision=None,
    of_complex=None, approximation=None,
) -> tuple[Unary, UnaryBackward]:  # fmt: skip
    """The op and its backward function. `y` and `dx` are formulas for readers, and `value(x)` and `slope(x, t)`, the
    derivative times t, what they say in plain JAX; by default JAX's own derivative. Cases are drawn from the range `at`, not
    near `kinks`, where the derivative jumps. `of_complex(x, implementation)` is what other ops make of complex numbers.
    `approximation` is the op and the backward function that `approximate=True` calls."""
    slope = slope or (lambda x, t: jax.jvp(value, (x,), (t,))[1])
    return _make(
        name, summary, f"y = {y}\ndx = {dx}", value, slope, source, dtypes, at, kinks, precision, of_complex=of_complex,
        approximation=approximation,
    )  # fmt: skip


holomorphic = functools.partial(unary, dtypes=checks.INEXACT)


def unary_value(name, summary, y, value, source, *, dtypes, why, precision="exact.") -> Unary:
    """An op without a derivative, for the reason `why`."""
    return _make(name, summary, f"y = {y}", value, None, source, dtypes, (-3, 3), (), precision, why)[0]


def _make(name, summary, formula, value, slope, source, dtypes, at, kinks, precision, why=None, of_complex=None,
          approximation=None):  # fmt: skip
    taken = (*dtypes, *(checks.COMPLEX if of_complex else ()))
    is_composed = lambda x: of_complex is not None and x.dtype.name in checks.COMPLEX

    def fun(x: ArrayLike, *, implementation: Implementation = None) -> Array:
        x = checks.array(name, "x", x)
        x = x.astype(bool) if dtypes == BOOL else x  # what is not 0 is true
        checks.dtype(name, "x", x, taken)
        return of_complex(x, implementation) if is_composed(x) else op(x, implementation=implementation)

    def backward(x: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None) -> Array:
        x = floats(backward.__name__, "x", x, taken)
        if is_composed(x):
            y, pull = jax.vjp(lambda x: of_complex(x, implementation), x)
            return pull(cotangent(backward.__name__, dy, y, "the result"))[0]
        return op.vjp(x, cotangent(backward.__name__, dy, x), implementation=implementation)

    args = f"x: array of any shape: {listed(taken)}."
    if approximation:
        fun, backward = approximable(approximation, fun, backward)
        args += f"\napproximate: static, whether to compute `{approximation[0].__name__}` instead."
    fun = document(formula, args, source, precision=precision or PRECISION)(named(fun, name, summary))
    shapes = (3, 5, 7), (2, 16), (33,)
    cases = tuple(Case(f"{len(shape)} axes", _draw(*shape, at=at, avoid=kinks, gap=0.02)) for shape in shapes)
    MADE[name] = Made(name, 1, tuple(dtypes), value, (at,), source, slope is not None)
    op = declare_unary(fun, value, slope, cases, dtypes=dtypes, why=why)
    return fun, backward_of(fun)(named(backward, f"{name}_backward", None))


def approximable(approximation, exact, exact_backward):
    """The op and its backward function, which take `approximate=True` for another op's pair."""
    other, other_backward = approximation

    def fun(x: ArrayLike, approximate: bool = False, *, implementation: Implementation = None) -> Array:
        chosen = other if checks.flag(fun.__name__, "approximate", approximate) else exact
        return chosen(x, implementation=implementation)

    def backward(
        x: ArrayLike, dy: ArrayLike, approximate: bool = False, *, implementation: Implementation = None
    ) -> Array:
        chosen = other_backward if checks.flag(backward.__name__, "approximate", approximate) else exact_backward
        return chosen(x, dy, implementation=implementation)

    return fun, backward


def declare_unary(
    public,
    value,
    slope,
    cases,
    *,
    dtypes=checks.FLOATS,
    backward=None,
    decode=lambda dtype, **params: params,
    why=None,
    target=None,
):
    """`value(x, **params)` and `slope(x, t, **params)`, the derivative times t, compute in the wide type. Since the
    derivative is a number for each element, tangent and backward are one kernel, which gets the parameters `backward`, or
    all. `decode(dtype, **params)` gives the parameters of value and slope where these are not the kernel's. An op without a
    slope has no derivative, and `why` says why. `target` is the kernel's name where it is not the op's."""
    name = public.__name__
    target = target or name

    def reference(x, **params):
        return (value(*widen(x), **decode(x.dtype, **params)).astype(x.dtype),)

    def native(x, *, save, **params):
        return _pattern.call(target, [x], [x.dtype], **params)

    def slope_reference(x, t, **params):
        return (slope(*widen(x, t), **decode(x.dtype, **params)).astype(t.dtype),)

    def slope_native(x, t, **params):
        read = {key: params[key] for key in backward or params}
        return _pattern.call(f"{target}_backward", [x, t], [t.dtype], **read)

    derivative = Body(slope_reference, slope_native)
    targets = (f"{target}_backward",)
    more = dict(
        differentiable=("x",),
        residuals=("x",),
        tangent=derivative,
        backward=derivative,
        kernels={"forward": (target,), "tangent": targets, "backward": targets},
    )
    return declare(
        name,
        family="elementwise",
        category=OpCategory.UNARY_ELEMENTWISE,
        public=public,
        dtypes=dtypes,
        cases=cases,
        operands=("x",),
        cut=_pattern.BY_DIMENSION,
        forward=Body(reference, native),
        batched=as_they_are,
        kin="unary",
        default="xla",
        weak=True,
        **(more if slope else dict(constant={"x": why}, kernels={"forward": (target,)})),
    )


def _draw(*shape, at=(-3, 3), avoid, gap):
    """Evenly spread over a range, in any order, and not near the kinks `avoid`."""

    def draw(rng):
        x = rng.permutation(np.linspace(*at, math.prod(shape)))
        for kink in avoid:
            x = np.where(np.abs(x - kink) < gap, kink + 2 * gap, x)
        return (x.reshape(shape),)

    return draw


def cases_around(kinks, *kwargs, gap=0.02, at=(-3, 3)):
    """A case for each set of parameters; x is not near a kink, where the derivative jumps."""
    shapes = ((3, 5, 7), (2, 16), (33,))
    return tuple(
        Case(
            ", ".join(f"{k} {v}" for k, v in some.items()) or "defaults",
            _draw(*shape, at=at, avoid=kinks, gap=gap),
            some,
        )
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


def backward_of(forward, others="the other arguments: as there.") -> Decorator:
    """Documents the backward function of `forward`."""

    def decorate(fun):
        fun.__doc__ = _BACKWARD.format(forward.__name__, forward.__name__, others)
        return fun

    return decorate
