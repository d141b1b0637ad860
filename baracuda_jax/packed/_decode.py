"""What blocks of packed weights hold, in plain JAX: the definition of each format.

A decoder takes the bytes of blocks, uint8 [..., bytes of a block], and gives their weights, float32 [..., weights of a
block]. Products of a factor and a value are exact in float32, and so the order of operations does not matter. Formats whose
factors are arrays of their own have decoders that give values alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FP4_DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_FP4_TWELFTHS = np.float32([0, 0.0625, 8, 12, 4, 6, 2, 3]) / np.float32(12)
FP4 = (*_FP4_TWELFTHS.tolist(), *(np.float32(0) - _FP4_TWELFTHS).tolist())
TABLES = {"nf4": NF4, "fp4": FP4}


def _halves(b):
    """The low four bits of all bytes, and then the high ones: [..., n] as [..., 2, n]."""
    return _fields(b[..., None, :], (0, 4), 15)


def _fields(b, shifts, mask):
    """[..., 1, n] as [..., shifts, n]: bits of each byte."""
    return (b >> _shifts(shifts, b.ndim, -2)) & mask


def _shifts(shifts, rank, axis=-1):
    """Along one of so many dimensions."""
    shape = [1] * rank
    shape[axis] = -1
    return jnp.asarray(np.array(shifts, np.uint8).reshape(shape))


def _flat(q, count):
    """Values in the order of a block."""
    return q.reshape(*q.shape[: q.ndim - count], int(np.prod(q.shape[q.ndim - count :])))


def _half(b):
    return jax.lax.bitcast_convert_type(b, jnp.float16).astype(jnp.float32)


def _signed(b):
    return jax.lax.bitcast_convert_type(b, jnp.int8)


def _float(q):
    return q.astype(jnp.float32)


def looked_up(q, table):
    """Entries of a table of 16, by uint8."""
    return jnp.take(jnp.asarray(np.array(table, np.float32)), q.astype(jnp.int32), axis=0, mode="clip")


def _bits(b):
    """[..., n] as [..., 8 n]."""
    return _flat((b[..., :, None] >> _shifts(range(8), b.ndim + 1)) & 1, 2)


def _each(factors, q):
    """Factors [..., k] times values [..., n], of which n / k neighbors have one."""
    parts = q.reshape(*factors.shape, q.shape[-1] // factors.shape[-1])
    return factors[..., None] * parts


def _by_factor(factors, q, lowest=None):
    y = _each(factors, q)
    return _flat(y if lowest is None else y - lowest[..., None], 2)


def q4_0(b):
    return _half(b[..., :2])[..., None] * (_float(_flat(_halves(b[..., 2:]), 2)) - 8)


def q4_1(b):
    d, m = _half(b[..., :2])[..., None], _half(b[..., 2:4])[..., None]
    return d * _float(_flat(_halves(b[..., 4:]), 2)) + m


def _five_bits(b):
    return _float(_flat(_halves(b[..., 4:]), 2) | (_bits(b[..., :4]) << 4))


def q5_0(b):
    return _half(b[..., :2])[..., None] * (_five_bits(b[..., 2:]) - 16)


def q5_1(b):
    d, m = _half(b[..., :2])[..., None], _half(b[..., 2:4])[..., None]
    return d * _five_bits(b[..., 4:]) + m


def q8_0(b):
    return _half(b[..., :2])[..., None] * _float(_signed(b[..., 2:]))


def _two_bits(b):
    """64 bytes as 256 fields of two bits."""
    return _flat(_fields(b.reshape(*b.shape[:-1], 2, 1, 32), (0, 2, 4, 6), 3), 3)


def q2_k(b):
    packed = b[..., :16]
    d, lowest = _half(b[..., 80:82])[..., None], _half(b[..., 82:84])[..., None]
    return _by_factor(d * _float(packed & 15), _float(_two_bits(b[..., 16:80])), lowest * _float(packed >> 4))


def q3_k(b):
    high = _flat(_fields(b[..., None, :32], range(8), 1), 2)
    q = _float(_two_bits(b[..., 32:96]) | (high << 2)) - 4
    low = _flat(_halves(b[..., 96:104]), 2)
    more = _flat(_fields(b[..., None, 104:108], (0, 2, 4, 6), 3), 2)
    return _by_factor(_half(b[..., 108:110])[..., None] * (_float(low | (more << 4)) - 32), q)


def _six_bits(b):
    """The eight scales and the eight minima of twelve bytes."""
    first, second, last = b[..., :4], b[..., 4:8], b[..., 8:12]
    scale = jnp.concatenate([first & 63, (last & 15) | ((first >> 2) & 48)], -1)
    lowest = jnp.concatenate([second & 63, (last >> 4) | ((second >> 2) & 48)], -1)
    return _float(scale), _float(lowest)


def _four_bits(b):
    """128 bytes as 256 fields of four bits: of each 32 bytes the low ones, and then the high ones."""
    return _flat(_halves(b.reshape(*b.shape[:-1], 4, 32)), 3)


def _of_k(b, q):
    d, lowest = _half(b[..., :2])[..., None], _half(b[..., 2:4])[..., None]
    scales, minima = _six_bits(b[..., 4:16])
    return _by_factor(d * scales, _float(q), lowest * minima)


def q4_k(b):
    return _of_k(b, _four_bits(b[..., 16:]))


def q5_k(b):
    return _of_k(b, _four_bits(b[..., 48:]) | (_flat(_fields(b[..., None, 16:48], range(8), 1), 2) << 4))


def q6_k(b):
    low, high = b[..., :128], b[..., 128:192]
    low = _flat(_halves(low.reshape(*low.shape[:-1], 2, 64)), 3)
    high = _flat(_fields(high.reshape(*high.shape[:-1], 2, 1, 32), (0, 2, 4, 6), 3), 3)
    d = _half(b[..., 208:210])[..., None]
    return _by_factor(d * _float(_signed(b[..., 192:208])), _float(low | (high << 4)) - 32)


def q8_k(b):
    return jax.lax.bitcast_convert_type(b[..., :4], jnp.float32)[..., None] * _float(_signed(b[..., 4:260]))


def iq4_nl(b):
    return _half(b[..., :2])[..., None] * looked_up(_flat(_halves(b[..., 2:]), 2), IQ4)


def iq4_xs(b):
    low = _flat((b[..., 4:8, None] >> _shifts((0, 4), b.ndim + 1)) & 15, 2)
    high = _flat((b[..., 2:4, None] >> _shifts((0, 2, 4, 6), b.ndim + 1)) & 3, 2)
    q = b[..., 8:].reshape(*b.shape[:-1], 8, 16)
    factors = _half(b[..., :2])[..., None] * (_float(low | (high << 4)) - 32)
    return _by_factor(factors, looked_up(_flat(_halves(q), 3), IQ4))


def mxfp4(b):
    exponent = b[..., :1].astype(jnp.uint32)
    bits = jnp.where(exponent < 2, jnp.uint32(0x00200000) << jnp.minimum(exponent, 1), (exponent - 1) << 23)
    return jax.lax.bitcast_convert_type(bits, jnp.float32) * looked_up(_flat(_halves(b[..., 1:]), 2), FP4_DOUBLED)


def _neighbors(b, shifts):
    """[..., n] as [..., 2 n]: two values of each byte."""
    return _flat((b[..., None] >> _shifts(shifts, b.ndim + 1)) & 15, 2)


def from_table(table, b):
    return looked_up(_neighbors(b, (4, 0)), table)


nf4 = functools.partial(from_table, NF4)
fp4 = functools.partial(from_table, FP4)


def int4(b):
    return _float(_neighbors(b, (0, 4)))


def int8(b):
    return _float(_signed(b))
