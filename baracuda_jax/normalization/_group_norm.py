"""Normalization of groups of channels, and of single channels, of each element of a batch."""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core import prefer as preference
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.op import as_they_are, compose, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import channels, cotangent, epsilon, factors, filled, groups_normalized
from ._groups import BODIES, by_groups, statistics


@facade_api("xla", has_kernels=True)
def group_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> Array:
    """Group normalization: each group of channels of each element of the batch gets mean 0 and variance 1.

    Formula:
        y = weight (x - mean) / sqrt(variance + eps) + bias, with the mean and the biased variance of each group, and a
        weight and a bias for each channel. With n = (x - mean) r and r = 1 / sqrt(variance + eps):
        dx = r (g - mean(g) - n mean(g n)) for g = weight dy; dweight is the sum of n dy over all elements of a channel, and
        dbias that of dy.

    Args:
        x: floats [N, C, ...], or with the channels on another axis. The batch is axis 0; where the channels are on axis 0,
            there is no batch.
        weight: array [C]; None for 1. It has x's dtype, or is float32 with half precisions.
        bias: as weight; None for 0.
        num_groups: static integer that divides C. A group consists of C / num_groups adjacent channels.
        axis: static integer, the axis of the channels: 1 for N C ..., -1 for N ... C.
        eps: static number, what is added to the variance.
        implementation: "native" (the kernel, where the axis of the channels is the batch's or follows it), "xla" (plain
            JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The variance is that of differences from the
    mean: it is never negative. Kernels add in a fixed order, without atomics: results are the same bits every time.

    Source: torch.nn.functional.group_norm; Wu and He, Group Normalization (2018).
    """
    op = "group_norm"
    x, axis, weight, bias = channels(op, x, axis, weight=weight, bias=bias)
    num_groups = _groups(op, x, axis, num_groups)
    return _normalize(op, x, weight, bias, axis, num_groups, epsilon(op, eps), implementation)


@facade_api("xla", has_kernels=True)
def instance_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    axis: int = 1,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> Array:
    """Instance normalization: each channel of each element of the batch gets mean 0 and variance 1.

    Formula:
        y = weight (x - mean) / sqrt(variance + eps) + bias, with the mean and the biased variance over the other axes:
        those of group_norm with a group a channel. So are the gradients.

    Args:
        x: floats [N, C, ...], or with the channels on another axis. The batch is axis 0; where the channels are on axis 0,
            there is no batch.
        weight: array [C]; None for 1. It has x's dtype, or is float32 with half precisions.
        bias: as weight; None for 0.
        axis: static integer, the axis of the channels: 1 for N C ..., -1 for N ... C.
        eps: static number, what is added to the variance.
        implementation: "native" (the kernel, where the axis of the channels is the batch's or follows it), "xla" (plain
            JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The variance is that of differences from the
    mean: it is never negative. Kernels add in a fixed order, without atomics: results are the same bits every time.

    Source: torch.nn.functional.instance_norm with use_input_stats=True; Ulyanov et al., Instance Normalization (2016).
    """
    op = "instance_norm"
    x, axis, weight, bias = channels(op, x, axis, weight=weight, bias=bias)
    return _normalize(op, x, weight, bias, axis, x.shape[axis], epsilon(op, eps), implementation)


