"""Set to 0 what is near 0."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core.api import api
from .._core.types import Implementation
from ._arguments import cotangent, document, floats, number
from ._unary import backward_of, cases_around, declare_unary


@api
@document(
    """y = x - lambd where x > lambd, x + lambd where x < -lambd, else 0
    dx = 0 where |x| <= lambd, else dy""",
    """x: array of floats.
    lambd: static number >= 0.""",
    "torch.nn.functional.softshrink.",
)
def softshrink(x: ArrayLike, lambd: float = 0.5, *, implementation: Implementation = None) -> Array:
    """Shrink towards 0."""
    return _SOFTSHRINK(
        floats("softshrink", "x", x), lambd=_not_negative("softshrink", lambd), implementation=implementation
    )


@api
@backward_of(softshrink)
def softshrink_backward(
    x: ArrayLike, dy: ArrayLike, lambd: float = 0.5, *, implementation: Implementation = None
) -> Array:
    op = "softshrink_backward"
    x = floats(op, "x", x)
    return _SOFTSHRINK.vjp(x, cotangent(op, dy, x), lambd=_not_negative(op, lambd), implementation=implementation)


@api
@document(
    """y = 0 where |x| <= lambd, else x
    dx = 0 where |x| <= lambd, else dy""",
    """x: array of floats.
    lambd: static number; nothing is shrunk if it is negative.""",
    "torch.nn.functional.hardshrink.",
)
def hardshrink(x: ArrayLike, lambd: float = 0.5, *, implementation: Implementation = None) -> Array:
    """Set to 0 what is near 0."""
    return _HARDSHRINK(
        floats("hardshrink", "x", x), lambd=number("hardshrink", "lambd", lambd), implementation=implementation
    )


@api
@backward_of(hardshrink)
def hardshrink_backward(
    x: ArrayLike, dy: ArrayLike, lambd: float = 0.5, *, implementation: Implementation = None
) -> Array:
    op = "hardshrink_backward"
    x = floats(op, "x", x)
    return _HARDSHRINK.vjp(x, cotangent(op, dy, x), lambd=number(op, "lambd", lambd), implementation=implementation)


def _not_negative(op, lambd):
    lambd = number(op, "lambd", lambd)
    if lambd < 0:
        raise ValueError(f"{op}: lambd must be at least 0, got {lambd}")
    return lambd


def _inside(x, lambd):
    return (x >= -lambd) & (x <= lambd)


def _shrink_slope(x, t, lambd):
    return jnp.where(_inside(x, lambd), 0, t)


_SOFTSHRINK = declare_unary(
    softshrink,
    lambda x, lambd: jnp.where(_inside(x, lambd), 0, jnp.where(x > lambd, x - lambd, x + lambd)),
    _shrink_slope,
    cases_around([-0.5, 0.5, -1.25, 1.25], {}, {"lambd": 1.25}),
)
_HARDSHRINK = declare_unary(
    hardshrink,
    lambda x, lambd: jnp.where(_inside(x, lambd), 0, x),
    _shrink_slope,
    cases_around([-0.5, 0.5, -1.25, 1.25], {}, {"lambd": 1.25}),
)
