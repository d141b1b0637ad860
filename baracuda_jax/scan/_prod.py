"""The cumulative product."""

from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from .._core.wide import ranged_dtype, wide, with_unrounded
from . import _kernels, _references
from ._arguments import RESIDUALS, arguments, backward_arguments, document, saving
from ._exclusive import derivatives, with_last
from ._family import CUMULATIVE, cases
from ._kernels import call
from ._partition import whole_axis
from ._references import adjoint, before, prefixes


@api
@document(
    "y_i = x_0 ... x_i, and exclusive x_0 ... x_{i-1}; dx_i = y_{i-1} s_i with s_i = dy_i + x_{i+1} s_{i+1}",
    nothing="1",
    source="jax.lax.cumprod; torch.cumprod",
    more=RESIDUALS.format(residuals="y in float32 for float16, whose range it may leave, and else y itself"),
    precision="float16 and bfloat16 accumulate in float32 and are rounded once; integers wrap. No derivative divides, so "
    "that all are exact where factors are zero.",
)
def cumprod(
    x: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Product of what comes before each element along an axis."""
    op = "cumprod"
    x, params = arguments(op, x, axis, reverse, exclusive, checks.NUMBERS)
    save = saving(op, "x", x, return_residuals)
    return _prod(x, **params, save=save, implementation=implementation)


@api
def cumprod_backward(
    x: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `cumprod`: dx_i = y_{i-1} s_i with s_i = dy_i + x_{i+1} s_{i+1}.

    Args:
        x: floats, the factors.
        y: the second result of `cumprod` with return_residuals, with the same exclusive: float32 for float16, else the
            result itself.
        dy: the cotangent of the result. All three have one shape, and except for y one dtype.
        axis, reverse, exclusive: as in `cumprod`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    arrays = {"x": x, "y": y, "dy": dy}
    arrays, params = backward_arguments("cumprod_backward", arrays, axis, reverse, exclusive, y=ranged_dtype)
    return _prod.vjp(*arrays, **params, implementation=implementation)


def _native(x, *, save, **params):
    kernel = lambda dtypes: call("cumprod", x, dtypes=dtypes, **params)
    return with_unrounded(kernel, x.dtype, ranged_dtype(x.dtype), save)


def _reference(x, **params):
    y = prefixes(lax.cumprod, x, 1, **params)
    return y.astype(x.dtype), y.astype(ranged_dtype(x.dtype))


def _tangent_by(linear_scan):
    """dy_i = x_i dy_{i-1} + y_{i-1} dx_i"""

    def tangent(x, y, t, **params):
        added = before(wide(y), 1, **params) * wide(t)
        return (linear_scan(wide(x), added, **params).astype(t.dtype),)

    return tangent


def _backward_reference(x, y, dy, **params):
    s = adjoint(wide(x), wide(dy), **params)
    return ((before(wide(y), 1, **params) * s).astype(x.dtype),)


def _backward_native(x, y, dy, **params):
    return call("cumprod_backward", x, y, dy, **params)


def _factors(rng, *shape):
    """Factors near 1, some of them zero."""
    return ((1 + 0.3 * rng.standard_normal(shape)) * (rng.random(shape) > 0.05),)


_prod = declare(
    "cumprod",
    **CUMULATIVE,
    public=cumprod,
    dtypes=checks.NUMBERS,
    cases=cases(_factors),
    results=("y", "wide_y"),
    residuals=("x", "wide_y"),
    cut=whole_axis,
    forward=Body(_reference, _native),
    **derivatives(
        tangent=(_tangent_by(_references.linear_scan), _tangent_by(_kernels.linear_scan)),
        backward=(_backward_reference, _backward_native),
        inclusive=with_last(lambda before, x: before * x),
    ),
    kernels={"forward": ("cumprod",), "tangent": ("linear_scan",), "backward": ("cumprod_backward",)},
)
