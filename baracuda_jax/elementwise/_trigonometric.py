"""Circular and hyperbolic functions, and their inverses."""

import jax.numpy as jnp

from ._length import direction, length
from ._nary import binary
from ._unary import holomorphic


def _cosine_of_arc(x):
    return jnp.sqrt((1 - x) * (1 + x))


def _root_of_one_and_square(x):
    """(1 + x^2)^(1/2), without overflow."""
    if jnp.iscomplexobj(x):
        return jnp.sqrt(1 + 1j * x) * jnp.sqrt(1 - 1j * x)
    return length(jnp.ones_like(x), x)


def _sech_squared(x):
    """1 / cosh(x)^2, without the difference of 1 - tanh(x)^2."""
    e = jnp.exp(jnp.where(jnp.real(x) > 0, -x, x))
    return jnp.square(2 * e / (1 + e * e))


sin, sin_backward = holomorphic("sin", "The sine.", "sin(x)", "cos(x) dy", jnp.sin, "torch.sin; jax.numpy.sin")
cos, cos_backward = holomorphic("cos", "The cosine.", "cos(x)", "-sin(x) dy", jnp.cos, "torch.cos; jax.numpy.cos")
tan, tan_backward = holomorphic("tan", "The tangent.", "tan(x)", "(1 + y^2) dy", jnp.tan, "torch.tan; jax.numpy.tan",
    at=(-1.2, 1.2))  # fmt: skip
asin, asin_backward = holomorphic("asin", "The inverse sine.", "arcsin(x)", "dy / (1 - x^2)^(1/2)", jnp.arcsin,
    "torch.asin; jax.numpy.arcsin", slope=lambda x, t: t / _cosine_of_arc(x), at=(-0.9, 0.9))  # fmt: skip
acos, acos_backward = holomorphic("acos", "The inverse cosine.", "arccos(x)", "-dy / (1 - x^2)^(1/2)", jnp.arccos,
    "torch.acos; jax.numpy.arccos", slope=lambda x, t: -t / _cosine_of_arc(x), at=(-0.9, 0.9))  # fmt: skip
atan, atan_backward = holomorphic("atan", "The inverse tangent.", "arctan(x)", "dy / (1 + x^2)", jnp.arctan,
    "torch.atan; jax.numpy.arctan")  # fmt: skip
sinh, sinh_backward = holomorphic("sinh", "The hyperbolic sine.", "sinh(x)", "cosh(x) dy", jnp.sinh,
    "torch.sinh; jax.numpy.sinh")  # fmt: skip
cosh, cosh_backward = holomorphic("cosh", "The hyperbolic cosine.", "cosh(x)", "sinh(x) dy", jnp.cosh,
    "torch.cosh; jax.numpy.cosh")  # fmt: skip
tanh, tanh_backward = holomorphic("tanh", "The hyperbolic tangent.", "tanh(x)", "dy / cosh(x)^2", jnp.tanh,
    "torch.tanh; jax.numpy.tanh", slope=lambda x, t: _sech_squared(x) * t)  # fmt: skip
asinh, asinh_backward = holomorphic("asinh", "The inverse hyperbolic sine.", "arsinh(x)", "dy / (1 + x^2)^(1/2)",
    jnp.arcsinh, "torch.asinh; jax.numpy.arcsinh", slope=lambda x, t: t / _root_of_one_and_square(x))  # fmt: skip
acosh, acosh_backward = holomorphic("acosh", "The inverse hyperbolic cosine.", "arcosh(x)", "dy / (x^2 - 1)^(1/2)",
    jnp.arccosh, "torch.acosh; jax.numpy.arccosh", slope=lambda x, t: t / jnp.sqrt(x - 1) / jnp.sqrt(x + 1),
    at=(1.2, 4))  # fmt: skip
atanh, atanh_backward = holomorphic("atanh", "The inverse hyperbolic tangent.", "artanh(x)", "dy / (1 - x^2)", jnp.arctanh,
    "torch.atanh; jax.numpy.arctanh", slope=lambda x, t: t / ((1 - x) * (1 + x)), at=(-0.9, 0.9))  # fmt: skip


def _angle_slopes(x, y, d):
    along_x, along_y, whole = direction(x, y)
    return along_y / whole * d, -along_x / whole * d


atan2, atan2_backward = binary("atan2", "The angle of the point (x2, x1).", "arctan(x1 / x2), in the quadrant of the point",
    "dx1 = x2 dy / (x1^2 + x2^2), dx2 = -x1 dy / (x1^2 + x2^2), 0 at the origin", jnp.arctan2,
    "torch.atan2; jax.numpy.arctan2", slopes=_angle_slopes)  # fmt: skip
