"""Sums, products, quotients and roots."""

import jax.numpy as jnp
from jax import lax

from .._core import checks
from ._length import direction
from ._nary import binary
from ._unary import holomorphic, unary

SIGNED = (*checks.FLOATS, *(name for name in checks.INTEGERS if name[0] == "i"))
NUMERIC = (*checks.NUMBERS, *checks.COMPLEX)
WRAPS = "float16 and bfloat16 compute in float32. Integers wrap around."


def _over(t, divisor):
    """No cotangent is nothing still where a derivative is infinite."""
    return jnp.where((t == 0) & (divisor == 0), 0, t / jnp.where((t == 0) & (divisor == 0), 1, divisor))


neg, neg_backward = unary("neg", "The negative.", "-x", "-dy", jnp.negative, "torch.neg; jax.numpy.negative",
    dtypes=NUMERIC, precision=WRAPS)  # fmt: skip
abs, abs_backward = unary("abs", "The absolute value.", "|x|, of a complex number hypot(real, imag), a float",
    "sign(x) dy, 0 at 0; of a complex number its conjugate / |x| dy", jnp.abs, "torch.abs; jax.numpy.abs",
    slope=lambda x, t: jnp.sign(x) * t, dtypes=SIGNED, kinks=[0], precision=WRAPS,
    of_complex=lambda x, implementation: hypot(jnp.real(x), jnp.imag(x), implementation=implementation))  # fmt: skip
sign, sign_backward = unary("sign", "The sign.", "-1, 0 or 1, of x's sign; NaN at NaN", "0", jnp.sign,
    "torch.sign, which is 0 at NaN; jax.numpy.sign", slope=lambda x, t: jnp.zeros_like(t),
    dtypes=checks.NUMBERS, kinks=[0], precision="exact.")  # fmt: skip
square, square_backward = unary("square", "The square.", "x^2", "2 x dy", jnp.square, "torch.square; jax.numpy.square",
    dtypes=NUMERIC, precision=WRAPS)  # fmt: skip
cube, cube_backward = unary("cube", "The third power.", "x^3", "3 x^2 dy", lambda x: lax.integer_pow(x, 3),
    "jax.lax.integer_pow", dtypes=NUMERIC, precision=WRAPS)  # fmt: skip
reciprocal, reciprocal_backward = holomorphic("reciprocal", "The reciprocal.", "1 / x", "-dy / x^2", lambda x: 1 / x,
    "torch.reciprocal; jax.numpy.reciprocal", slope=lambda x, t: -(t / x) / x, at=(0.5, 3))  # fmt: skip
sqrt, sqrt_backward = holomorphic("sqrt", "The square root.", "x^(1/2)", "dy / (2 y), 0 where both are 0", jnp.sqrt,
    "torch.sqrt; jax.numpy.sqrt", slope=lambda x, t: _over(t, 2 * jnp.sqrt(x)), at=(0.1, 4))  # fmt: skip
rsqrt, rsqrt_backward = holomorphic("rsqrt", "The reciprocal of the square root.", "x^(-1/2)", "-dy y / (2 x)", lax.rsqrt,
    "torch.rsqrt; jax.lax.rsqrt", slope=lambda x, t: -0.5 * t / x / jnp.sqrt(x), at=(0.2, 4))  # fmt: skip
cbrt, cbrt_backward = unary("cbrt", "The cube root.", "x^(1/3), negative for a negative x",
    "dy / (3 y^2), 0 where both are 0", jnp.cbrt, "jax.numpy.cbrt",
    slope=lambda x, t: _over(t, 3 * jnp.cbrt(x) ** 2), at=(0.2, 4))  # fmt: skip

add, add_backward = binary("add", "The sum.", "x1 + x2", "dx1 = dy, dx2 = dy", jnp.add, "torch.add; jax.numpy.add",
    dtypes=NUMERIC, precision=WRAPS)  # fmt: skip
sub, sub_backward = binary("sub", "The difference.", "x1 - x2", "dx1 = dy, dx2 = -dy", jnp.subtract,
    "torch.sub; jax.numpy.subtract", dtypes=NUMERIC, precision=WRAPS)  # fmt: skip
mul, mul_backward = binary("mul", "The product.", "x1 x2", "dx1 = x2 dy, dx2 = x1 dy", jnp.multiply,
    "torch.mul; jax.numpy.multiply", dtypes=NUMERIC, precision=WRAPS)  # fmt: skip
div, div_backward = binary("div", "The quotient.", "x1 / x2", "dx1 = dy / x2, dx2 = -y dy / x2", jnp.divide,
    "torch.div; jax.numpy.divide", slopes=lambda x, y, d: (d / y, -(d / y) * (x / y)), at=((-3, 3), (0.5, 3)),
    dtypes=checks.INEXACT)  # fmt: skip


def _hypot_slopes(x, y, d):
    along_x, along_y, _ = direction(x, y)
    return along_x * d, along_y * d


hypot, hypot_backward = binary("hypot", "The length of a vector of two.", "(x1^2 + x2^2)^(1/2), without overflow",
    "dx1 = x1 / y dy, dx2 = x2 / y dy, 0 at the origin", jnp.hypot, "torch.hypot; jax.numpy.hypot",
    slopes=_hypot_slopes)  # fmt: skip
