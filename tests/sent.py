"""Arrays as `jax.numpy` makes them, made by NumPy and sent to the device: `jax.numpy` compiles a program for each shape and dtype."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def _made(name):
    @functools.wraps(getattr(np, name))
    def make(*args, dtype=None, **kwargs):
        if any(isinstance(x, jax.Array) for x in jax.tree.leaves((args, kwargs))):  # NumPy can't where it is traced
            return getattr(jnp, name)(*args, dtype=dtype, **kwargs)
        return jax.device_put(getattr(np, name)(*args, dtype=dtype and jnp.dtype(dtype), **kwargs))

    return make


_asarray, _zeros, _ones, _full = map(_made, ("asarray", "zeros", "ones", "full"))
arange, eye, linspace = map(_made, ("arange", "eye", "linspace"))


def asarray(x, dtype=None):
    """A number of Python's is weakly typed if its dtype is not given, as an array full of it is."""
    if isinstance(x, jax.Array) or (dtype is None and isinstance(x, bool | int | float | complex)):
        return jnp.asarray(x, dtype)
    return _asarray(x, dtype=dtype)


def zeros(shape, dtype=float):
    return _zeros(shape, dtype=dtype)


def ones(shape, dtype=float):
    return _ones(shape, dtype=dtype)


def full(shape, value, dtype=None):
    return jnp.full(shape, value) if dtype is None else _full(shape, value, dtype=dtype)


def _like(make):
    def like(x, *value, dtype=None):
        if isinstance(x, jax.core.Tracer) or not hasattr(x, "dtype") or jax.typeof(x).weak_type:
            return getattr(jnp, f"{make.__name__}_like")(x, *value, dtype=dtype)
        return make(x.shape, *value, dtype=dtype or x.dtype)

    return like


zeros_like, ones_like, full_like = map(_like, (zeros, ones, full))
