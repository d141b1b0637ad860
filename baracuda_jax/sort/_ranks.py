"""Where among the sorted elements of a row a share of them ends: an exact integer, and the fraction that is left.

A float32 holds integers up to 2^24, and rows may be longer. So the share is split into digits of base 2^16, which is exact,
and multiplied by hand."""

import jax
import jax.numpy as jnp

_BITS = 16
_MASK = (1 << _BITS) - 1


def split(count, share):
    """count * share, as its integer part, of count's dtype, and its fraction, of share's. Counts are integers of 0 or more,
    below 2^48; shares are floats in [0, 1]. The fraction has the derivative of the product in `share`."""
    dtype = share.dtype
    digits, rest = [], share
    for _ in range(3 if dtype == jnp.float32 else 4):
        rest = rest * (1 << _BITS)
        digit = jnp.floor(rest)
        rest = rest - digit
        digits.append(digit.astype(jnp.uint32))
    positions = [
        (count >> (_BITS * i)).astype(jnp.uint32) & _MASK for i in range(2 if count.dtype.itemsize == 4 else 3)
    ]
    # Each column is a sum of halves of products, small enough for its carry. They are of weight 2^-64, 2^-48, ...
    columns = {}
    for i, digit in enumerate(digits, 1):
        for j, position in enumerate(positions):
            product = digit * position
            for weight, half in ((j - i, product & _MASK), (j - i + 1, product >> _BITS)):
                columns.setdefault(weight, []).append(half)
    carry, whole, fraction = jnp.uint32(0), jnp.zeros_like(count), jnp.zeros((), dtype)
    for weight in sorted(columns):
        total = sum(columns[weight], carry)
        carry, value = total >> _BITS, total & _MASK
        if weight < 0:
            fraction = fraction + value.astype(dtype) * 2.0 ** (_BITS * weight)
        elif _BITS * weight < 8 * count.dtype.itemsize:
            whole = whole | (value.astype(count.dtype) << (_BITS * weight))
    fraction = fraction + rest * count.astype(dtype) * 2.0 ** (-_BITS * len(digits))
    product = count.astype(dtype) * share
    moves = product - jax.lax.stop_gradient(product)
    is_all = share >= 1
    return jnp.where(is_all, count, whole), jnp.where(is_all, 0, jax.lax.stop_gradient(fraction)) + moves


def between(count, share):
    """The two ranks around count * share, of which the upper is the lower where that is an integer, and the fraction."""
    low, fraction = split(count, share)
    return low, jnp.minimum(low + (fraction > 0).astype(low.dtype), count), fraction


def around(count, share, most):
    """The same, of counts up to `most`. Where the float type holds integers and halves up to there, of the product as it is
    rounded, as in NumPy, JAX and PyTorch: a share 0.1 of 30 is 3, although the float 0.1 is a little more."""
    if most >= 2 ** jnp.finfo(share.dtype).nmant:
        return between(count, share)
    product = count.astype(share.dtype) * share
    low = jax.lax.stop_gradient(jnp.floor(product))
    return low.astype(count.dtype), jnp.ceil(product).astype(count.dtype), product - low
