"""What references and the joining of shards have in common, in plain JAX."""

import math

import jax.numpy as jnp

from ._family import slices


def norm_reference(x, axes, p):
    """(sum of |x|^p)^(1/p), by ratios to the largest magnitude, for p < 0 to the smallest."""
    magnitude = jnp.abs(x)
    most = magnitude.max(axes, initial=0) if p > 0 else magnitude.min(axes, initial=math.inf)
    is_scale = (most > 0) & (most < math.inf)
    scale = slices(jnp.where(is_scale, most, 1), axes)
    total = ((magnitude / scale) ** p).sum(axes)
    return jnp.where(is_scale, jnp.where(is_scale, most, 1) * jnp.where(is_scale, total, 1) ** (1 / p), most)


def log_sum_exp_reference(x, axes):
    """log(sum of e^x) as the largest and the logarithm of the sum of e^(x - largest), 0 where the largest is not finite."""
    most = x.max(axes, initial=-math.inf)
    is_finite = jnp.isfinite(most)
    total = jnp.exp(x - slices(jnp.where(is_finite, most, 0), axes)).sum(axes)
    return most, jnp.where(is_finite, jnp.log(jnp.where(is_finite, total, 1)), 0)


def combined_log_sum_exp(parts, rests):
    """The same of groups [groups, ...], from their results and what rounding took from these."""
    most = parts.max(0)
    is_finite = jnp.isfinite(most)
    total = jnp.exp((parts - jnp.where(is_finite, most, 0)) + rests).sum(0)
    return most, jnp.where(is_finite, jnp.log(jnp.where(is_finite, total, 1)), 0)


def combined_variance(variances, means, count):
    """The sum of squared differences from the mean of all, and that mean, from those of groups of `count` elements."""
    mean = means.mean(0)
    between = jnp.square(means - mean).sum(0)
    return count * (variances.sum(0) + between), mean
