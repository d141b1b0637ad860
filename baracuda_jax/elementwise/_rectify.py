"""Linear above 0, or above a threshold, and something else below."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core.api import api
from .._core.types import Implementation
from ._arguments import cotangent, document, floats, number
from ._unary import backward_of, cases_around, declare_unary

# ---------------------------------------------------------------------------------------------------------------------
# leaky_relu


@api
@document(
    """y = x where x > 0, else negative_slope x
    dx = dy where x > 0, else negative_slope dy""",
    """x: array of floats.
    negative_slope: static number.""",
    "torch.nn.functional.leaky_relu; jax.nn.leaky_relu.",
)
def leaky_relu(x: ArrayLike, negative_slope: float = 0.01, *, implementation: Implementation = None) -> Array:
    """Leaky rectifier."""
    x = floats("leaky_relu", "x", x)
    return _LEAKY_RELU(
        x, negative_slope=number("leaky_relu", "negative_slope", negative_slope), implementation=implementation
    )


@api
@backward_of(leaky_relu)
def leaky_relu_backward(
    x: ArrayLike, dy: ArrayLike, negative_slope: float = 0.01, *, implementation: Implementation = None
) -> Array:
    op = "leaky_relu_backward"
    x = floats(op, "x", x)
    dy = cotangent(op, dy, x)
    return _LEAKY_RELU.vjp(
        x, dy, negative_slope=number(op, "negative_slope", negative_slope), implementation=implementation
    )


_LEAKY_RELU = declare_unary(
    leaky_relu,
    lambda x, negative_slope: jnp.where(x > 0, x, negative_slope * x),
    lambda x, t, negative_slope: jnp.where(x > 0, t, negative_slope * t),
    cases_around([0], {}, {"negative_slope": -0.5}),
)

# ---------------------------------------------------------------------------------------------------------------------
# elu


@api
@document(
    """y = x where x > 0, else alpha (exp(x) - 1)
    dx = dy where x > 0, else alpha exp(x) dy""",
    """x: array of floats.
    alpha: static number.""",
    "torch.nn.functional.elu; jax.nn.elu. Clevert et al., Exponential linear units (2016).",
)
def elu(x: ArrayLike, alpha: float = 1.0, *, implementation: Implementation = None) -> Array:
    """Exponential linear unit."""
    return _ELU(floats("elu", "x", x), alpha=number("elu", "alpha", alpha), implementation=implementation)


@api
@backward_of(elu)
def elu_backward(x: ArrayLike, dy: ArrayLike, alpha: float = 1.0, *, implementation: Implementation = None) -> Array:
    op = "elu_backward"
    x = floats(op, "x", x)
    return _ELU.vjp(x, cotangent(op, dy, x), alpha=number(op, "alpha", alpha), implementation=implementation)


def _below(x):
    """x where the exponential is taken; elsewhere its overflow would make derivatives NaN."""
    return jnp.where(x > 0, 0, x)


_ELU = declare_unary(
    elu,
    lambda x, alpha: jnp.where(x > 0, x, alpha * jnp.expm1(_below(x))),
    lambda x, t, alpha: jnp.where(x > 0, t, alpha * jnp.exp(_below(x)) * t),
    cases_around([0], {}, {"alpha": 0.7}),
)

# ---------------------------------------------------------------------------------------------------------------------
# threshold


@api
@document(
    """y = value where x <= threshold, else x
    dx = 0 where x <= threshold, else dy""",
    """x: array of floats.
    threshold, value: static numbers.""",
    "torch.nn.functional.threshold.",
)
def threshold(x: ArrayLike, threshold: float, value: float, *, implementation: Implementation = None) -> Array:
    """Replace what is not above a threshold by a value."""
    op = "threshold"
    return _THRESHOLD(
        floats(op, "x", x),
        threshold=number(op, "threshold", threshold),
        value=number(op, "value", value),
        implementation=implementation,
    )


@api
@backward_of(threshold, "threshold, implementation: as there.")
def threshold_backward(
    x: ArrayLike, dy: ArrayLike, threshold: float, *, implementation: Implementation = None
) -> Array:
    op = "threshold_backward"
    x = floats(op, "x", x)
    dy = cotangent(op, dy, x)
    return _THRESHOLD.vjp(x, dy, threshold=number(op, "threshold", threshold), value=0.0, implementation=implementation)


_THRESHOLD = declare_unary(
    threshold,
    lambda x, threshold, value: jnp.where(x <= threshold, value, x),
    lambda x, t, threshold, value: jnp.where(x <= threshold, 0, t),
    cases_around([0.25], {"threshold": 0.25, "value": -1.5}),
    backward=("threshold",),
)
