"""Numbers of a distribution, drawn by a philox key: what `jax.random` makes of its bits. Operands are the words of the key
and the parameters, which are numbers or have the shape that is drawn; all may have the same batches.

Kernels have the numbers of each row; arrays of parameters are for plain JAX, which is fused around the kernel's uniform or
normal numbers. So are derivatives, which draw again."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.body import Body
from .._core.wide import wide, wide_dtype
from . import _bits
from ._unit import drawn_bits, unit


def _of_shape(value, key, shape):
    """A parameter, for arithmetic with what is drawn."""
    is_number = value.ndim == key.ndim - 1
    return value.reshape(*value.shape, *(1,) * len(shape)) if is_number else value


def _are_numbers(key, values):
    return all(value.ndim == key.ndim - 1 for value in values)


def _unit(key, shape, dtype):
    return unit(_bits.reference(key, shape=shape, dtype=f"uint{drawn_bits(dtype)}")[0], dtype)


def _between(u, low, high):
    return jnp.maximum(low, u * (high - low) + low)


def _rounded(x, dtype):
    """Which, unlike a cast and its return, the compiler leaves alone."""
    info = jnp.finfo(dtype)
    return lax.reduce_precision(wide(x), info.nexp, info.nmant)


def _by_kernel(target, key, shape, dtype, first, second):
    """Of the numbers of each batch, in the dtype that the kernel computes in."""
    batch = key.shape[:-1]
    numbers = [jnp.broadcast_to(jnp.asarray(x, wide_dtype(dtype)), batch) for x in (first, second)]
    return _bits.drawn_rows(target, key, shape, dtype, drawn_bits(dtype) // 8, numbers)[0]


# ---------------------------------------------------------------------------------------------------------------------
# Uniform numbers


def _uniform(key, low, high, *, shape, dtype):
    u = _unit(key, shape, jnp.dtype(dtype))
    return (_between(u, *(_of_shape(v, key, shape) for v in (low, high))),)


def _uniform_native(key, low, high, *, save, shape, dtype):
    dtype = jnp.dtype(dtype)
    if not _bits.are_known(shape):
        return _uniform(key, low, high, shape=shape, dtype=dtype)
    if _are_numbers(key, (low, high)):
        width = _rounded(wide(high) - wide(low), dtype)
        return (_by_kernel("philox_uniform", key, shape, dtype, wide(low), width),)
    u = _by_kernel("philox_uniform", key, shape, dtype, 0, 1)
    return (_between(u, *(_of_shape(v, key, shape) for v in (low, high))),)


# ---------------------------------------------------------------------------------------------------------------------
# Normal numbers


def _standard(key, shape, dtype):
    """Those of `jax.random.normal`."""
    low, high = np.nextafter(np.array(-1, dtype), np.array(0, dtype)), np.array(1, dtype)
    u = _between(_unit(key, shape, dtype), jnp.asarray(low), jnp.asarray(high))
    return np.array(np.sqrt(2), dtype) * lax.erf_inv(u)


def _scaled(z, key, mean, std, shape):
    mean, std = (_of_shape(v, key, shape) for v in (mean, std))
    return (mean + std * wide(z)).astype(z.dtype)


def _normal(key, mean, std, *, shape, dtype):
    return (_scaled(_standard(key, shape, jnp.dtype(dtype)), key, mean, std, shape),)


def _normal_native(key, mean, std, *, save, shape, dtype):
    dtype = jnp.dtype(dtype)
    if not _bits.are_known(shape):
        return _normal(key, mean, std, shape=shape, dtype=dtype)
    if _are_numbers(key, (mean, std)):
        return (_by_kernel("philox_normal", key, shape, dtype, mean, std),)
    return (_scaled(_by_kernel("philox_normal", key, shape, dtype, 0, 1), key, mean, std, shape),)


# ---------------------------------------------------------------------------------------------------------------------
# Bools


def _bernoulli(key, p, *, shape):
    return (_unit(key, shape, p.dtype) < _of_shape(p, key, shape),)


def _bernoulli_native(key, p, *, save, shape):
    if not _bits.are_known(shape):
        return _bernoulli(key, p, shape=shape)
    drawn = drawn_bits(p.dtype)
    if _are_numbers(key, (p,)):
        numbers = (jnp.broadcast_to(wide(p), key.shape[:-1]),)
        return _bits.drawn_rows("philox_bernoulli", key, shape, bool, drawn // 8, numbers, bits=drawn)
    return (_by_kernel("philox_uniform", key, shape, p.dtype, 0, 1) < _of_shape(p, key, shape),)


# ---------------------------------------------------------------------------------------------------------------------
# The bodies of primitives


def _derivatives(reference):
    def tangent(key, first, second, *dots, **params):
        return jax.jvp(lambda *both: reference(key, *both, **params), (first, second), dots)[1]

    def backward(key, first, second, dy, **params):
        return jax.vjp(lambda *both: reference(key, *both, **params), first, second)[1]((dy,))

    return {"tangent": Body(tangent), "backward": Body(backward)}


UNIFORM = {"forward": Body(_uniform, _uniform_native), **_derivatives(_uniform)}
NORMAL = {"forward": Body(_normal, _normal_native), **_derivatives(_normal)}
BERNOULLI = {"forward": Body(_bernoulli, _bernoulli_native)}
