"""The sum and the mean."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core import prefer as preference
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import Body, declare
from .._core.types import Axes, Implementation, Integers
from .._core.wide import wide
from ._arguments import (
    ROUNDING,
    array,
    axes_of,
    cast,
    document,
    elements_of,
    mask_of,
    masked,
    only,
    per_slice,
    promoted,
    static_shape,
    with_axes,
    with_initial,
)
from ._family import AXES, cases, slices
from ._kernels import broadcast, reduce
from ._partition import sum_by_slices

_PRECISION = (
    f"{ROUNDING} Sums are formed pairwise or in short runs, so that errors grow with the logarithm of their length."
)


@api
@document(
    "y = sum of the elements x_i of a slice; dx_i = dy",
    "jax.numpy.sum; torch.sum",
    "dtype", "initial", "where",
    dtypes="any number type or bool",
    returns="Array without the axes: of x's dtype for floats and complex numbers; of int64 or uint64 for integers and bool, "
    "where JAX has 64 bits, else of int32 or uint32.",
    precision=f"{_PRECISION} Integers wrap.",
)  # fmt: skip
def sum(
    x: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Sum of the elements along axes."""
    op = "sum"
    x = array(op, "x", x, checks.EVERY)
    out = promoted(x.dtype) if dtype is None else None
    x = cast(op, x, dtype)
    axes = axes_of(op, "x", x, axis)
    x = masked(op, "x", x, where, 0)
    y = total(x, axes, out or x.dtype, implementation)
    return with_axes(op, with_initial(op, y, initial, jnp.add), axes, keepdims)


@api
@document(
    "y = (sum of the elements x_i of a slice) / n, n being their number; dx_i = dy / n",
    "jax.numpy.mean; torch.mean",
    "dtype", "where",
    dtypes="any number type or bool; integers and bool are cast to a float type",
    precision=_PRECISION,
)  # fmt: skip
def mean(
    x: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Mean of the elements along axes."""
    op = "mean"
    x = array(op, "x", cast(op, checks.array(op, "x", x), dtype), checks.INEXACT, to_float=True)
    axes = axes_of(op, "x", x, axis)
    if where is None:
        y = _mean(
            x,
            axes=axes,
            shape=x.shape,
            dtype=x.dtype,
            divisor=float(elements_of(x, axes)),
            implementation=implementation,
        )
        return with_axes(op, y, axes, keepdims)
    y = _mean_of_some(x, mask_of(op, "x", x, where), axes=axes, implementation=preference.resolve(op, implementation))
    return with_axes(op, y, axes, keepdims)


@compiled("axes", "implementation")
def _mean_of_some(x, mask, *, axes, implementation):
    y = total(wide(only(x, mask, nothing=0)), axes, wide(x).dtype, implementation)
    count = total(mask, axes, promoted(mask.dtype), implementation)
    return (y / count.astype(y.real.dtype)).astype(x.dtype)


def total(x, axes, dtype, implementation):
    """The sum, of the given dtype."""
    return _sum(x, axes=axes, shape=x.shape, dtype=jnp.dtype(dtype), divisor=1.0, implementation=implementation)


def _backward(op, which, dy, shape, axis, keepdims, divided, implementation):
    dy = array(op, "dy", dy, checks.INEXACT)
    x = jax.ShapeDtypeStruct(static_shape(op, shape), dy.dtype)
    axes = axes_of(op, "an array", x, axis)
    (dy,) = per_slice(op, "shape", x, axes, keepdims, {"dy": dy})
    divisor = float(elements_of(x, axes)) if divided else 1.0
    return which.vjp(dy, axes=axes, shape=x.shape, dtype=dy.dtype, divisor=divisor, implementation=implementation)


@api
def sum_backward(
    dy: ArrayLike,
    shape: int | Integers,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `sum`: dx_i = dy.

    Args:
        dy: floats or complex numbers, the cotangent of the result.
        shape: tuple of integers, that of what was reduced.
        axis, keepdims: as in `sum`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _backward("sum_backward", _sum, dy, shape, axis, keepdims, False, implementation)


@api
def mean_backward(
    dy: ArrayLike,
    shape: int | Integers,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `mean`: dx_i = dy / n. Arguments as in `sum_backward`."""
    return _backward("mean_backward", _mean, dy, shape, axis, keepdims, True, implementation)


def _reference(x, *, axes, shape, dtype, divisor):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return (x.sum(axes, dtype=dtype),)
    return ((wide(x).sum(axes) / divisor).astype(dtype),)


def _native(x, *, axes, shape, dtype, divisor, save=False):
    return reduce("reduce_sum", x, axes, [dtype], divisor=divisor)


def full_shape(dy, axes, shape):
    """The shape of what was reduced: dy's, and of `shape`, which has no batches of vmap, the reduced axes."""
    full = list(dy.shape)
    batches = dy.ndim + len(axes) - len(shape)
    for i in axes:
        full.insert(i, shape[i - batches])
    return tuple(full)


def _backward_reference(dy, *, axes, shape, dtype, divisor):
    dx = (wide(dy) / divisor).astype(dy.dtype)
    return (jnp.broadcast_to(slices(dx, axes), full_shape(dy, axes, shape)),)


def _backward_native(dy, *, axes, shape, dtype, divisor):
    return (broadcast("reduce_sum_backward", full_shape(dy, axes, shape), axes, [], [dy], divisor=divisor),)


def _declare(public, dtypes):
    return declare(
        public.__name__,
        **AXES,
        operands=("x",),
        differentiable=("x",),
        public=public,
        dtypes=dtypes,
        cases=cases(),
        linear=lambda params: params,
        cut=sum_by_slices,
        forward=Body(_reference, _native),
        backward=Body(_backward_reference, _backward_native),
        kernels={"forward": ("reduce_sum",), "backward": ("reduce_sum_backward",)},
    )


_sum = _declare(sum, checks.EVERY)
_mean = _declare(mean, checks.INEXACT)
