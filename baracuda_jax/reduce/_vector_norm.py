"""Norms of vectors."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Axes, Implementation
from .._core.wide import wide, wide_dtype, with_unrounded
from ._arguments import (
    ROUNDING,
    array,
    axes_of,
    document,
    elements_of,
    per_slice,
    promoted,
    with_axes,
    with_residuals,
)
from ._count import counted
from ._extremum import largest_magnitude
from ._family import AXES, cases, derivatives, slices, spaced
from ._kernels import broadcast, kept_of, reduce
from ._partition import norm_by_slices
from ._references import norm_reference


@api
@document(
    "y = (sum of |x_i|^p over the elements of a slice)^(1/p) with p = ord; for p = inf and -inf the largest and the "
    "smallest |x_i|, for p = 0 the number of elements that are not zero; dx_i = dy sign(x_i) (|x_i| / y)^(p - 1), "
    "0 where x_i or y is 0",
    "jax.numpy.linalg.vector_norm; torch.linalg.vector_norm",
    "return_residuals",
    name="x",
    before="        ord: static number, the order p of the norm, or inf, -inf or 0.\n",
    dtypes="a float type; integers and bool are cast to one",
    residuals="y before it is rounded, in float32 for float16 and bfloat16 and else y itself,",
    precision=f"{ROUNDING} Powers are those of ratios to the largest element, and squares are scaled: nothing over- or "
    "underflows but what the result's dtype can't hold.",
)
def vector_norm(
    x: ArrayLike,
    ord: float = 2,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Norm of the elements along axes, as of a vector."""
    op = "vector_norm"
    x = array(op, "x", x, checks.FLOATS, to_float=True)
    p = _order(op, ord)
    axes = axes_of(op, "x", x, axis)
    save = checks.flag(op, "return_residuals", return_residuals)
    if save and (p == 0 or math.isinf(p)):
        raise ValueError(f"{op}: return_residuals must be False for ord=inf, -inf and 0, got ord={ord!r}")
    if math.isinf(p):
        if not elements_of(x, axes) and p < 0:
            raise ValueError(f"{op}: x must have at least one element along axis for ord=-inf, got shape {x.shape}")
        y = (
            largest_magnitude(x, axes, p > 0, implementation)
            if elements_of(x, axes)
            else jnp.zeros(kept_of(x.shape, axes), x.dtype)
        )
    elif p == 0:
        y = counted("count", x, axes, promoted(jnp.dtype(bool)), implementation).astype(x.dtype)
    else:
        y = _norm(x, axes=axes, order=p, save=save, implementation=implementation)
        return with_residuals(op, y, axes, keepdims, save)
    return with_axes(op, y, axes, keepdims)


@api
def vector_norm_backward(
    x: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    ord: float = 2,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `vector_norm`: dx_i = dy sign(x_i) (|x_i| / y)^(p - 1), 0 where x_i or y is 0.

    Args:
        x: floats, what was reduced.
        y: the result of `vector_norm` before it is rounded, the second one with return_residuals: float32 for float16 and
            bfloat16, else the result itself.
        dy: the cotangent of the result, of its shape and dtype.
        ord: the order p, finite and not 0.
        axis, keepdims: as in `vector_norm`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "vector_norm_backward"
    x, p = array(op, "x", x, checks.FLOATS), _order(op, ord)
    if p == 0 or math.isinf(p):
        raise ValueError(f"{op}: ord must be finite and not 0, got {ord!r}")
    axes = axes_of(op, "x", x, axis)
    y, dy = per_slice(op, "x", x, axes, keepdims, {"y": y, "dy": dy}, y=wide_dtype(x.dtype))
    return _norm.vjp(x, y, dy, axes=axes, order=p, implementation=implementation)


def _order(op, p):
    if isinstance(p, jax.core.Tracer):
        raise TypeError(f"{op}: ord must be a static number, got a traced value")
    try:
        p = float(p)
    except (TypeError, ValueError):
        raise TypeError(f"{op}: ord must be a number, got {p!r}") from None
    if math.isnan(p):
        raise ValueError(f"{op}: ord must be a number, got {p!r}")
    return p


def _reference(x, *, axes, order):
    y = norm_reference(wide(x), axes, order)
    return y.astype(x.dtype), y


def _native(x, *, axes, order, save):
    call = lambda dtypes: reduce("reduce_norm", x, axes, dtypes, p=order)
    if order == 1:  # whose gradient reads no norm
        (y,) = call([x.dtype])
        return [y, wide(y)] if save else [y]
    return with_unrounded(call, x.dtype, wide_dtype(x.dtype), save)


def _slope(x, y, *, axes, order):
    y = slices(y, axes)
    if order == 1:
        return jnp.sign(x)
    is_none = (x == 0) | (y == 0)
    ratio = jnp.abs(jnp.where(is_none, 1, x)) / jnp.where(is_none, 1, y)
    return jnp.where(is_none, 0, jnp.sign(x) * ratio ** (order - 1))


def _backward(x, y, dy, *, axes, order):
    return broadcast("reduce_norm_backward", x.shape, axes, [x], [y, dy], p=order)


def _off_zero(rng, *shape):
    """Where powers below 1 are not steep."""
    (x,) = spaced(rng, *shape)
    return (np.where(x < 0, x - 2, x + 2),)


_norm = declare(
    "vector_norm",
    **AXES,
    operands=("x",),
    differentiable=("x",),
    public=vector_norm,
    dtypes=checks.FLOATS,
    cases=(
        *cases(),
        *cases(ord=3)[:2],
        *cases(ord=1)[2:3],
        *cases(_off_zero, ord=0.5)[3:4],
        *cases(_off_zero, ord=-1.5)[4:5],
    ),
    results=("y", "wide_y"),
    residuals=("x", "wide_y"),
    cut=norm_by_slices,
    forward=Body(_reference, _native),
    **derivatives(_slope, _backward),
    kernels={
        "forward": ("reduce_norm",),
        "tangent": ("reduce_norm_backward", "reduce_sum"),
        "backward": ("reduce_norm_backward",),
    },
)
