"""The length and the direction of a vector of two, as slopes are made of them."""

import jax
import jax.numpy as jnp


@jax.custom_jvp
def length(x, y):
    """(x^2 + y^2)^(1/2) without overflow. `jnp.hypot` is made of a maximum, so that its own second derivative is wrong where
    |x| = |y|. Here the derivative is 0 at the origin."""
    return jnp.hypot(x, y)


@length.defjvp
def _tangent(primals, tangents):
    *along, _ = direction(*primals)
    return length(*primals), sum(a * t for a, t in zip(along, tangents, strict=True))


def direction(x, y):
    """(x and y over their length, and the length, 1 of nothing)"""
    size = length(x, y)
    whole = jnp.where(size == 0, 1, size)
    return x / whole, y / whole, whole
