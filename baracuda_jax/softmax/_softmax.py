"""Softmax and its logarithm."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide


@facade_api("xla")
def softmax(
    x: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Softmax: exponentials of each slice, divided by their sum.

    Formula:
        y = exp(x - m) / sum(exp(x - m)), with the maximum m of the slice. dx = y (dy - sum(y dy)).

    Args:
        x: floats, of rank 1 or more.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        where: bool array that broadcasts to x's shape: the elements that take part. The others give 0, whatever they are.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype. A slice of which nothing takes part is 0, and so is its gradient. A slice with NaN,
        with +infinity, or with -infinity alone is NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The gradient reads y before it is rounded.

    Source: torch.nn.functional.softmax, jax.nn.softmax, scipy.special.softmax.
    """
    x, where, axis = _arguments("softmax", x, where, axis)
    return _softmax(x, where, axis=axis)


softmax_strided = softmax


@facade_api("xla")
def log_softmax(
    x: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Logarithm of softmax, also where softmax is so small that it is rounded to 0.

    Formula:
        y = x - m - log(sum(exp(x - m))), with the maximum m of the slice. dx = dy - exp(y) sum(dy).

    Args:
        x: floats, of rank 1 or more.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        where: bool array that broadcasts to x's shape: the elements that take part. The others give -infinity, whatever they
            are.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype. A slice of which nothing takes part is -infinity, and its gradient is 0. A slice with
        NaN, with +infinity, or with -infinity alone is NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.nn.functional.log_softmax, jax.nn.log_softmax, scipy.special.log_softmax.
    """
    x, where, axis = _arguments("log_softmax", x, where, axis)
    return _log_softmax(x, where, axis=axis)


def _arguments(op, x, where, axis):
    x = checks.floats(op, "x", x)
    axes = checks.axes(op, "x", x, axis)
    return x, None if where is None else checks.mask(op, where, x), axes


@compiled("axis")
def _softmax(x, where, *, axis):
    return of_wide(wide(x), _as(x, where), axis).astype(x.dtype)


@compiled("axis")
def _log_softmax(x, where, *, axis):
    where = _as(x, where)
    shifted, powers = _shifted(wide(x), where, axis)
    y = shifted - jnp.log(_total(powers, where, axis))
    return (y if where is None else jnp.where(where, y, -jnp.inf)).astype(x.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def of_wide(x, where, axis):
    """Softmax in the dtype of x. The rule keeps y for the gradient, instead of what y is made of."""
    _, powers = _shifted(x, where, axis)
    return powers / _total(powers, where, axis)


@of_wide.defjvp
def _tangent(axis, primals, tangents):
    (_, where), t = primals, tangents[0]
    y = of_wide(*primals, axis)
    zero_elsewhere = lambda t: t if where is None else jnp.where(where, t, 0)  # also NaN from what does not take part
    t = zero_elsewhere(t)
    return y, zero_elsewhere(y * (t - (y * t).sum(axis, keepdims=True)))


def _as(x, where):
    return None if where is None else jnp.broadcast_to(where, x.shape)


def _shifted(x, where, axis):
    """The differences from the maximum, and their exponentials; both are 0 where nothing takes part."""
    fixed = jax.lax.stop_gradient(x)
    taken = fixed if where is None else jnp.where(where, fixed, -jnp.inf)
    shifted = x - taken.max(axis, keepdims=True, initial=-jnp.inf)
    if where is None:
        return shifted, jnp.exp(shifted)
    shifted = jnp.where(where, shifted, 0)
    return shifted, jnp.where(where, jnp.exp(shifted), 0)


def _total(powers, where, axis):
    """The sum, which is at least 1 where something takes part, and else is taken to be 1."""
    total = powers.sum(axis, keepdims=True)
    return total if where is None else jnp.where(total == 0, 1, total)


def _declare(fun, **more):
    draw = lambda *shape: lambda rng: (4 * rng.standard_normal(shape),)
    facade(
        fun.__name__,
        family="softmax",
        category=OpCategory.SOFTMAX,
        public=fun,
        cases=(
            Case("rows", draw(5, 41)),
            Case("columns", draw(17, 6), {"axis": 0}),
            Case("two axes", draw(3, 4, 5), {"axis": (0, -1)}),
        ),
        dtypes=checks.FLOATS,
        operands=("x",),
        differentiable=("x",),
        **more,
    )


_declare(softmax, own_rules=True)
_declare(log_softmax)
