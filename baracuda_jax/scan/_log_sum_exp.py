"""The logarithm of the cumulative sum of exponentials."""

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype, with_rest
from . import _kernels, _references
from ._arguments import RESIDUALS, arguments, backward_arguments, document, saving
from ._exclusive import derivatives, with_last
from ._family import CUMULATIVE, cases
from ._kernels import call
from ._partition import whole_axis
from ._references import adjoint, before, prefixes


@api
@document(
    "y_i = log(e^(x_0) + ... + e^(x_i)), and exclusive up to x_{i-1}; "
    "dx_i = e^(x_i - y_i) s_i with s_i = dy_i + e^(y_i - y_{i+1}) s_{i+1}",
    nothing="-inf",
    source="jax.lax.cumlogsumexp; torch.logcumsumexp",
    dtypes="a float type",
    more=RESIDUALS.format(residuals="what rounding took from y, in float32 for float16 and bfloat16"),
    precision="float16 and bfloat16 accumulate in float32 and are rounded once. Sums are kept with their maximum: nothing "
    "overflows; -inf adds nothing and has no gradient, +inf gives +inf, and NaN is NaN from there on. The gradient's "
    "weights are of y before it is rounded, however large the elements are.",
)
def logcumsumexp(
    x: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Logarithm of the sum of exponentials of what comes before each element along an axis."""
    op = "logcumsumexp"
    x, params = arguments(op, x, axis, reverse, exclusive, checks.FLOATS)
    save = saving(op, "x", x, return_residuals)
    return _log_sum_exp(x, **params, save=save, implementation=implementation)


@api
def logcumsumexp_backward(
    x: ArrayLike,
    y: ArrayLike,
    rest: ArrayLike,
    dy: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `logcumsumexp`: dx_i = e^(x_i - y_i) s_i with s_i = dy_i + e^(y_i - y_{i+1}) s_{i+1}, y_i being the
    sum of `y` and `rest`.

    Args:
        x: floats, the exponents.
        y, rest: as `logcumsumexp` returns them with return_residuals, with the same exclusive: the result, and what rounding
            took from it, which is float32 for float16 and bfloat16.
        dy: the cotangent of the result. All have one shape, and except for rest one dtype.
        axis, reverse, exclusive: as in `logcumsumexp`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    arrays = {"x": x, "y": y, "rest": rest, "dy": dy}
    arrays, params = backward_arguments("logcumsumexp_backward", arrays, axis, reverse, exclusive, rest=wide_dtype)
    return _log_sum_exp.vjp(*arrays, **params, implementation=implementation)


def _native(x, *, save, **params):
    return call("logcumsumexp", x, dtypes=[x.dtype, wide_dtype(x.dtype)][: 2 if save else 1], **params)


def _reference(x, **params):
    most, total = prefixes(_largest_and_sum, x, -jnp.inf, **params)
    return with_rest(most, jnp.log(total), x.dtype)


def _largest_and_sum(x, *, axis, reverse):
    """The largest so far, and the sum of e^(x - largest)."""

    def combine(a, b):
        (largest, total), (other, more) = a, b
        most = jnp.maximum(largest, other)
        return most, total * _share(largest, most) + more * _share(other, most)

    return lax.associative_scan(combine, (x, jnp.ones_like(x)), reverse=reverse, axis=axis)


def _share(less, more, rest=0):
    """e^(less - more + rest); equal infinities have no difference."""
    is_infinite = jnp.isinf(less) & (less == more)
    return jnp.exp(jnp.where(is_infinite, 0, less - more) + rest)


def _own(x, y, rest, s):
    """e^(x - y - rest) s: what an element adds; -inf adds nothing."""
    return jnp.where(x == -jnp.inf, 0, _share(x, y, -rest) * s)


def _kept(y, rest, **params):
    """e^(y_{i-1} - y_i): how much of what is before an element is in its sum."""
    return _share(before(y, -jnp.inf, **params), y, before(rest, 0, **params) - rest)


def _tangent_by(linear_scan):
    """dy_i = e^(y_{i-1} - y_i) dy_{i-1} + e^(x_i - y_i) dx_i"""

    def tangent(x, y, rest, t, **params):
        top = wide(y)
        added = _own(wide(x), top, rest, wide(t))
        return (linear_scan(_kept(top, rest, **params), added, **params).astype(t.dtype),)

    return tangent


def _backward_reference(x, y, rest, dy, **params):
    top = wide(y)
    s = adjoint(_kept(top, rest, **params), wide(dy), **params)
    return (_own(wide(x), top, rest, s).astype(x.dtype),)


def _backward_native(x, y, rest, dy, **params):
    return call("logcumsumexp_backward", x, y, rest, dy, **params)


_log_sum_exp = declare(
    "logcumsumexp",
    **CUMULATIVE,
    public=logcumsumexp,
    dtypes=checks.FLOATS,
    cases=cases(),
    results=("y", "rest"),
    residuals=("x", "y", "rest"),
    cut=whole_axis,
    forward=Body(_reference, _native),
    **derivatives(
        tangent=(_tangent_by(_references.linear_scan), _tangent_by(_kernels.linear_scan)),
        backward=(_backward_reference, _backward_native),
        inclusive=with_last(jnp.logaddexp),
    ),
    kernels={"forward": ("logcumsumexp",), "tangent": ("linear_scan",), "backward": ("logcumsumexp_backward",)},
)
