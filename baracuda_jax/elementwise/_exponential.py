"""Exponentials, logarithms and powers."""

import math

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.types import Implementation
from . import _pattern
from ._arguments import broadcasting, cotangent_of_result, document, floats, wide, wide_dtype
from ._nary import CATEGORIES, backward_of, binary
from ._unary import holomorphic

exp, exp_backward = holomorphic("exp", "The exponential.", "e^x", "e^x dy", jnp.exp, "torch.exp; jax.numpy.exp")
exp2, exp2_backward = holomorphic("exp2", "The power of 2.", "2^x", "log(2) 2^x dy", jnp.exp2, "torch.exp2; jax.numpy.exp2",
    slope=lambda x, t: jnp.exp2(x) * math.log(2) * t)  # fmt: skip
expm1, expm1_backward = holomorphic("expm1", "The exponential less 1, exact near 0.", "e^x - 1", "e^x dy", jnp.expm1,
    "torch.expm1; jax.numpy.expm1", slope=lambda x, t: jnp.exp(x) * t)  # fmt: skip
log, log_backward = holomorphic("log", "The natural logarithm.", "log(x)", "dy / x", jnp.log, "torch.log; jax.numpy.log",
    at=(0.1, 4))  # fmt: skip
log2, log2_backward = holomorphic("log2", "The logarithm to base 2.", "log(x) / log(2)", "dy / (x log(2))", jnp.log2,
    "torch.log2; jax.numpy.log2", slope=lambda x, t: t / (x * math.log(2)), at=(0.1, 4))  # fmt: skip
log10, log10_backward = holomorphic("log10", "The logarithm to base 10.", "log(x) / log(10)", "dy / (x log(10))", jnp.log10,
    "torch.log10; jax.numpy.log10", slope=lambda x, t: t / (x * math.log(10)), at=(0.1, 4))  # fmt: skip
log1p, log1p_backward = holomorphic("log1p", "The logarithm of 1 + x, exact near 0.", "log(1 + x)", "dy / (1 + x)",
    jnp.log1p, "torch.log1p; jax.numpy.log1p", at=(-0.8, 3))  # fmt: skip


def _pow_slopes(x, y, d):
    dx = jnp.where(y == 0, 0, y * jnp.power(x, jnp.where(y == 0, 1, y) - 1) * d)
    return dx, jnp.log(jnp.where(x == 0, 1, x)) * jnp.power(x, y) * d


pow, pow_backward = binary("pow", "The power.", "x1^x2",
    "dx1 = x2 x1^(x2 - 1) dy, 0 where x2 is 0\ndx2 = log(x1) y dy, 0 where x1 is 0",
    jnp.power, "torch.pow; jax.numpy.power", slopes=_pow_slopes, at=((0.3, 3), (-2, 3)),
    dtypes=checks.INEXACT)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# ldexp


@api
@document(
    """y = x 2^n
    dx = 2^n dy, summed over the dimensions along which x broadcasts""",
    """x: array of floats.
    n: array of integers, which broadcasts with x, or an integer.""",
    "torch.ldexp; jax.numpy.ldexp.",
    returns="An array of the shape that the arguments broadcast to, of x's dtype.",
    precision="exact, except for overflow and subnormal numbers.",
)
def ldexp(x: ArrayLike, n: ArrayLike, *, implementation: Implementation = None) -> Array:
    """A float times a power of 2."""
    arrays, _ = _scaled("ldexp", x, n)
    return _LDEXP(*arrays, implementation=implementation)


@api
@backward_of(ldexp, "x, n", of="x")
def ldexp_backward(x: ArrayLike, n: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None) -> Array:
    op = "ldexp_backward"
    arrays, shapes = _scaled(op, x, n)
    dy = cotangent_of_result(op, dy, arrays, arrays[0], "x")
    return _LDEXP.vjp(*arrays, dy, implementation=implementation).reshape(shapes[0])


def _scaled(op, x, n):
    """The exponent as the float that is computed in, which holds all that are not too large."""
    x, n = floats(op, "x", x), checks.array(op, "n", n)
    checks.dtype(op, "n", n, checks.INTEGERS)
    return broadcasting(op, ("x", "n"), (x, n.astype(wide_dtype(x.dtype))))


def _ldexp(x, n):
    """In two steps: 2^n may overflow where the product does not."""
    n = jnp.clip(n, -5000, 5000)
    half = jnp.trunc(n / 2)
    return (wide(x) * jnp.exp2(half) * jnp.exp2(n - half)).astype(x.dtype)


def _native(x, n):
    return _pattern.call("ldexp", [x, n], [x.dtype])


def _draw(*shapes):
    return lambda rng: (rng.uniform(-3, 3, shapes[0]), rng.integers(-6, 6, shapes[1]))


_LDEXP = declare(
    "ldexp",
    family="elementwise",
    category=CATEGORIES[2],
    public=ldexp,
    dtypes=checks.FLOATS,
    cases=(
        Case("alike", _draw((4, 6), (4, 6))),
        Case("rows", _draw((4, 6), (6,))),
        Case("one number", _draw((), (7,))),
    ),
    operands=("x", "n"),
    differentiable=("x",),
    constant={"n": "integers carry no derivative"},
    residuals=("x", "n"),
    cut=_pattern.BY_DIMENSION,
    forward=Body(lambda x, n: (_ldexp(x, n),), lambda x, n, *, save: _native(x, n)),
    tangent=Body(lambda x, n, t: (_ldexp(t, n),), lambda x, n, t: _native(t, n)),
    backward=Body(
        lambda x, n, d: (_pattern.gathered(_ldexp(d, n), x),), lambda x, n, d: (_pattern.gathered(_native(d, n)[0], x),)
    ),
    batched=as_they_are,
    kernels=dict.fromkeys(("forward", "tangent", "backward"), ("ldexp",)),
    kin="nary",
    weak=True,
    default="xla",
)
