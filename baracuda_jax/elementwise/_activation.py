"""Activations."""

import math
from typing import cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core.api import api
from .._core.types import Approximable, ApproximableBackward, Implementation
from ._arguments import cotangent, document, floats, number
from ._unary import backward_of, cases_around, declare_unary, holomorphic, unary


def _linear_part(low, high):
    """A derivative that is 0 outside of an open range."""
    return lambda x, t: jnp.where((x > low) & (x < high), t, 0)


def _normal_slope(x, t):
    density = jnp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return (0.5 * jax.lax.erfc(-x * math.sqrt(0.5)) + x * density) * t


def _gelu(x):
    return 0.5 * x * jax.lax.erfc(-x * math.sqrt(0.5))


relu, relu_backward = unary("relu", "Rectifier.", "max(x, 0)", "dy where x > 0, else 0", lambda x: jnp.where(x <= 0, 0, x),
    "torch.nn.functional.relu; jax.nn.relu", slope=lambda x, t: jnp.where(x > 0, t, 0), kinks=[0],
    precision="exact. NaN propagates.")  # fmt: skip
relu6, relu6_backward = unary("relu6", "Rectifier that stops at 6.", "min(max(x, 0), 6)", "dy where 0 < x < 6, else 0",
    lambda x: jnp.where(x <= 0, 0, jnp.where(x > 6, 6, x)), "torch.nn.functional.relu6; jax.nn.relu6",
    slope=_linear_part(0, 6), at=(-3, 9), kinks=[0, 6], precision="exact. NaN propagates.")  # fmt: skip
gelu_tanh, gelu_tanh_backward = unary("gelu_tanh", "Gaussian error linear unit by a hyperbolic tangent.",
    "x (1 + tanh(u)) / 2, u = (2 / pi)^(1/2) (x + 0.044715 x^3)", "((1 + tanh(u)) / 2 + x u' / (2 cosh(u)^2)) dy",
    lambda x: x * jax.nn.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)),
    "torch.nn.functional.gelu(approximate='tanh'); jax.nn.gelu",
    precision="without cancellation for x < 0. float16 and bfloat16 compute in float32.")  # fmt: skip
gelu, gelu_backward = cast(tuple[Approximable, ApproximableBackward], unary("gelu", "Gaussian error linear unit.",
    "x Phi(x), Phi being the normal distribution function", "(Phi(x) + x phi(x)) dy, phi being the density", _gelu,
    "torch.nn.functional.gelu; jax.nn.gelu(approximate=False)", slope=_normal_slope,
    approximation=(gelu_tanh, gelu_tanh_backward),
    precision="without cancellation for x < 0. float16 and bfloat16 compute in float32."))  # fmt: skip
sigmoid, sigmoid_backward = holomorphic("sigmoid", "Logistic function.", "1 / (1 + e^-x)", "y (1 - y) dy", jax.nn.sigmoid,
    "torch.sigmoid; jax.nn.sigmoid", slope=lambda x, t: jax.nn.sigmoid(x) * jax.nn.sigmoid(-x) * t)  # fmt: skip
silu, silu_backward = unary("silu", "Sigmoid linear unit.", "x s, s = 1 / (1 + e^-x)", "s (1 + x (1 - s)) dy", jax.nn.silu,
    "torch.nn.functional.silu; jax.nn.silu")  # fmt: skip
mish, mish_backward = unary("mish", "Self-regularized unit.", "x tanh(log(1 + e^x))", "its derivative times dy",
    lambda x: x * jnp.tanh(jnp.logaddexp(x, 0)), "torch.nn.functional.mish; jax.nn.mish")  # fmt: skip
selu, selu_backward = unary("selu", "Scaled exponential linear unit.",
    "scale x where x > 0, else scale alpha (e^x - 1), scale = 1.0507009873554805, alpha = 1.6732632423543772",
    "scale dy where x > 0, else scale alpha e^x dy", jax.nn.selu, "torch.nn.functional.selu; jax.nn.selu",
    kinks=[0])  # fmt: skip
hardsigmoid, hardsigmoid_backward = unary("hardsigmoid", "Sigmoid of linear parts.", "min(max(x + 3, 0), 6) / 6",
    "dy / 6 where -3 < x < 3, else 0", lambda x: jnp.clip(x + 3, 0, 6) / 6,
    "torch.nn.functional.hardsigmoid; jax.nn.hard_sigmoid", slope=lambda x, t: _linear_part(-3, 3)(x, t / 6), at=(-5, 5),
    kinks=[-3, 3])  # fmt: skip
hardswish, hardswish_backward = unary("hardswish", "x times the sigmoid of linear parts.", "x min(max(x + 3, 0), 6) / 6",
    "0 where x <= -3, dy where x >= 3, else (2 x + 3) dy / 6",
    lambda x: jnp.where(x <= -3, -0.0, x * (jnp.clip(x + 3, 0, 6) / 6)),
    "torch.nn.functional.hardswish; jax.nn.hard_swish",
    slope=lambda x, t: jnp.where(x <= -3, 0, jnp.where(x >= 3, 1, (2 * x + 3) / 6)) * t, at=(-5, 5),
    kinks=[-3, 3])  # fmt: skip
softsign, softsign_backward = unary("softsign", "x, bent to stay between -1 and 1.", "x / (1 + |x|)", "dy / (1 + |x|)^2",
    lambda x: x / (1 + jnp.abs(x)), "torch.nn.functional.softsign; jax.nn.soft_sign",
    slope=lambda x, t: t / (1 + jnp.abs(x)) / (1 + jnp.abs(x)))  # fmt: skip
tanhshrink, tanhshrink_backward = unary("tanhshrink", "x minus its hyperbolic tangent.", "x - tanh(x)", "tanh(x)^2 dy",
    lambda x: x - jnp.tanh(x), "torch.nn.functional.tanhshrink", slope=lambda x, t: jnp.tanh(x) ** 2 * t)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# softplus


@api
@document(
    """y = log(1 + e^(beta x)) / beta
    dx = dy / (1 + e^(-beta x))""",
    """x: array of floats.
    beta: static number, not 0.""",
    "torch.nn.functional.softplus, which is x where beta x > 20; jax.nn.softplus.",
)
def softplus(x: ArrayLike, beta: float = 1.0, *, implementation: Implementation = None) -> Array:
    """Smooth rectifier."""
    return _SOFTPLUS(floats("softplus", "x", x), beta=_not_zero("softplus", beta), implementation=implementation)


@api
@backward_of(softplus)
def softplus_backward(
    x: ArrayLike, dy: ArrayLike, beta: float = 1.0, *, implementation: Implementation = None
) -> Array:
    op = "softplus_backward"
    x = floats(op, "x", x)
    return _SOFTPLUS.vjp(x, cotangent(op, dy, x), beta=_not_zero(op, beta), implementation=implementation)


def _not_zero(op, beta):
    beta = number(op, "beta", beta)
    if beta == 0:
        raise ValueError(f"{op}: beta must not be 0")
    return beta


_SOFTPLUS = declare_unary(
    softplus,
    lambda x, beta: jax.nn.softplus(beta * x) / beta,
    lambda x, t, beta: jax.nn.sigmoid(beta * x) * t,
    cases_around([], {}, {"beta": 2.5}, {"beta": -0.5}),
)
