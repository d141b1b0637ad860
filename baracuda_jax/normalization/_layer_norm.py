"""Layer normalization."""

from collections.abc import Sequence

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import as_they_are, declare
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import as_given, cotangent, epsilon, slices
from ._rows import bodies, statistics


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
        weight: array of the sizes of the normalized axes, in x's order; None for 1. It has x's dtype, or is float32 with
            half precisions.
        bias: as weight; None for 0.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        eps: static number, what is added to the variance.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The variance is that of differences from the
        mean: it is never negative. Kernels add in a fixed order, without atomics: results are the same bits every time.

    Source: torch.nn.functional.layer_norm, whose normalized_shape are the last axes; jax.nn.standardize.
    """
    op = "layer_norm"
    x, weight, bias, back = slices(op, x, axis, weight=(weight, 1), bias=(bias, 0))
    if weight.dtype != bias.dtype:
        weight, bias = wide(weight), wide(bias)
    return back(_layer_norm(x, weight, bias, eps=epsilon(op, eps), implementation=implementation))


norm_strided = layer_norm


@api
def layer_norm_backward(
    x: ArrayLike,
    weight: ArrayLike | None,
    dy: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """The gradient of `layer_norm`: see its formula.

    Args:
        x, weight, axis, eps, implementation: as in `layer_norm`.
        dy: the cotangent of the result, of x's shape and dtype.

    Returns:
        The cotangents of x, weight and bias, of which the last two have the shape and the dtype of weight, or those of one
        of x's dtype.
    """
    op = "layer_norm_backward"
    dy = cotangent(op, x, dy)
    rows, factors, back = slices(op, x, axis, weight=(weight, 1))
    dy, _ = slices(op, dy, axis)
    eps = epsilon(op, eps)
    mean, r = statistics(rows, centered=True, eps=eps)
    dx, *sums = _layer_norm.vjp(rows, factors, mean, r, dy, eps=eps, implementation=implementation)
    return back(dx), *(as_given(a, weight) for a in sums)


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
        _case("aligned rows", (3, 4, 64), (64,)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight", "bias"),
    results=("y", "mean", "r"),
    differentiable=("x", "weight", "bias"),
    residuals=("x", "weight", "mean", "r"),
    shared={"weight": 1, "bias": 1},
    regime=along_axes,
    batched=as_they_are,
    **bodies("layer_norm", centered=True),
)
