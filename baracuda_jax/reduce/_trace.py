"""The trace."""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ._arguments import array, promoted, static_shape
from ._family import FAMILY, spaced
from ._kernels import kept_of, workspace
from ._partition import trace_by_slices
from ._sum import full_shape


@api
def trace(
    x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, *, implementation: Implementation = None
) -> Array:
    """Sum of a diagonal of matrices.

    Formula:
        y = sum of x[i, i + offset] over the elements that there are, i along axis1 and i + offset along axis2; dx is dy on
        that diagonal, and 0 elsewhere.

    Args:
        x: array of any number type or bool, of rank 2 or more; the other axes are batches.
        offset: static integer, which diagonal: positive above the main one, negative below.
        axis1: static integer, the axis of rows.
        axis2: static integer, that of columns, another one.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array without the two axes: of x's dtype for floats and complex numbers; of int64 or uint64 for integers and bool,
        where JAX has 64 bits, else of int32 or uint32.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Integers wrap. Results are the same bits every
    time.

    Source: jax.numpy.trace; torch.trace, of one matrix.
    """
    op = "trace"
    x = array(op, "x", x, checks.EVERY)
    params = _params(op, x.shape, offset, axis1, axis2)
    return _trace(x, **params, dtype=promoted(x.dtype), implementation=implementation)


@api
def trace_backward(
    dy: ArrayLike,
    shape: int | Integers,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `trace`: dy on the diagonal, 0 elsewhere.

    Args:
        dy: floats or complex numbers, the cotangent of the result.
        shape: tuple of integers, that of x.
        offset, axis1, axis2: as in `trace`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "trace_backward"
    dy = array(op, "dy", dy, checks.INEXACT)
    shape = static_shape(op, shape)
    params = _params(op, shape, offset, axis1, axis2)
    checks.shape(op, "dy", dy, kept_of(shape, params["axes"]), f"that of {shape} without the two axes")
    return _trace.vjp(dy, **params, dtype=dy.dtype, implementation=implementation)


def _params(op, shape, offset, axis1, axis2):
    """The axes ascending, and the offset from the first to the second."""
    like = jax.ShapeDtypeStruct(shape, jnp.float32)
    if like.ndim < 2:
        raise ValueError(f"{op}: x must have rank 2 or more, got shape {tuple(shape)}")
    axes = checks.axis(op, "x", like, axis1, "axis1"), checks.axis(op, "x", like, axis2, "axis2")
    if axes[0] == axes[1]:
        raise ValueError(f"{op}: axis1 and axis2 must be two axes, got {axis1} and {axis2} for shape {tuple(shape)}")
    offset = checks.integer(op, "offset", offset, -(2**62))
    if axes[0] > axes[1]:
        axes, offset = axes[::-1], -offset
    # No further than the last element, and within 64 bits.
    rows, columns = (shape[i] for i in axes)
    return {"axes": axes, "shape": tuple(shape), "offset": max(-rows, min(offset, columns))}


def _layout(shape, axes):
    """[*batch, rows, middle, columns, inner]"""
    i, j = axes
    return *shape[:i], shape[i], math.prod(shape[i + 1 : j]), shape[j], math.prod(shape[j + 1 :])


def _diagonal(x, axes, offset):
    return jnp.diagonal(x, offset, *axes)


def _reference(x, *, axes, shape, offset, dtype):
    elements = _diagonal(x, axes, offset)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return (elements.sum(-1, dtype=dtype),)
    return (wide(elements).sum(-1).astype(dtype),)


def _native(x, *, axes, shape, offset, dtype, save=False):
    layout = _layout(x.shape, axes)
    batch, (rows, middle, columns, inner) = layout[:-4], layout[-4:]
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    out = [jax.ShapeDtypeStruct((*batch, middle, inner), dtype)]
    size = workspace((*batch, middle), [count, inner] if inner > 1 else [count], x.dtype)
    (y,) = kernel(
        "trace", "...abcd -> ...bd", x.reshape(layout), out=out, workspace=size * middle, offset=offset
    )  # fmt: skip
    return (y.reshape(kept_of(x.shape, axes)),)


def _backward_reference(dy, *, axes, shape, offset, dtype):
    like = jax.ShapeDtypeStruct(full_shape(dy, axes, shape), dy.dtype)
    return jax.linear_transpose(lambda x: _diagonal(x, axes, offset).sum(-1), like)(dy)


def _backward_native(dy, *, axes, shape, offset, dtype):
    full = full_shape(dy, axes, shape)
    layout = _layout(full, axes)
    out = [jax.ShapeDtypeStruct(layout, dy.dtype)]
    dy = dy.reshape(*layout[:-4], layout[-3], layout[-1])
    (dx,) = kernel("trace_backward", "...bd -> ...abcd", dy, out=out, offset=offset)
    return (dx.reshape(full),)


def _case(name, shape, **kwargs):
    return Case(name, lambda rng: spaced(rng, *shape), kwargs)


_trace = declare(
    "trace",
    **FAMILY,
    batched=lambda params: {**params, "axes": tuple(i + 1 for i in params["axes"])},
    operands=("x",),
    differentiable=("x",),
    public=trace,
    dtypes=checks.EVERY,
    cases=(
        _case("square", (7, 7)),
        _case("wide, above", (5, 9), offset=2),
        _case("tall, below", (9, 5), offset=-3),
        _case("batches", (3, 6, 4), axis1=-2, axis2=-1),
        _case("axes turned", (4, 3, 6, 2), axis1=2, axis2=0, offset=1),
    ),
    linear=lambda params: params,
    cut=trace_by_slices,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    kernels={"forward": ("trace",), "backward": ("trace_backward",)},
)
