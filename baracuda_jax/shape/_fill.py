"""Arrays of one value, which may be traced. Its gradient is the sum of all elements."""

import math

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks, promote
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, declare
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ._family import FAMILY, operand, sizes
from ._map import Axis, Map, index_map
from ._partition import whole_behind_batches
from ._repeat import sum_of_copies


@api
def fill(value: ArrayLike, shape: int | Integers, *, implementation: Implementation = None) -> Array:
    """An array of one value.

    Formula:
        y[...] = value; dvalue = sum of dy.

    Args:
        value: a number, or array of one: floats, integers, bool or complex. It may be traced.
        shape: static integers, or one.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [*shape] of value's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it.

    Precision: the value is written as it is. The gradient's sum is formed in float32 for float16 and bfloat16, in the dtype
        itself for others, in an order that depends on the shape alone: the same bits every time.

    Source: jax.numpy.full; torch.full.
    """
    op = "fill"
    value = operand(op, "value", value)
    if value.size != 1:
        raise ValueError(f"{op}: value must be one number, got shape {tuple(value.shape)}")
    return _fill(value.reshape(()), shape=sizes(op, shape), implementation=implementation)


@api
def full(
    shape: int | Integers,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    """An array of one value, `fill` with the arguments of `jax.numpy.full`.

    Args:
        shape: static integers, or one.
        fill_value: a number, or array of one. It may be traced.
        dtype: of the result; by default that of fill_value.
        implementation: "native", "xla", a PlanPreference, or None for automatic.

    Returns:
        Array [*shape].
    """
    value = checks.array("full", "fill_value", fill_value)
    return fill(value if dtype is None else value.astype(dtype), shape, implementation=implementation)


@api
def full_like(
    x: ArrayLike, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, implementation: Implementation = None
) -> Array:
    """An array of one value, of the shape of another, and of its dtype unless one is given.

    Args:
        x: array whose shape and dtype are taken; its elements are not read.
        fill_value: a number, or array of one. It may be traced.
        dtype: of the result; by default that of x.
        implementation: "native", "xla", a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape.
    """
    x = checks.array("full_like", "x", x)
    if dtype is None:
        value = checks.array("full_like", "fill_value", fill_value)
        return fill(promote.cast(value, x.dtype, promote.is_weak(x)), x.shape, implementation=implementation)
    return full(x.shape, fill_value, dtype, implementation=implementation)


@api
def fill_backward(dy: ArrayLike, *, implementation: Implementation = None) -> Array:
    """The gradient of `fill`: the sum of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of value.
    """
    dy = operand("fill_backward", "dy", dy, checks.INEXACT)
    return _fill.vjp(dy, shape=tuple(dy.shape), implementation=implementation)


def _reference(value, *, shape):
    return (jnp.broadcast_to(value.reshape(*value.shape, *(1,) * len(shape)), (*value.shape, *shape)),)


def _backward_reference(dy, *, shape):
    return (wide(dy).sum(range(dy.ndim - len(shape), dy.ndim)).astype(dy.dtype),)


def _native(value, *, save=False, shape):
    return [index_map("fill", value, value.ndim, Map((Axis(math.prod(shape), 0),)), shape)]


def _backward_native(dy, *, shape):
    lead = dy.shape[: dy.ndim - len(shape)]
    elements = math.prod(shape)
    return [sum_of_copies(dy.reshape(*lead, elements), shape=(1,), repeats=(elements,)).reshape(lead)]


def _case(name, shape):
    return Case(name, lambda rng: (rng.standard_normal(1),), dict(shape=shape))


_fill = declare(
    "fill",
    **FAMILY,
    public=fill,
    cases=(_case("matrix", (5, 7)), _case("vector", 40), _case("many", (3, 4, 50)), _case("one", (1, 2))),
    operands=("value",),
    differentiable=("value",),
    linear=lambda params: params,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    cut=whole_behind_batches(lambda params: (0, len(params["shape"]))),
    kernels={"forward": ("move",), "backward": ("repeat_backward",)},
    default="xla",
)
