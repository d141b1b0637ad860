"""Probabilities as integers, whose sums depend on no order: those of `ffi/kernels/sampling.h`, in plain JAX.

A mass has 37 bits at most, and a sum of masses 63. Both are pairs of uint32, (high, low), since JAX may have no 64-bit
integers."""

import jax.numpy as jnp
from jax import lax

BITS = 36  # the mass of the largest logit is 2^36
MOST_TOKENS = 2**26
POWER = tuple(
    map(float.fromhex, ("0x1.5bba14p-10", "0x1.3cea88p-7", "0x1.c6b752p-5", "0x1.ebf9bcp-3", "0x1.62e42ap-1", "1"))
)


def descending(x):
    """Keys, uint32, by which float32 numbers are in descending order, NaN first; both zeros have one."""
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    bits = jnp.where(x == 0, jnp.uint32(0), bits)
    high = jnp.uint32(1 << 31)
    ascending = jnp.where(bits >= high, ~bits, bits | high)
    return ~jnp.where(jnp.isnan(x), ~jnp.uint32(0), ascending)


def number(key):
    """The number that has the key."""
    ascending, high = ~key, jnp.uint32(1 << 31)
    return lax.bitcast_convert_type(jnp.where(ascending >= high, ascending ^ high, ~ascending), jnp.float32)


def of_logits(x, largest, scale, smallest):
    """(mass, logarithm in units of the largest one) of each logit: 2^t with t = (x - largest) scale, 0 below `smallest`."""
    t = (x - largest) * scale
    t = jnp.where(x == largest, 0, jnp.where(t > -64, t, -64))
    whole = lax.round(t, lax.RoundingMethod.TO_NEAREST_EVEN)
    r = t - whole
    power = jnp.full_like(r, POWER[0])
    for coefficient in POWER[1:]:
        power = _rounded(power * r) + jnp.float32(coefficient)
    units = (power * 2.0**24).astype(jnp.uint32)
    mass = shifted_right((units >> (56 - BITS), units << (BITS - 24)), jnp.minimum(-whole, 63).astype(jnp.uint32))
    return _where(t >= smallest, mass), t * jnp.float32(0.6931472)


def _rounded(product):
    """The product, rounded: what the compiler adds to it would else be added before."""
    return lax.max(product, jnp.float32(-(2.0**100)))


def of_probabilities(x, largest, scale, smallest):
    """The same of probabilities, or of any weights: their bits from the exponent of the largest down."""
    infinity, mantissa = jnp.uint32(0x7F800000), jnp.uint32(0x7FFFFF)
    is_infinite = largest == jnp.inf
    bits = lax.bitcast_convert_type(x, jnp.uint32)
    counts = (bits > mantissa) & (bits <= infinity) & (~is_infinite | (bits == infinity))
    bits = jnp.where(counts, bits, 0)
    below = (lax.bitcast_convert_type(largest, jnp.uint32) >> 23) - (bits >> 23)
    units = (bits & mantissa) | (mantissa + 1)
    mass = shifted_right((units >> (55 - BITS), units << (BITS - 23)), jnp.minimum(below, 63))
    counts &= is_infinite | (x >= largest * smallest)
    one = lax.bitcast_convert_type((bits & mantissa) | jnp.uint32(0x3F800000), jnp.float32)
    return _where(counts, mass), jnp.log(one) - below.astype(jnp.float32) * jnp.float32(0.6931472)


def sums(mass):
    """Those up to and with each mass, along the last axis. Parts of masses are added, whose sums have 32 bits."""
    count = mass[0].shape[-1]
    width = 32 - (count - 1).bit_length()
    total = _zeros(mass[0])
    for first in range(0, BITS + 2, width):
        part = shifted_right(mass, first)[1] & ((1 << width) - 1)
        part = lax.cumsum(part, axis=part.ndim - 1)
        total = add(total, shifted_left((jnp.zeros_like(part), part), first))
    return total


def is_less(a, b):
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))


def smaller(a, b):
    return tuple(jnp.where(is_less(a, b), x, y) for x, y in zip(a, b, strict=True))


def add(a, b):
    low = a[1] + b[1]
    return a[0] + b[0] + (low < a[1]).astype(jnp.uint32), low


def subtract(a, b):
    low = a[1] - b[1]
    return a[0] - b[0] - (a[1] < b[1]).astype(jnp.uint32), low


def times(a, number):
    """Of a pair and a uint32."""
    high, low = product(a[1], number)
    return high + a[0] * number, low


def plus_one(a):
    return add(a, (jnp.zeros_like(a[0]), jnp.ones_like(a[1])))


def shifted_right(a, count):
    return _shifted(lax.shift_right_logical, lax.shift_left, a, count)


def shifted_left(a, count):
    return _shifted(lax.shift_left, lax.shift_right_logical, a[::-1], count)[::-1]


def _shifted(shift, back, a, count):
    """By 0 to 63 bits; a shift by 32 or more is 0, as XLA has it."""
    count = jnp.broadcast_to(jnp.asarray(count, jnp.uint32), a[0].shape)
    crossing = jnp.where(count < 32, back(a[0], 32 - count), shift(a[0], count - 32))
    return shift(a[0], count), shift(a[1], count) | crossing


def product(a, b):
    """Of two uint32, a pair."""
    half = jnp.uint32(0xFFFF)
    (a1, a0), (b1, b0) = (a >> 16, a & half), (b >> 16, b & half)
    low, middle, other = a0 * b0, a1 * b0, a0 * b1
    carried = (low >> 16) + (middle & half) + (other & half)
    return a1 * b1 + (middle >> 16) + (other >> 16) + (carried >> 16), (carried << 16) | (low & half)


def part(fraction, a):
    """The smallest mass, at least 1, that is at least the fraction of `a`, which is in units of 2^-32."""
    high, low = product(a[1], fraction)
    upper = add(product(a[0], fraction), (jnp.zeros_like(high), high))
    upper = add(upper, (jnp.zeros_like(high), (low > 0).astype(jnp.uint32)))
    return upper[0], jnp.where((upper[0] | upper[1]) == 0, 1, upper[1])


def high_product(a, b):
    """floor(a b / 2^64)"""
    zero = jnp.zeros_like(a[0])
    middle = add(product(a[1], b[0]), (zero, product(a[1], b[1])[0]))
    other = add(product(a[0], b[1]), (zero, middle[1]))
    return add(add(product(a[0], b[0]), (zero, middle[0])), (zero, other[0]))


def as_float(a):
    """In units of the largest logit's."""
    high, low = (x.astype(jnp.float32) for x in a)
    return high * 2.0 ** (32 - BITS) + low * 2.0**-BITS


def _where(condition, a):
    return tuple(jnp.where(condition, x, 0) for x in a)


def _zeros(x):
    return jnp.zeros_like(x), jnp.zeros_like(x)
