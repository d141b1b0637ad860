"""Layer normalization."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import BY_SLICES, epsilon, of_each, slices


@api
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> Array:
    """Layer normalization: each slice gets mean 0 and variance 1, and then a weight and a bias.

    Formula:
        y = weight (x - mean) / sqrt(variance + eps) + bias, with the mean and the biased variance of each slice. With
        n = (x - mean) r and r = 1 / sqrt(variance + eps): dx = r (g - mean(g) - n mean(g n)) for g = weight dy; dweight is
        the sum of n dy, and dbias that of dy, over the slices.

    Args:
        x: floats, of rank 1 or more.
        weight: array of x's dtype, of the sizes of the normalized axes, in x's order; None for 1.
        bias: as weight; None for 0.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        eps: static number, what is added to the variance.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The variance is that of differences from the
    mean: it is never negative.

    Source: torch.nn.functional.layer_norm, whose normalized_shape are the last axes; jax.nn.standardize.
    """
    op = "layer_norm"
    x, weight, bias, back, _ = slices(op, x, axis, weight=(weight, 1), bias=(bias, 0))
    return back(_layer_norm(x, weight, bias, eps=epsilon(op, eps), implementation=implementation))


@api
def layer_norm_backward(
    x: ArrayLike,
    weight: ArrayLike,
    dy: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `layer_norm`.

    Args:
        x: floats, what was normalized.
        weight: as for `layer_norm`; None for 1.
        dy: the cotangent of the result, of x's shape and dtype.
        axis, eps: as for `layer_norm`.
        implementation: "xla" or None.

    Returns:
        The cotangents of x, of weight and of bias.
    """
    op = "layer_norm_backward"
    dy = checks.array(op, "dy", dy)
    checks.shape(op, "dy", dy, jnp.shape(x), "that of x")
    x, weight, bias, back, of_slice = slices(op, x, axis, weight=(weight, 1), bias=(None, 0))
    checks.same_dtype(op, "dy", dy, "x", x)
    dx, *rest = _layer_norm.vjp(
        x, weight, bias, slices(op, dy, axis)[0], eps=epsilon(op, eps), implementation=implementation
    )
    return back(dx), *map(of_slice, rest)


def _reference(x, weight, bias, *, eps):
    centered = wide(x) - wide(x).mean(-1, keepdims=True)
    y = centered * jax.lax.rsqrt(jnp.square(centered).mean(-1, keepdims=True) + eps)
    return ((y * of_each(wide(weight), x) + of_each(wide(bias), x)).astype(x.dtype),)


def _case(name, shape, weight, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape), *rng.standard_normal((2, *weight))), kwargs)


_layer_norm = declare(
    "layer_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=layer_norm,
    cases=(
        _case("rows", (5, 41), (41,)),
        _case("columns", (17, 6), (17,), axis=0, eps=1e-3),
        _case("two axes", (3, 4, 5), (3, 5), axis=(0, -1)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight", "bias"),
    differentiable=("x", "weight", "bias"),
    forward=Body(_reference),
    batched=as_they_are,
    cut=BY_SLICES,
    kernels={},
    library="xla",
)
