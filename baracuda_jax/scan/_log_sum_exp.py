"""The logarithm of the cumulative sum of exponentials."""

import jax.numpy as jnp
from jax import lax

from .._core import checks
from .._core.op import Body, declare
from .._core.wide import wide
from . import _kernels, _references
from ._arguments import arguments, backward_arguments, document
from ._exclusive import derivatives, with_last
from ._family import CUMULATIVE, cases
from ._kernels import call
from ._partition import whole_axis
from ._references import adjoint, before, prefixes


@document(
    "y_i = log(e^(x_0) + ... + e^(x_i)), and exclusive up to x_{i-1}; "
    "dx_i = e^(x_i - y_i) s_i with s_i = dy_i + e^(y_i - y_{i+1}) s_{i+1}",
    nothing="-inf",
    source="jax.lax.cumlogsumexp; torch.logcumsumexp",
    dtypes="a float type",
    precision="float16 and bfloat16 accumulate in float32 and are rounded once. Sums are kept beside their maximum: nothing "
    "overflows; -inf adds nothing and has no gradient, +inf gives +inf, and NaN is NaN from there on.",
)
def logcumsumexp(operand, axis=0, *, reverse=False, exclusive=False, prefer=None):
    """Logarithm of the sum of exponentials of what comes before each cell along an axis."""
    operand, params = arguments("logcumsumexp", operand, axis, reverse, exclusive, checks.FLOATS)
    return _log_sum_exp(operand, **params, prefer=prefer)


def logcumsumexp_backward(operand, y, dy, axis=0, *, reverse=False, exclusive=False, prefer=None):
    """The gradient of `logcumsumexp`: dx_i = e^(x_i - y_i) s_i with s_i = dy_i + e^(y_i - y_{i+1}) s_{i+1}.

    Args:
        operand: floats, the exponents x.
        y: the result of `logcumsumexp`, with the same exclusive.
        dy: the cotangent of the result. All three have one shape and dtype.
        axis, reverse, exclusive: as in `logcumsumexp`.
        prefer: "native", "xla" or None.

    Returns:
        The cotangent of operand.
    """
    arrays = {"operand": operand, "y": y, "dy": dy}
    arrays, params = backward_arguments("logcumsumexp_backward", arrays, axis, reverse, exclusive)
    return _log_sum_exp.vjp(*arrays, **params, prefer=prefer)


def _native(x, *, save, **params):
    return call("logcumsumexp", x, **params)


def _reference(x, **params):
    return (prefixes(lax.cumlogsumexp, x, -jnp.inf, **params),)


def _share(less, more):
    """e^(less - more), 1 for equal infinities, which have no difference."""
    is_infinite = jnp.isinf(less) & (less == more)
    return jnp.exp(jnp.where(is_infinite, 0, less - more))


def _own(x, y, s):
    """e^(x - y) s: what a cell adds; -inf adds nothing."""
    return jnp.where(x == -jnp.inf, 0, _share(x, y) * s)


def _tangent_by(linear_scan):
    """dy_i = e^(y_{i-1} - y_i) dy_{i-1} + e^(x_i - y_i) dx_i"""

    def tangent(x, y, t, **params):
        top = wide(y)
        kept = _share(before(top, -jnp.inf, **params), top)
        return (linear_scan(kept, _own(wide(x), top, wide(t)), **params).astype(t.dtype),)

    return tangent


def _backward_reference(x, y, dy, **params):
    top = wide(y)
    s = adjoint(_share(before(top, -jnp.inf, **params), top), wide(dy), **params)
    return (_own(wide(x), top, s).astype(x.dtype),)


def _backward_native(x, y, dy, **params):
    return call("logcumsumexp_backward", x, y, dy, **params)


_log_sum_exp = declare(
    "logcumsumexp",
    **CUMULATIVE,
    public=logcumsumexp,
    dtypes=checks.FLOATS,
    cases=cases(),
    residuals=("operand", "y"),
    cut=whole_axis,
    forward=Body(_reference, _native),
    **derivatives(
        tangent=(_tangent_by(_references.linear_scan), _tangent_by(_kernels.linear_scan)),
        backward=(_backward_reference, _backward_native),
        inclusive=with_last(jnp.logaddexp),
    ),
    kernels={"forward": ("logcumsumexp",), "tangent": ("linear_scan",), "backward": ("logcumsumexp_backward",)},
)
