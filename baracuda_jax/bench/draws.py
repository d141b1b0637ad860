"""Random arrays, drawn by the program that needs them: large ones would take the host long."""

import zlib

import jax
import jax.numpy as jnp


class Draws:
    """Each call draws other numbers; the same seed and name, the same again."""

    def __init__(self, seed, name):
        self._key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(name.encode()))

    def _next(self):
        self._key, key = jax.random.split(self._key)
        return key

    def normal(self, shape):
        return jax.random.normal(self._next(), shape, jnp.float32)

    def uniform(self, shape, low=0.0, high=1.0):
        return jax.random.uniform(self._next(), shape, jnp.float32, low, high)

    def integers(self, shape, low, high, dtype=jnp.int32):
        """low included, high not."""
        return jax.random.randint(self._next(), shape, low, high, jnp.int32).astype(dtype)
