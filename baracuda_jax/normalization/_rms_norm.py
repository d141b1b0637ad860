"""Normalization by the root of the mean square."""

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
from ._arguments import as_given, cotangent, epsilon, number, slices
from ._rows import bodies, statistics


@api
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-6,
    offset: float = 0.0,
    round_before_weight: bool = False,
    implementation: Implementation = None,
) -> Array:
    """RMS normalization: each slice gets a mean square of 1, and then a weight.

    Formula:
        y = (offset + weight) x r, with r = 1 / sqrt(mean(x^2) + eps) of each slice. With n = x r and
        g = (offset + weight) dy: dx = r (g - n mean(g n)); dweight is the sum of n dy over the slices.

    Args:
        x: floats, of rank 1 or more.
        weight: array of the sizes of the normalized axes, in x's order; None for a factor of 1. It has x's dtype, or is
            float32 with half precisions.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        eps: static number, what is added to the mean square.
        offset: static number, what is added to the weight: 1 for a weight that begins at 0, as Gemma's.
        round_before_weight: static, whether x r is rounded to x's dtype before the weight multiplies it, as in Llama.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once; twice with `round_before_weight`. Kernels add
        in a fixed order, without atomics: results are the same bits every time.

    Source: torch.nn.functional.rms_norm, whose normalized_shape are the last axes; Zhang and Sennrich, Root Mean Square
    Layer Normalization (2019).
    """
    op = "rms_norm"
    params = rms_params(op, weight, eps, offset, round_before_weight)
    x, weight, back = slices(op, x, axis, weight=(weight, 1))
    return back(_rms_norm(x, weight, **params, implementation=implementation))


def rms_params(op, weight, eps, offset, rounds):
    offset = number(op, "offset", offset)
    return dict(
        eps=epsilon(op, eps),
        offset=0.0 if weight is None else offset,
        rounds=checks.flag(op, "round_before_weight", rounds),
    )


@api
def rms_norm_backward(
    x: ArrayLike,
    weight: ArrayLike | None,
    dy: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-6,
    offset: float = 0.0,
    round_before_weight: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradient of `rms_norm`: see its formula.

    Args:
        x, weight, axis, eps, offset, round_before_weight, implementation: as in `rms_norm`.
        dy: the cotangent of the result, of x's shape and dtype.

    Returns:
        The cotangents of x and weight; the latter has the shape and the dtype of weight, or those of one of x's dtype.
    """
    op = "rms_norm_backward"
    dy = cotangent(op, x, dy)
    params = rms_params(op, weight, eps, offset, round_before_weight)
    rows, factors, back = slices(op, x, axis, weight=(weight, 1))
    dy, _ = slices(op, dy, axis)
    (r,) = statistics(rows, centered=False, eps=params["eps"])
    dx, dweight = _rms_norm.vjp(rows, factors, r, dy, **params, implementation=implementation)
    return back(dx), as_given(dweight, weight)


def _case(name, shape, weight, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape), rng.standard_normal(weight)), kwargs)


_rms_norm = declare(
    "rms_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=rms_norm,
    cases=(
        _case("rows", (5, 41), (41,)),
        _case("columns", (17, 6), (17,), axis=0, eps=1e-3, offset=1.0),
        _case("two axes", (3, 4, 5), (3, 5), axis=(0, -1)),
        _case("aligned rows", (3, 4, 64), (64,)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight"),
    results=("y", "r"),
    differentiable=("x", "weight"),
    residuals=("x", "weight", "r"),
    shared={"weight": 1},
    regime=along_axes,
    batched=as_they_are,
    **bodies("rms_norm", centered=False),
)
