"""The activation of gates: z sigmoid(z), which is at its limits where products of infinity and 0 would be NaN."""

import jax
import jax.numpy as jnp

_FAR = 500  # beyond which z sigmoid(z) is 0 or z


def silu(z):
    is_far = (z < -_FAR) | (z > _FAR)
    near = jnp.where(is_far, 0, z)
    return jnp.where(is_far, jnp.where(z < 0, -0.0, z), near * jax.nn.sigmoid(near))
