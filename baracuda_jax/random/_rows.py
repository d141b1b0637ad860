"""Rows of an array that a kernel draws of a philox key. Each has a stream of bytes of its own, which is a key and a first
byte. These are computed in plain JAX, of iotas: where the array is sharded, so are they, and each device computes its own
rows of them and of the array."""

import math

import jax.numpy as jnp
from jax import lax

from .._core import explicit
from . import _mass, _philox

ROW = 2048  # bytes of a row's stream at least, next to which the words that say where it begins are little
WIDE_ROW = 4096  # the same of elements that draw four bytes or more, of which a warp has several tiles


def rows_of(shape, size, whole=None, smallest=None):
    """(leading dimensions, how many bytes of the stream they are apart, length): how an array whose elements draw so many
    bytes is cut into rows. A row has all of the last dimensions that are short, and an equal part of the one before them, so
    that shards of that, too, are whole rows. Of an array that is a part of one of the shape `whole`, a row has elements that
    follow each other in that. Their streams have `smallest` bytes, if the array has as many."""
    whole, smallest = whole or shape, smallest or (ROW if size < 4 else WIDE_ROW)
    apart, length = _philox.strides(whole, size), 1
    for i in reversed(range(len(shape))):
        if length * shape[i] * size > smallest:
            part = _part(shape[i], length, size, smallest)
            return (*shape[:i], shape[i] // part), (*apart[:i], length * part * size), length * part
        length *= shape[i]
        if shape[i] != whole[i]:
            return shape[:i], apart[:i], length
    return (), (), length


def streams(key, lead, apart, numbers=(), start=None, batch=None):
    """uint32 [*batch, *lead, words]: of each row its key, its first byte, and the words of these numbers, which are one for
    each batch. `key` [..., 4] and numbers may have the first of the batch dimensions alone; `start` is the first byte of
    all, a pair of uint32."""
    batch = key.shape[:-1] if batch is None else batch
    key = explicit.whole(key, [key.ndim - 1])
    high, low = _philox.positions(lead, apart, len(batch))
    if start is not None:
        high, low = _mass.add((high, low), (start[0], start[1]))
    of_batch = lambda x: x.reshape(*x.shape, *(1,) * (len(batch) + len(lead) - x.ndim))
    words = [of_batch(key[..., i]) for i in range(4)]
    zero = jnp.broadcast_to((words[0] | low) & 0, (*batch, *lead))  # of all rows, sharded as keys are
    words += [low, high, *(of_batch(word) for number in numbers for word in _words(number))]
    return jnp.stack([zero | word for word in words] + [zero] * (len(words) % 2), -1)


def _words(number):
    """Of floats of 32 or 64 bits, the lowest first."""
    bits = lax.bitcast_convert_type(number, f"uint{8 * number.dtype.itemsize}")
    return [(bits >> shift).astype(jnp.uint32) for shift in range(0, 8 * number.dtype.itemsize, 32)]


def _part(count, length, size, smallest):
    """The smallest divisor of `count` with which rows are long enough, of whole blocks if there is one."""
    divisors = _divisors(count)
    enough = [d for d in divisors if d * length * size >= smallest]
    return next((d for d in enough if d * length * size % _philox.BLOCK == 0), enough[0])


def _divisors(n):
    """In ascending order."""
    small = [d for d in range(1, min(math.isqrt(n), 2**20) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
