"""Normalization of channels over a batch, with running statistics."""

from collections.abc import Hashable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, mesh_axis
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import along, channels, epsilon, moments, number, scaled


@facade_api("xla")
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
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        y of x's shape and dtype, the new running mean, and the new running variance. An empty batch leaves these as
        they are; the unbiased variance of one element is 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The variance is that of differences from the
    mean, also across devices: it is never negative.

    Source: torch.nn.functional.batch_norm, which updates the running statistics in place; torch.nn.SyncBatchNorm for
    axis_name; Ioffe and Szegedy, Batch Normalization (2015).
    """
    op = "batch_norm"
    x, axis, mean, var, weight, bias = channels(
        op, x, axis, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    eps, momentum = epsilon(op, eps), number(op, "momentum", momentum, 0, 1)
    if checks.flag(op, "training", training):
        options = dict(axis=axis, eps=eps, momentum=momentum, parts=mesh_axis.size(op, axis_name), axis_name=axis_name)
        return _trained(x, mean, var, weight, bias, **options)
    if mean is None or var is None:
        raise ValueError(
            f"{op}: {'running_var' if var is None else 'running_mean'} must be given unless training, got None"
        )
    return _evaluated(x, mean, var, weight, bias, axis=axis, eps=eps), mean, var


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

    def new(running, found):
        running = found if running is None else running
        share = momentum if count else 0.0
        return ((1 - share) * wide(running) + share * found).astype(running.dtype)

    mean, variance = (jnp.squeeze(found, over) for found in (mean, variance))
    unbiased = variance * (count / max(count - 1, 1))
    return y, new(running_mean, mean), new(running_var, unbiased)


def _case(name, shape, channels, **kwargs):
    def draw(rng):
        mean, variance, weight, bias = rng.standard_normal((4, channels))
        return rng.standard_normal(shape), mean, np.square(variance) + 0.5, weight, bias

    return Case(name, draw, kwargs)


facade(
    "batch_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=batch_norm,
    cases=(
        _case("training", (4, 3, 5), 3, training=True, momentum=0.3),
        _case("channels last", (3, 4, 2, 5), 5, training=True, axis=-1, eps=1e-3),
        _case("evaluation", (4, 3, 5), 3),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "running_mean", "running_var", "weight", "bias"),
    differentiable=("x", "running_mean", "running_var", "weight", "bias"),
    outputs=("y", "new_mean", "new_var"),
)
