"""Error and gamma functions, and the inverse of the logistic one."""

import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import polygamma
from jax.typing import ArrayLike

from .._core.api import api
from .._core.types import Implementation
from ._arguments import cotangent, document, floats, number
from ._unary import backward_of, cases_around, declare_unary, unary

EXACT = "within 2 units in the last place, in float64 within 4. float16 and bfloat16 compute in float32."


def _trigamma(x):
    """JAX's for x > 0, and its reflection."""
    above = polygamma(1, jnp.where(x < 0.5, 1 - x, x))
    low = jnp.where(x < 0.5, x, 0.25)  # where there are no poles, there are none in derivatives
    sine = jnp.sin(jnp.pi * (low - jnp.round(low)))
    return jnp.where(x < 0.5, (jnp.pi / sine) ** 2 - above, above)


erf, erf_backward = unary("erf", "The error function.", "2 / pi^(1/2) times the integral of e^(-t^2) from 0 to x",
    "2 / pi^(1/2) e^(-x^2) dy", lax.erf, "torch.erf; jax.lax.erf", precision=EXACT)  # fmt: skip
erfc, erfc_backward = unary("erfc", "The complement of the error function.", "1 - erf(x)", "-2 / pi^(1/2) e^(-x^2) dy",
    lax.erfc, "torch.erfc; jax.lax.erfc", precision=EXACT)  # fmt: skip
erfinv, erfinv_backward = unary("erfinv", "The inverse of the error function.", "the y with erf(y) = x",
    "pi^(1/2) / 2 e^(y^2) dy", lax.erf_inv, "torch.erfinv; jax.lax.erf_inv", at=(-0.9, 0.9), precision=EXACT)  # fmt: skip
lgamma, lgamma_backward = unary("lgamma", "The logarithm of the gamma function's size.", "log |Gamma(x)|",
    "digamma(x) dy", lax.lgamma, "torch.lgamma; jax.lax.lgamma", at=(0.2, 5), precision=EXACT)  # fmt: skip
digamma, digamma_backward = unary("digamma", "The derivative of the logarithm of the gamma function.",
    "Gamma'(x) / Gamma(x)", "trigamma(x) dy, the derivative", lax.digamma, "torch.digamma; jax.lax.digamma",
    slope=lambda x, t: _trigamma(x) * t, at=(0.3, 5),
    precision="within 2 units in the last place, in float64 within 4, but next to negative roots.")  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# logit


@api
@document(
    """y = log(x / (1 - x)), of x clamped to [eps, 1 - eps]
    dx = dy / (x (1 - x)), 0 where x was clamped""",
    """x: array of floats.
    eps: static number from 0 to 1/2, or None for no clamp.""",
    "torch.logit; jax.scipy.special.logit.",
    precision=EXACT,
)
def logit(x: ArrayLike, eps: float | None = None, *, implementation: Implementation = None) -> Array:
    """The inverse of the logistic function."""
    return _LOGIT(floats("logit", "x", x), eps=_eps("logit", eps), implementation=implementation)


@api
@backward_of(logit)
def logit_backward(
    x: ArrayLike, dy: ArrayLike, eps: float | None = None, *, implementation: Implementation = None
) -> Array:
    op = "logit_backward"
    x = floats(op, "x", x)
    return _LOGIT.vjp(x, cotangent(op, dy, x), eps=_eps(op, eps), implementation=implementation)


def _eps(op, eps):
    if eps is None:
        return -1.0
    eps = number(op, "eps", eps)
    if not 0 <= eps <= 0.5:
        raise ValueError(f"{op}: eps must be from 0 to 0.5, or None, got {eps}")
    return eps


def _logit(x, eps):
    x = x if eps < 0 else jnp.where(x < eps, eps, jnp.where(x > 1 - eps, 1 - eps, x))
    return jnp.log(x / (1 - x))


def _logit_slope(x, t, eps):
    slope = t / x / (1 - x)
    return slope if eps < 0 else jnp.where((x < eps) | (x > 1 - eps), 0, slope)


_LOGIT = declare_unary(
    logit, _logit, _logit_slope, cases_around([0.1, 0.9], {}, {"eps": 0.1}, at=(0.05, 0.95)),
)  # fmt: skip
