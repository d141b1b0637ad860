"""Rounding, division with a remainder, and neighbors among floats."""

import jax.numpy as jnp
from jax import lax

from .._core import checks
from ._nary import binary
from ._unary import unary

HALVES = [n / 2 for n in range(-7, 8)]
INTEGERS = HALVES[1::2]
EXACT = dict(precision="exact. NaN propagates.", slope=lambda x, t: jnp.zeros_like(t))
ZERO = "0"


def _nothing(x, y, d):
    return jnp.zeros_like(d), jnp.zeros_like(d)


floor, floor_backward = unary("floor", "The next integer below.", "the largest integer <= x", ZERO, jnp.floor,
    "torch.floor; jax.numpy.floor", kinks=INTEGERS, **EXACT)  # fmt: skip
ceil, ceil_backward = unary("ceil", "The next integer above.", "the smallest integer >= x", ZERO, jnp.ceil,
    "torch.ceil; jax.numpy.ceil", kinks=INTEGERS, **EXACT)  # fmt: skip
round, round_backward = unary("round", "The nearest integer, of two the even one.", "the integer nearest to x", ZERO,
    jnp.round, "torch.round; jax.numpy.round", kinks=HALVES, **EXACT)  # fmt: skip
trunc, trunc_backward = unary("trunc", "The integer part.", "the next integer from x towards 0", ZERO, jnp.trunc,
    "torch.trunc; jax.numpy.trunc", kinks=INTEGERS, **EXACT)  # fmt: skip
frac, frac_backward = unary("frac", "The fraction.", "x - trunc(x)", "dy", lambda x: x - jnp.trunc(x),
    "torch.frac", slope=lambda x, t: t, kinks=INTEGERS, precision="exact. NaN propagates.")  # fmt: skip

floor_divide, floor_divide_backward = binary("floor_divide", "The quotient, rounded down.", "the largest integer <= x1 / x2",
    "dx1 = 0, dx2 = 0", jnp.floor_divide, "torch.floor_divide; jax.numpy.floor_divide", slopes=_nothing,
    dtypes=checks.NUMBERS, at=((1.3, 1.7), (0.9, 1.15)),
    precision="exact: 1 // 0.1 is 9. Integers by 0 are -1.")  # fmt: skip
mod, mod_backward = binary("mod", "The remainder with the sign of x2.", "x1 - floor(x1 / x2) x2",
    "dx1 = dy, dx2 = -floor(x1 / x2) dy", jnp.mod, "torch.remainder; jax.numpy.mod",
    slopes=lambda x, y, d: (d, -jnp.floor_divide(x, y) * d), dtypes=checks.NUMBERS, at=((1.3, 1.7), (0.9, 1.15)),
    precision="float16 and bfloat16 compute in float32. An integer by 0 is itself.")  # fmt: skip
remainder, remainder_backward = mod, mod_backward
fmod, fmod_backward = binary("fmod", "The remainder with the sign of x1, as in C.", "x1 - trunc(x1 / x2) x2",
    "dx1 = dy, dx2 = -trunc(x1 / x2) dy", lax.rem, "torch.fmod; jax.numpy.fmod",
    slopes=lambda x, y, d: (d, -jnp.trunc(x / y) * d), dtypes=checks.NUMBERS, at=((1.3, 1.7), (0.9, 1.15)),
    precision="float16 and bfloat16 compute in float32. An integer by 0 is itself.")  # fmt: skip

copysign, copysign_backward = binary("copysign", "The size of x1 with the sign of x2.", "|x1| sign(x2)",
    "dx1 = dy where x1 and x2 have one sign, -dy where not, 0 at x1 = 0; dx2 = 0", jnp.copysign,
    "torch.copysign; jax.numpy.copysign",
    slopes=lambda x, y, d: (jnp.where(x == 0, 0, jnp.where(jnp.signbit(x) == jnp.signbit(y), d, -d)), jnp.zeros_like(d)),
    precision="exact.")  # fmt: skip
nextafter, nextafter_backward = binary("nextafter", "The next number of x1's dtype towards x2.",
    "the neighbor of x1 on x2's side", "dx1 = dy, dx2 = 0", jnp.nextafter, "torch.nextafter; jax.numpy.nextafter",
    slopes=lambda x, y, d: (d, jnp.zeros_like(d)), widens=False,
    precision="exact: in the steps of float16 and bfloat16 too.")  # fmt: skip
