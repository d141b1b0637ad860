"""The variance and the standard deviation."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core import prefer as preference
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import Body, declare
from .._core.types import Axes, Implementation
from .._core.wide import wide, wide_dtype
from ._arguments import (
    ROUNDING,
    array,
    axes_of,
    document,
    elements_of,
    mask_of,
    per_slice,
    promoted,
    with_axes,
    with_residuals,
)
from ._family import AXES, cases, derivatives, slices
from ._kernels import broadcast, reduce
from ._partition import variance_by_slices
from ._sum import total

_DOC = dict(
    dtypes="a float type; integers and bool are cast to one",
    precision=f"{ROUNDING} Differences are those from a mean, which is combined from those of a few elements each: "
    "equal elements give exactly 0.",
)
_ARGUMENTS = "ddof", "where", "return_residuals"
_MEAN = "the mean of each slice, in float32 for float16 and bfloat16, which has a gradient too"


@api
@document(
    "y = (sum of (x_i - mean)^2 over the elements of a slice) / (n - ddof); dx_i = 2 dy (x_i - mean) / (n - ddof)",
    "jax.numpy.var; torch.var, of correction 1 by default",
    *_ARGUMENTS,
    residuals=f"{_MEAN},",
    **_DOC,
)
def var(
    x: ArrayLike,
    axis: Axes = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Variance of the elements along axes."""
    return _variance("var", _var, x, axis, ddof, correction, keepdims, where, return_residuals, implementation)