@api
def group_norm_backward(
    x: ArrayLike,
    weight: ArrayLike | None,
    dy: ArrayLike,
    *,
    num_groups: int,
    axis: int = 1,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """The gradient of `group_norm`: see its formula.

    Args:
        x, weight, num_groups, axis, eps, implementation: as in `group_norm`.
        dy: the cotangent of the result, of x's shape and dtype.

    Returns:
        The cotangents of x, weight and bias, of which the last two have the shape and the dtype of weight, or those of one
        of x's dtype.
    """
    op = "group_norm_backward"
    dy = cotangent(op, x, dy)
    x, axis, weight = channels(op, x, axis, weight=weight)
    num_groups = _groups(op, x, axis, num_groups)
    return _gradient(op, x, weight, dy, axis, num_groups, epsilon(op, eps), implementation)


@api
def instance_norm_backward(
    x: ArrayLike,
    weight: ArrayLike | None,
    dy: ArrayLike,
    *,
    axis: int = 1,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """The gradient of `instance_norm`: see its formula.

    Args:
        x, weight, axis, eps, implementation: as in `instance_norm`.
        dy: the cotangent of the result, of x's shape and dtype.

    Returns:
        The cotangents of x, weight and bias, of which the last two have the shape and the dtype of weight, or those of one
        of x's dtype.
    """
    op = "instance_norm_backward"
    dy = cotangent(op, x, dy)
    x, axis, weight = channels(op, x, axis, weight=weight)
    return _gradient(op, x, weight, dy, axis, x.shape[axis], epsilon(op, eps), implementation)


def _groups(op, x, axis, num_groups):
    num_groups = checks.integer(op, "num_groups", num_groups, 1)
    if x.shape[axis] % num_groups:
        raise ValueError(f"{op}: num_groups must divide the {x.shape[axis]} channels of x, got {num_groups}")
    return num_groups


def _has_kernel(op, x, axis, implementation):
    """Whether groups are contiguous, and not empty. A call that asks for a kernel where they are not is refused."""
    if axis <= 1 and x.shape[axis] > 0:
        return True
    if preference.demands_native(op, implementation):
        raise ValueError(
            f"{op}: implementation='native', but there are kernels for groups of channels that are contiguous alone, on "
            f"axis 0 or 1, got axis {axis} of shape {x.shape}; xla computes the others"
        )
    return False


def _split(x, axis, num_groups):
    """[batch, groups, channels, space], without the batch where there is none. In two steps, each of which JAX also takes
    under a vmap along an explicit axis of a mesh."""
    lead, space = x.shape[:axis], math.prod(x.shape[axis + 1 :])
    x = explicit.reshape(x, *lead, x.shape[axis], space)
    return explicit.reshape(x, *lead, num_groups, x.shape[axis] // num_groups, space)


def _joined(y, shape, axis):
    return explicit.reshape(explicit.reshape(y, *shape[: axis + 1], y.shape[-1]), *shape)


def _by_group(vector, num_groups):
    return explicit.reshape(vector, num_groups, vector.shape[0] // num_groups)


def _normalize(op, x, weight, bias, axis, num_groups, eps, implementation):
    if not _has_kernel(op, x, axis, implementation):
        return _plain(x, weight, bias, axis=axis, num_groups=num_groups, eps=eps)
    weight, bias = (_by_group(vector, num_groups) for vector in factors(weight, bias, x, axis))
    y = _op(_split(x, axis, num_groups), weight, bias, eps=eps, implementation=implementation)
    return _joined(y, x.shape, axis)


def _gradient(op, x, weight, dy, axis, num_groups, eps, implementation):
    if not _has_kernel(op, x, axis, implementation):
        return _plain_gradient(x, weight, dy, axis=axis, num_groups=num_groups, eps=eps)
    weight, (rows, dy) = (
        _by_group(filled(weight, 1, x, axis), num_groups),
        (_split(a, axis, num_groups) for a in (x, dy)),
    )
    mean, r = _statistics(rows, eps=eps)
    dx, *sums = _op.vjp(rows, weight, mean, r, dy, eps=eps, implementation=implementation)
    return _joined(dx, x.shape, axis), *(explicit.reshape(a, x.shape[axis]) for a in sums)


_plain = compiled("axis", "num_groups", "eps")(groups_normalized)
_statistics = compiled("eps")(statistics)


@compiled("axis", "num_groups", "eps")
def _plain_gradient(x, weight, dy, *, axis, num_groups, eps):
    weight = jnp.ones(x.shape[axis], x.dtype) if weight is None else weight
    of = lambda *args: groups_normalized(*args, axis=axis, num_groups=num_groups, eps=eps)
    return jax.vjp(of, x, weight, jnp.zeros_like(weight))[1](dy)


def _case(name, shape, channels, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape), *rng.standard_normal((2, channels))), kwargs)


_op = declare(
    "group_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=group_norm,
    cases=(
        _case("channels first", (2, 6, 3, 4), 6, num_groups=3),
        _case("one group", (3, 4, 5), 4, num_groups=1, eps=1e-3),
        _case("no batch", (6, 7), 6, num_groups=2, axis=0),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight", "bias"),
    results=("y", "mean", "r"),
    differentiable=("x", "weight", "bias"),
    residuals=("x", "weight", "mean", "r"),
    shared={"weight": 2, "bias": 2},
    library="xla",
    default="xla",
    regime=by_groups,
    batched=as_they_are,
    **BODIES,
)
compose(
    "instance_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=instance_norm,
    cases=(
        _case("channels first", (2, 3, 4, 5), 3),
        _case("no batch", (3, 7), 3, axis=0, eps=1e-3),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight", "bias"),
    differentiable=("x", "weight", "bias"),
    made_of=("group_norm",),
)
