"""Normalization of channels over a batch, with running statistics."""

import math
from collections.abc import Hashable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit, mesh_axis
from .._core import prefer as preference
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.op import as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import along, channels, cotangent, epsilon, factors, filled, moments, number, scaled
from ._batch import BODIES, OUTPUTS, by_channels, statistics


@facade_api("xla", has_kernels=True)
def batch_norm(
    x: ArrayLike,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    axis: int = 1,
    eps: float = 1e-5,
    axis_name: Hashable | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """Batch normalization: each channel gets mean 0 and variance 1, by the batch's statistics or by running ones.

    Formula:
        y = weight (x - mean) / sqrt(variance + eps) + bias. In training, mean and biased variance are those of a
        channel over all other axes; then running_mean becomes (1 - momentum) running_mean + momentum mean, and
        running_var the same of the unbiased variance. Otherwise they are the running ones, which stay. Gradients in
        training are those of layer_norm.

    Args:
        x: floats [N, C, ...], or with the channels on another axis.
        running_mean: array [C]. It has x's dtype, or is float32 with half precisions. In training, None: the new ones
            are the statistics of the batch.
        running_var: as running_mean.
        weight: array [C] of such a dtype; None for 1.
        bias: as weight; None for 0.
        training: static, whether the statistics are those of the batch.
        momentum: static number in [0, 1], the weight of the batch in the new running statistics.
        axis: static integer, the axis of the channels: 1 for N C ..., -1 for N ... C.
        eps: static number, what is added to the variance.
        axis_name: in training, the name of an axis of shard_map, pmap or vmap, or a tuple of them, whose members have
            parts of the batch: the statistics are those of all parts. Under jit, a sharded batch needs no name.
        implementation: "native" (the kernel, in training without axis_name, where the channels are on axis 0 or 1), "xla"
            (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y of x's shape and dtype, the new running mean, and the new running variance. An empty batch leaves these as
        they are; the unbiased variance of one element is 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The variance is that of differences from the
    mean, also across devices: it is never negative. Kernels add in a fixed order, without atomics: results are the same
    bits every time.

    Source: torch.nn.functional.batch_norm, which updates the running statistics in place; torch.nn.SyncBatchNorm for
    axis_name; Ioffe and Szegedy, Batch Normalization (2015).
    """
    op = "batch_norm"
    x, axis, mean, var, weight, bias = channels(
        op, x, axis, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    eps, momentum = epsilon(op, eps), number(op, "momentum", momentum, 0, 1)
    training, parts = checks.flag(op, "training", training), mesh_axis.size(op, axis_name) if training else 1
    if _has_kernel(op, x, axis, training, axis_name, implementation):
        y, found = _normalize(x, weight, bias, axis, eps, implementation)
        return y, *_updated(mean, var, *found, count=x.size // max(x.shape[axis], 1), momentum=momentum)
    if training:
        options = dict(axis=axis, eps=eps, momentum=momentum, parts=parts, axis_name=axis_name)
        return _trained(x, mean, var, weight, bias, **options)
    if mean is None or var is None:
        raise ValueError(
            f"{op}: {'running_var' if var is None else 'running_mean'} must be given unless training, got None"
        )
    return _evaluated(x, mean, var, weight, bias, axis=axis, eps=eps), mean, var


def _has_kernel(op, x, axis, training, axis_name, implementation):
    """Whether the statistics are those of the whole batch, of channels that are contiguous. A call that asks for a kernel
    where they are not is refused."""
    if training and axis_name is None and axis <= 1 and x.shape[axis] > 0:
        return True
    if preference.demands_native(op, implementation):
        raise ValueError(
            f"{op}: implementation='native', but there are kernels for training without axis_name and with channels on "
            f"axis 0 or 1 alone, got training={training}, axis_name={axis_name!r} and axis {axis} of shape {x.shape}; "
            "xla computes the others"
        )
    return False


def _rows(x, axis):
    """[elements, channels, space]"""
    x = x if axis else x[None]
    return explicit.reshape(x, *x.shape[:2], math.prod(x.shape[2:]))


def _normalize(x, weight, bias, axis, eps, implementation):
    """y, and the mean and the variance of each channel."""
    y, *found = _op(_rows(x, axis), *factors(weight, bias, x, axis), eps=eps, save=True, implementation=implementation)
    return explicit.reshape(y, *x.shape), found


@api
def batch_norm_backward(
    x: ArrayLike,
    weight: ArrayLike | None,
    dy: ArrayLike,
    *,
    axis: int = 1,
    eps: float = 1e-5,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """The gradient of y of `batch_norm` in training: see its formula.

    Args:
        x, weight, axis, eps, implementation: as in `batch_norm`.
        dy: the cotangent of y, of x's shape and dtype.

    Returns:
        The cotangents of x, weight and bias, of which the last two have the shape and the dtype of weight, or those of one
        of x's dtype.
    """
    op = "batch_norm_backward"
    dy = cotangent(op, x, dy)
    x, axis, weight = channels(op, x, axis, weight=weight)
    eps = epsilon(op, eps)
    if not _has_kernel(op, x, axis, True, None, implementation):
        return _plain_gradient(x, weight, dy, axis=axis, eps=eps)
    rows, weight = _rows(x, axis), filled(weight, 1, x, axis)
    found = _statistics(rows)
    dx, *sums = _op.vjp(rows, weight, *found, _rows(dy, axis), eps=eps, implementation=implementation)
    return explicit.reshape(dx, *x.shape), *sums


@compiled("axis", "eps")
def _plain_gradient(x, weight, dy, *, axis, eps):
    weight = jnp.ones(x.shape[axis], x.dtype) if weight is None else weight
    of = lambda *vectors: _trained(
        vectors[0], None, None, *vectors[1:], axis=axis, eps=eps, momentum=1.0, parts=1, axis_name=None
    )[0]
    return jax.vjp(of, x, weight, jnp.zeros_like(weight))[1](dy)


@compiled("axis", "eps")
def _evaluated(x, mean, variance, weight, bias, *, axis, eps):
    mean, variance = (along(p, axis, x.ndim) for p in (mean, variance))
    return scaled((wide(x) - mean) * jax.lax.rsqrt(variance + eps), weight, bias, axis).astype(x.dtype)


@compiled("axis", "eps", "momentum", "parts", "axis_name")
def _trained(x, running_mean, running_var, weight, bias, *, axis, eps, momentum, parts, axis_name):
    over = tuple(i for i in range(x.ndim) if i != axis)
    centered, variance, mean = moments(wide(x), over)
    if axis_name is not None:
        of_all = lambda value: jax.lax.psum(value, axis_name) / parts  # which have the same number of elements
        whole = of_all(mean)
        shift = mean - whole
        variance = of_all(variance + jnp.square(shift))
        centered, mean = centered + shift, whole
    y = scaled(centered * jax.lax.rsqrt(variance + eps), weight, bias, axis).astype(x.dtype)
    count = parts * (x.size // max(x.shape[axis], 1))
    mean, variance = (jnp.squeeze(found, over) for found in (mean, variance))
    return y, *_updated(running_mean, running_var, mean, variance, count=count, momentum=momentum)


_statistics = compiled()(statistics)


@compiled("count", "momentum", inline=False)
def _updated(running_mean, running_var, mean, variance, *, count, momentum):
    """The new running statistics, of those of `count` elements."""

    def new(running, found):
        running = found if running is None else running
        share = momentum if count else 0.0
        return ((1 - share) * wide(running) + share * found).astype(running.dtype)

    unbiased = variance * (count / max(count - 1, 1))
    return new(running_mean, mean), new(running_var, unbiased)


def _case(name, shape, channels, **kwargs):
    def draw(rng):
        mean, variance, weight, bias = rng.standard_normal((4, channels))
        return rng.standard_normal(shape), mean, np.square(variance) + 0.5, weight, bias

    return Case(name, draw, kwargs)


_op = declare(
    "batch_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=batch_norm,
    cases=(
        _case("images", (4, 3, 2, 5), 3, training=True, momentum=0.3),
        _case("no space", (6, 8), 8, training=True, eps=1e-3),
        _case("no batch", (3, 7), 3, training=True, axis=0),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight", "bias"),
    results=OUTPUTS,
    outputs=OUTPUTS,
    differentiable=("x", "weight", "bias"),
    residuals=("x", "weight", "mean", "variance"),
    library="xla",
    default="xla",
    regime=by_channels,
    batched=as_they_are,
    fused=True,
    **BODIES,
)