@api
@document(
    "y = sqrt((sum of (x_i - mean)^2 over the elements of a slice) / (n - ddof)); dx_i = dy (x_i - mean) / ((n - ddof) y), "
    "0 where y is 0",
    "jax.numpy.std; torch.std, of correction 1 by default",
    *_ARGUMENTS,
    residuals=f"{_MEAN}, and y before it is rounded, in float32 for these too,",
    **_DOC,
)
def std(
    x: ArrayLike,
    axis: Axes = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Standard deviation of the elements along axes."""
    return _variance("std", _std, x, axis, ddof, correction, keepdims, where, return_residuals, implementation)


def _variance(op, which, x, axis, ddof, correction, keepdims, where, save, implementation):
    x = array(op, "x", x, checks.FLOATS, to_float=True)
    axes, ddof = axes_of(op, "x", x, axis), _ddof(op, ddof, correction)
    save = checks.flag(op, "return_residuals", save)
    if where is not None:
        if save:
            raise ValueError(f"{op}: return_residuals must be False where `where` is given")
        how = dict(root=which is _std, axes=axes, ddof=ddof, implementation=preference.resolve(op, implementation))
        y = _of_some(x, mask_of(op, "x", x, where), **how)
        return with_axes(op, y, axes, keepdims)
    out = which(x, **_params(x, axes, ddof), save=save, implementation=implementation)
    return with_residuals(op, out, axes, keepdims, save)


def _params(x, axes, ddof):
    count = elements_of(x, axes)
    return dict(axes=axes, count=float(count), divisor=count - ddof)


@compiled("root", "axes", "ddof", "implementation")
def _of_some(x, mask, *, root, axes, ddof, implementation):
    """Of the elements that count, by sums."""
    dtype = wide(x).dtype
    count = slices(total(mask, axes, promoted(mask.dtype), implementation).astype(dtype), axes)
    some = jnp.where(mask, wide(x), 0)
    center = slices(total(some, axes, dtype, implementation), axes) / count
    squares = jnp.where(mask, jnp.square(some - center), 0)
    left = jnp.squeeze(count, axes) - ddof
    y = jnp.where(left > 0, total(squares, axes, dtype, implementation) / jnp.where(left > 0, left, 1), math.nan)
    return (_root(y) if root else y).astype(x.dtype)


def _root(variance):
    """The square root, whose gradient at 0 is 0."""
    return jnp.where(variance == 0, 0, jnp.sqrt(jnp.where(variance == 0, 1, variance)))


def _ddof(op, ddof, correction):
    name, value = ("ddof", ddof) if correction is None else ("correction", correction)
    if correction is not None and ddof != 0:
        raise ValueError(f"{op}: one of ddof and correction must be given, got {ddof!r} and {correction!r}")
    if isinstance(value, jax.core.Tracer | bool) or not isinstance(value, int | float):
        raise TypeError(f"{op}: {name} must be a static number, got {value!r}")
    return float(value)


def _variance_backward(op, which, x, y, mean, dy, axis, ddof, correction, keepdims, implementation):
    x = array(op, "x", x, checks.FLOATS)
    axes, ddof = axes_of(op, "x", x, axis), _ddof(op, ddof, correction)
    arrays, saved = {"y": y, "mean": mean, "dy": dy}, wide_dtype(x.dtype)
    dtypes = dict(y=saved, mean=saved) if which is _std else dict(mean=saved)
    y, mean, dy = per_slice(op, "x", x, axes, keepdims, arrays, **dtypes)
    return which.vjp(x, y, mean, dy, **_params(x, axes, ddof), implementation=implementation)


@api
def var_backward(
    x: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike,
    dy: ArrayLike,
    axis: Axes = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `var`: dx_i = 2 dy (x_i - mean) / (n - ddof).

    Args:
        x: floats, what was reduced.
        y, mean: as `var` returns them with return_residuals.
        dy: the cotangent of y, of its shape and dtype.
        axis, ddof, correction, keepdims: as in `var`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _variance_backward("var_backward", _var, x, y, mean, dy, axis, ddof, correction, keepdims, implementation)


@api
def std_backward(
    x: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike,
    dy: ArrayLike,
    axis: Axes = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `std`: dx_i = dy (x_i - mean) / ((n - ddof) y), 0 where y is 0.

    Args:
        x: floats, what was reduced.
        y, mean: the third and the second result of `std` with return_residuals: float32 for float16 and bfloat16, for which
            y is the result before it is rounded.
        dy: the cotangent of the result, of its shape and dtype.
        axis, ddof, correction, keepdims: as in `std`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _variance_backward("std_backward", _std, x, y, mean, dy, axis, ddof, correction, keepdims, implementation)


def _with_mean(cases):
    return (dataclasses.replace(case, name=f"{case.name} with the mean") for case in cases)


def _mean_reference(t, axes, count):
    return wide(t).sum(axes) / count


def _mean_native(t, axes, count):
    return reduce("reduce_sum", wide(t), axes, [wide_dtype(t.dtype)], divisor=count)[0]


def _with_tangent_of_mean(of_y, of_mean):
    def tangent(x, y, mean, t, *, axes, count, **params):
        return *of_y(x, y, mean, t, axes=axes, **params), of_mean(t, axes, count)

    return tangent


def _with_cotangent_of_mean(of_y):
    def backward(x, y, mean, dy, dmean, *, axes, count, **params):
        parts = [] if dy is None else [wide(x) for x in of_y(x, y, mean, dy, axes=axes, **params)]
        if dmean is None:
            return (parts[0].astype(x.dtype),)
        parts.append(jnp.broadcast_to(slices(dmean / count, axes), x.shape))
        return (functools.reduce(jnp.add, parts).astype(x.dtype),)

    return backward


def _declare(public, root):
    results = ("y", "mean", "wide_y") if root else ("y", "mean")

    def reference(x, *, axes, count, divisor):
        mean = wide(x).mean(axes)
        squares = jnp.square(wide(x) - slices(mean, axes)).sum(axes)
        y = squares / divisor if divisor > 0 else jnp.full_like(squares, math.nan)
        y = _root(y) if root else y
        return (y.astype(x.dtype), mean, y)[: len(results)]

    def native(x, *, axes, count, divisor, save):
        saved = wide_dtype(x.dtype)
        is_rounded = root and saved != x.dtype
        dtypes = [x.dtype, saved, saved][: 2 + is_rounded if save else 1]
        outs = reduce("reduce_variance", x, axes, dtypes, divisor=divisor, root=root)
        return [*outs, outs[0]] if save and root and not is_rounded else outs

    def slope(x, y, mean, *, axes, divisor):
        difference = x - slices(x.mean(axes), axes)
        if not divisor > 0:
            return jnp.full_like(x, math.nan)
        if not root:
            return difference * (2 / divisor)
        y = slices(y, axes)
        return jnp.where(y == 0, 0, difference / (divisor * jnp.where(y == 0, 1, y)))

    def backward(x, y, mean, dy, *, axes, divisor):
        params = dict(divisor=divisor, root=root)
        return broadcast("reduce_variance_backward", x.shape, axes, [x], [y, mean, dy], **params)

    bodies = derivatives(slope, backward)
    return declare(
        public.__name__,
        **AXES,
        operands=("x",),
        differentiable=("x",),
        public=public,
        dtypes=checks.FLOATS,
        cases=(*cases(), *cases(ddof=1)[:1], *_with_mean(cases(return_residuals=True)[1:2])),
        results=results,
        outputs=("y", "mean"),
        residuals=("x", "wide_y" if root else "y", "mean"),
        cut=variance_by_slices(root),
        forward=Body(reference, native),
        tangent=Body(
            _with_tangent_of_mean(bodies["tangent"].reference, _mean_reference),
            _with_tangent_of_mean(bodies["tangent"].native, _mean_native),
        ),
        backward=Body(*map(_with_cotangent_of_mean, bodies["backward"])),
        kernels={
            "forward": ("reduce_variance",),
            "tangent": ("reduce_variance_backward", "reduce_sum"),
            "backward": ("reduce_variance_backward",),
        },
    )


_var = _declare(var, False)
_std = _declare(std, True)
