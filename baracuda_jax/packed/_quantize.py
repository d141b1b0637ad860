"""Packing: weights rounded to a format."""

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
from ._multiply import q8_blocks
from ._weight import PackedWeight

PACKED = ("Q8_0", "Q4_0", "nf4", "fp4", "int4")


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
        "nf4", "fp4": absmax = max |w| of a group, q the nearest entry of the table to w / absmax.
        "int4": scale = max |w| / 7, q = round(w / scale) + 8; with zero points scale = (max(w, 0) - min(w, 0)) / 15,
        zero_point = round(-min(w, 0) / scale), q = round(w / scale) + zero_point, in 0 ... 15.

    Args:
        w: floats [..., N, K].
        format: static, "Q8_0", "Q4_0", "nf4", "fp4" or "int4".
        group_size: static, the weights of a group in "nf4", "fp4" and "int4", a multiple of 32 that divides K.
        zero_points: static, whether "int4" has zero points.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        PackedWeight. Packed weights carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32. Groups of zeros are zeros. Weights that are not finite have no defined value.

    Source: ggml's quantize_row_q8_0 and quantize_row_q4_0; Dettmers et al., QLoRA (2023).
    """
    op = "pack_weight"
    w = checks.floats(op, "w", w)
    format = checks.choice(op, "format", format, PACKED)
    group_size = checks.integer(op, "group_size", group_size, arguments.UNIT)
    zero_points = checks.flag(op, "zero_points", zero_points)
    if w.ndim < 2:
        raise ValueError(f"{op}: w must have rank 2 or more, got shape {w.shape}")
    size = 32 if format in ("Q8_0", "Q4_0") else group_size
    if size % arguments.UNIT:
        raise ValueError(f"{op}: group_size must be a multiple of {arguments.UNIT}, got {size}")
    if w.shape[-1] % size:
        raise ValueError(f"{op}: w must have rows of a multiple of {size} weights, got shape {w.shape}")
    if zero_points and format != "int4":
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
    if format == "int4":
        q, scale, *zero = _integers(groups, zero_points)
        return (_pairs(q.reshape(w.shape), 0, 4), scale, *zero)
    scale = jnp.max(jnp.abs(groups), -1, initial=0)
    table = np.array(_decode.NF4 if format == "nf4" else _decode.FP4, np.float32)
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


def _integers(groups, zero_points):
    """q uint8, scales and, if wanted, zero points."""
    if not zero_points:
        scale = jnp.max(jnp.abs(groups), -1, initial=0) / 7
        q = jnp.round(groups / _not_zero(scale)) + 8
        return jnp.clip(q, 0, 15).astype(jnp.uint8), scale
    low, high = jnp.minimum(jnp.min(groups, -1, initial=0), 0), jnp.maximum(jnp.max(groups, -1, initial=0), 0)
    scale = (high - low) / 15
    zero = jnp.clip(jnp.round(-low / jnp.where(scale == 0, 1, scale)), 0, 15)
    q = jnp.clip(jnp.round(groups / _not_zero(scale)) + zero[..., None], 0, 15)
    return q.astype(jnp.uint8), scale, zero.astype(jnp.int32)


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
