"""Packing: weights rounded to a format."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import bitcast_convert_type
from jax.typing import ArrayLike

from .._core import checks
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.types import Implementation
from . import _arguments as arguments
from . import _decode
from ._formats import FORMATS
from ._multiply import q8_blocks
from ._weight import PackedWeight

PACKED = ("Q8_0", "Q4_0", "Q4_K", "nf4", "fp4", "int4", "int8")
BLOCKS = {"Q8_0": 32, "Q4_0": 32, "Q4_K": 256}
TRIALS = 21


@facade_api("xla")
def pack_weight(
    w: ArrayLike,
    format: str = "Q8_0",
    *,
    group_size: int = 64,
    zero_points: bool = False,
    implementation: Implementation = None,
) -> PackedWeight:
    """Weights, rounded to a format of few bits.

    Formula:
        "Q8_0": d = max |w| / 127, q = round(w / d), of each 32 neighbors.
        "Q4_0": d = m / -8 with m the weight of the largest absolute value, q = floor(w / d + 8.5), at most 15.
        "Q4_K": of each 32 neighbors a scale s and a minimum t, in 6 bits times factors that 256 neighbors share, and q =
        round((w + t) / s), in 0 ... 15. From the smallest weight to the largest are 14 to 16 steps, each of 21 trials
        improved by least squares; that of the smallest error is taken, where a weight w counts (mean w^2)^(1/2) + |w|.
        "nf4", "fp4": absmax = max |w| of a group, q the nearest entry of the table to w / absmax.
        "int4": scale = max |w| / 7, q = round(w / scale) + 8; with zero points scale = (max(w, 0) - min(w, 0)) / 15,
        zero_point = round(-min(w, 0) / scale), q = round(w / scale) + zero_point, in 0 ... 15.
        "int8": the same with 127, 255 and -128 ... 127, so that q = round(w / scale) and zero_point is less by 128.

    Args:
        w: floats [..., N, K].
        format: static, "Q8_0", "Q4_0", "Q4_K", "nf4", "fp4", "int4" or "int8".
        group_size: static, the weights of a group in formats with lowercase names, a multiple of 32 that divides K; K for a
            scale for each row.
        zero_points: static, whether "int4" or "int8" has zero points.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        PackedWeight. Packed weights carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32. Groups of zeros are zeros. Weights that are not finite have no defined value.

    Source: ggml's quantize_row_q8_0, quantize_row_q4_0 and quantize_row_q4_K; Dettmers et al., QLoRA (2023).
    """
    op = "pack_weight"
    w = checks.floats(op, "w", w)
    format = checks.choice(op, "format", format, PACKED)
    group_size = checks.integer(op, "group_size", group_size, arguments.UNIT)
    zero_points = checks.flag(op, "zero_points", zero_points)
    if w.ndim < 2:
        raise ValueError(f"{op}: w must have rank 2 or more, got shape {w.shape}")
    size = BLOCKS.get(format, group_size)
    if size % arguments.UNIT:
        raise ValueError(f"{op}: group_size must be a multiple of {arguments.UNIT}, got {size}")
    if w.shape[-1] % size:
        raise ValueError(f"{op}: w must have rows of a multiple of {size} weights, got shape {w.shape}")
    if zero_points and FORMATS[format].middle is None:
        raise ValueError(f"{op}: zero_points must be False in format {format!r}, got True")
    return PackedWeight(format, *_packed(w, format=format, size=size, zero_points=zero_points))


@compiled("format", "size", "zero_points")
def _packed(w, *, format, size, zero_points):
    """(data, [scale, [zero points]])"""
    groups = w.astype(jnp.float32).reshape(*w.shape[:-1], w.shape[-1] // size, size)
    if format == "Q8_0":
        d, q = q8_blocks(groups)
        return (_rows(jnp.concatenate([_bytes(d), _bytes(q.astype(jnp.int8)[..., None])], -1)),)
    if format == "Q4_0":
        return (_q4_0(groups),)
    if format == "Q4_K":
        return (_q4_k(groups.reshape(*groups.shape[:-1], 8, 32)),)
    if format == "int4":
        q, *factors = _integers(groups, zero_points, 0, 15)
        return _pairs(q.astype(jnp.uint8).reshape(w.shape), 0, 4), *factors
    if format == "int8":
        q, *factors = _integers(groups, zero_points, -128, 127)
        return bitcast_convert_type(q.astype(jnp.int8), jnp.uint8).reshape(w.shape), *factors
    scale = jnp.max(jnp.abs(groups), -1, initial=0)
    table = np.array(_decode.TABLES[format], np.float32)
    q = _nearest(groups / jnp.where(scale == 0, 1, scale)[..., None], table)
    return _pairs(q.reshape(w.shape), 4, 0), scale


def _bytes(x):
    """[..., n] as [..., n * size] bytes, little-endian."""
    b = bitcast_convert_type(x, jnp.uint8)
    return b.reshape(*b.shape[:-2], b.shape[-2] * b.shape[-1])


def _rows(blocks):
    return blocks.reshape(*blocks.shape[:-2], blocks.shape[-2] * blocks.shape[-1])


def _q4_0(groups):
    at = jnp.argmax(jnp.abs(groups), -1, keepdims=True)
    d = jnp.take_along_axis(groups, at, -1) / -8
    inverse = jnp.where(d == 0, 0, 1 / jnp.where(d == 0, 1, d))
    q = jnp.clip(jnp.floor(groups * inverse + 8.5), 0, 15).astype(jnp.uint8)
    return _rows(jnp.concatenate([_bytes(d.astype(jnp.float16)), q[..., :16] | (q[..., 16:] << 4)], -1))


def _q4_k(x):
    """Of [..., 8, 32]: scales and minima of 32 weights each, rounded to 6 bits, and then the weights to what these are."""
    scale, lowest = _scales_and_minima(x)
    factors = [jnp.max(v, -1, keepdims=True) / 63 for v in (scale, lowest)]
    six = [_six_bits(v, of) for v, of in zip((scale, lowest), factors, strict=True)]
    d, minimum = [of.astype(jnp.float16) for of in factors]
    step, shift = [v.astype(jnp.float32) * of for v, of in zip(six, (d, minimum), strict=True)]
    q = jnp.clip(jnp.round((x + shift[..., None]) / _not_zero(step)), 0, 15).astype(jnp.uint8)
    low, high = [jnp.concatenate([v[..., :4], v[..., 4:] & 15], -1) for v in six], [v[..., 4:] >> 4 for v in six]
    packed = [
        low[0][..., :4] | (high[0] << 6),
        low[1][..., :4] | (high[1] << 6),
        low[0][..., 4:] | (low[1][..., 4:] << 4),
    ]
    pairs = q[..., 0::2, :] | (q[..., 1::2, :] << 4)
    return _rows(jnp.concatenate([_bytes(d), _bytes(minimum), *packed, _rows(pairs)], -1))


def _six_bits(x, factor):
    return jnp.clip(jnp.round(x / jnp.where(factor == 0, 1, factor)), 0, 63).astype(jnp.uint8)


def _scales_and_minima(x):
    """Of the last axis: s and t, neither negative, such that q s - t is near x for integers q of 4 bits."""
    weight = jnp.sqrt(jnp.mean(x**2, -1, keepdims=True)) + jnp.abs(x)
    total = lambda v: jnp.sum(weight * v, -1)
    low = jnp.minimum(jnp.min(x, -1), 0)
    width = jnp.max(x, -1) - low
    width = jnp.where(width == 0, 1, width)

    def trial(i, best):
        q = jnp.clip(jnp.round((x - low[..., None]) * ((14 + 0.1 * i) / width)[..., None]), 0, 15)
        # Least squares of scale and minimum; without one where it would be above 0.
        count, of_q, of_q2, of_x, of_xq = total(jnp.ones_like(x)), total(q), total(q * q), total(x), total(x * q)
        size = count * of_q2 - of_q * of_q
        size = jnp.where(size <= 0, jnp.inf, size)
        scale, minimum = (count * of_xq - of_x * of_q) / size, (of_q2 * of_x - of_q * of_xq) / size
        scale = jnp.where(minimum > 0, of_xq / jnp.where(of_q2 == 0, 1, of_q2), scale)
        minimum = jnp.minimum(minimum, 0)
        error = total((scale[..., None] * q + minimum[..., None] - x) ** 2)
        is_better = (error < best[0]) & (scale > 0)
        return tuple(jnp.where(is_better, new, old) for new, old in zip((error, scale, minimum), best, strict=True))

    start = (jnp.full(low.shape, jnp.inf, x.dtype), jnp.where(low == jnp.max(x, -1), 0, width / 15), low)
    _, scale, low = jax.lax.fori_loop(0, TRIALS, trial, start)
    return scale, -low


def _integers(groups, zero_points, smallest, largest):
    """q from smallest to largest, as floats, scales and, if wanted, zero points."""
    if not zero_points:
        middle = (smallest + largest + 1) // 2
        scale = jnp.max(jnp.abs(groups), -1, initial=0) / (largest - middle)
        return jnp.clip(jnp.round(groups / _not_zero(scale)) + middle, smallest, largest), scale
    low, high = jnp.minimum(jnp.min(groups, -1, initial=0), 0), jnp.maximum(jnp.max(groups, -1, initial=0), 0)
    scale = (high - low) / (largest - smallest)
    zero = jnp.clip(jnp.round(-low / jnp.where(scale == 0, 1, scale)) + smallest, smallest, largest)
    q = jnp.clip(jnp.round(groups / _not_zero(scale)) + zero[..., None], smallest, largest)
    return q, scale, zero.astype(jnp.int32)


def _not_zero(scale):
    return jnp.where(scale == 0, 1, scale)[..., None]


def _nearest(x, table):
    """The index of the nearest entry: the number of middles between ascending entries that are below x, in their order."""
    order = np.argsort(table, kind="stable")
    values, first = np.unique(table[order], return_index=True)
    middles = (values[1:] + values[:-1]) / 2
    rank = sum((x > m).astype(jnp.int32) for m in middles.astype(np.float32))
    return jnp.take(jnp.asarray(order[first].astype(np.uint8)), rank, axis=0, mode="clip")


def _pairs(q, first, second):
    """Two neighbors in a byte, at these bits."""
    return (q[..., 0::2] << first) | (q[..., 1::2] << second)
