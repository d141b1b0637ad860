"""Philox4x32-10 in plain JAX, of words of 32 bits: that of `ffi/kernels/philox.h`.

A key has four words. The first two are Philox's key. The others are the upper half of its counter, and say which of its
blocks are this key's: those whose lower half, of 64 bits, is a domain in the highest two bits and an index below.

    domain 0    the stream of random bits: block i has bytes 16 i to 16 i + 15, the lowest of a word first
    domain 1    `split`: block i is key i
    domain 2    `fold_in`: block i is the key of the number i

So none of these has blocks of another. Philox under one key is a permutation of counters: all keys that one key gives, by
`split` and by `fold_in`, differ. Two keys that come from different keys are equal with probability 2^-128."""

import math

import jax.numpy as jnp
from jax import lax

from . import _mass

FACTORS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
SPLIT, FOLD_IN = 1, 2  # domains
BLOCK = 16  # bytes


def block(key, index, domain=0):
    """The four words of each block: `key` has four arrays, `index` a pair (high, low) of uint32."""
    high, low = index
    a, b, c, d = low, high | jnp.uint32(domain << 30), key[2], key[3]
    keys = key[:2]
    for i in range(ROUNDS):
        step = [k + jnp.uint32(i * s % 2**32) for k, s in zip(keys, STEPS, strict=True)]
        first, second = (_mass.product(x, jnp.uint32(m)) for x, m in zip((a, c), FACTORS, strict=True))
        a, b, c, d = second[0] ^ b ^ step[0], second[1], first[0] ^ d ^ step[1], first[1]
    return a, b, c, d


def positions(sizes, strides, ndim=0):
    """The sum of index times stride over dimensions of these sizes, of each element, as a pair of uint32; `ndim` more
    dimensions of size 1 come before. Sizes of an exported program may be symbols: then it has the lower 32 bits alone."""
    sizes = (1,) * ndim + tuple(sizes)
    total = (jnp.zeros(sizes, jnp.uint32),) * 2
    for i, stride in enumerate(strides):
        at = lax.broadcasted_iota(jnp.uint32, sizes, ndim + i)
        if isinstance(stride, int):
            total = _mass.add(total, position(at, stride))
        else:
            total = total[0], total[1] + at * jnp.asarray(stride).astype(jnp.uint32)
    return total


def position(index, stride):
    """index times stride, as a pair of uint32."""
    high, low = _mass.product(index, jnp.uint32(stride % 2**32))
    return high + index * jnp.uint32(stride >> 32), low


def strides(sizes, unit=1):
    """Those of an array in order, in units of which an element has so many."""
    return tuple(unit * math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


def words(key, ndim):
    """The four words of keys [..., 4], with so many dimensions of size 1 after."""
    return [key[..., i].reshape(*key.shape[:-1], *(1,) * ndim) for i in range(4)]


def bits(key, shape, dtype, apart=None, start=None):
    """Keys [..., 4] -> [..., *shape], each element computed alone: bytes in the order of elements, or along dimensions that
    are so many bytes apart, from the byte `start` on, a pair of uint32."""
    size = jnp.dtype(dtype).itemsize
    high, low = positions(shape, strides(shape, size) if apart is None else apart, key.ndim - 1)
    if start is not None:
        high, low = _mass.add((high, low), start)
    index = high >> 4, low >> 4 | high << 28
    a, b, c, d = block(words(key, len(shape)), index)
    is_second_half, is_odd = (low & 8) != 0, (low & 4) != 0
    if size == 8:
        upper, lower = (jnp.where(is_second_half, x, y).astype(dtype) for x, y in ((d, b), (c, a)))
        return upper << jnp.asarray(32, dtype) | lower
    word = jnp.where(is_second_half, jnp.where(is_odd, d, c), jnp.where(is_odd, b, a))
    return (word >> (8 * (low & 3))).astype(dtype)


def split(key, shape):
    """[4] -> [*shape, 4]"""
    return jnp.stack(block(words(key, len(shape)), positions(shape, strides(shape)), SPLIT), -1)


def fold_in(key, number):
    """[4], uint32 [] -> [4]"""
    return jnp.stack(block(words(key, 0), (jnp.zeros_like(number), number), FOLD_IN), -1)
