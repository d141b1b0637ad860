"""A call of attention: its checks, and the way from the layout [..., length, heads, d] and back."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, explicit
from .._core.compiled import compiled
from .._core.wide import wide
from . import _cudnn
from ._attend import Limits, Spec, attend

ALIGNMENTS = ("top_left", "bottom_right")
FAR = 2**30  # what a position in a window may be away


class Operands(NamedTuple):
    """Checked."""

    query: jax.Array
    key: jax.Array
    value: jax.Array
    bias: jax.Array | None = None
    mask: jax.Array | None = None
    rows: jax.Array | None = None
    columns: jax.Array | None = None
    offset: jax.Array | None = None
    slopes: jax.Array | None = None  # wide, [heads]
    positions: jax.Array | None = None  # of keys, [..., keys]


def operands(op, query, key, value, bias=None, mask=None, query_seq_lengths=None, key_value_seq_lengths=None):
    query, key, value = heads(op, query, key, value)
    shape = (*query.shape[:-3], query.shape[-2], query.shape[-3], key.shape[-3])
    if bias is not None:
        bias = checks.floats(op, "bias", bias)
        _broadcasts(op, "bias", bias, shape)
    if mask is not None:
        mask = checks.array(op, "mask", mask)
        checks.dtype(op, "mask", mask, ("bool",))
        _broadcasts(op, "mask", mask, shape)
    rows = _lengths(op, "query_seq_lengths", query_seq_lengths, query)
    return Operands(
        query, key, value, bias, mask, rows, _lengths(op, "key_value_seq_lengths", key_value_seq_lengths, query)
    )


def heads(op, query, key, value, names=("query", "key", "value"), batch=None):
    """The three arrays, of shapes that fit; `batch` are the batch dimensions of keys and values, if not those of queries."""
    arrays = [checks.array(op, name, x) for name, x in zip(names, (query, key, value), strict=True)]
    query, key, value = arrays
    for name, x in zip(names, arrays, strict=True):
        checks.dtype(op, name, x, checks.FLOATS)
        checks.same_dtype(op, name, x, names[0], query)
    if query.ndim < 3:
        raise ValueError(f"{op}: {names[0]} must be [..., length, heads, d], got shape {query.shape}")
    batch = query.shape[:-3] if batch is None else batch
    if key.ndim != len(batch) + 3 or key.shape[:-3] != batch or key.shape[-1] != query.shape[-1]:
        raise ValueError(
            f"{op}: {names[1]} must be {_named(batch, 'length, heads', query.shape[-1])}, for {names[0]} of shape "
            f"{query.shape}, got {key.shape}"
        )
    if not key.shape[-2] or query.shape[-2] % key.shape[-2]:
        raise ValueError(
            f"{op}: {names[0]} must have a multiple of the {key.shape[-2]} heads of {names[1]}, got {query.shape[-2]} heads"
        )
    if value.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            f"{op}: {names[2]} must have the shape of {names[1]}, {key.shape}, except for the last dimension, got "
            f"{value.shape}"
        )
    return query, key, value


def _named(batch, length, d):
    return f"[{', '.join((*map(str, batch), length, str(d)))}]"


def _broadcasts(op, name, x, shape):
    pairs = zip(x.shape[::-1], shape[::-1], strict=False)
    if x.ndim > len(shape) or any(n not in (1, size) for n, size in pairs):
        raise ValueError(
            f"{op}: {name} must broadcast to [..., heads, queries, keys], which is {shape}, got shape {x.shape}"
        )


def _lengths(op, name, x, query):
    if x is None:
        return None
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, checks.INTEGERS)
    checks.shape(op, name, x, query.shape[:-3], "the batch dimensions of query")
    return x


def static(op, query, *, scale, is_causal=False, alignment="top_left", window=None, softcap=None, block_size=None):
    """(Spec, alignment) of the arguments that are no arrays."""
    if block_size is not None:
        block_size = checks.integer(op, "block_size", block_size, 1)
    left, right = (None, None) if window is None else window_sizes(op, window)
    softcap = None if softcap is None else positive(op, "softcap", softcap)
    spec = Spec(scale_of(op, scale, query), softcap, checks.flag(op, "is_causal", is_causal), left, right, block_size)
    return spec, alignment if not isinstance(alignment, str) else checks.choice(op, "alignment", alignment, ALIGNMENTS)


def aligned(op, x, alignment):
    """(operands, alignment as a word): that of the first query, if it is a number, is an operand."""
    if isinstance(alignment, str):
        return x, alignment
    offset = checks.array(op, "alignment", alignment)
    checks.dtype(op, "alignment", offset, checks.INTEGERS)
    if offset.shape not in ((), x.query.shape[:-3]):
        raise ValueError(
            f"{op}: alignment must be one of {ALIGNMENTS}, one integer, or have the batch dimensions of query, "
            f"{x.query.shape[:-3]}, got shape {offset.shape}"
        )
    return x._replace(offset=offset), "top_left"


def window_sizes(op, window):
    if not isinstance(window, tuple | list):
        window = checks.integers(op, "window", window, 2, 0)
    if len(window) != 2:
        raise ValueError(f"{op}: window must be an integer or two, (left, right), got {window!r}")
    found = [None if n is None else checks.integer(op, f"window[{i}]", n, 0) for i, n in enumerate(window)]
    return tuple(None if n is None else min(n, FAR) for n in found)


def scale_of(op, scale, query):
    if scale is None:
        return float(max(query.shape[-1], 1) ** -0.5)
    if not checks.is_number(scale) or not np.isfinite(scale):
        raise ValueError(f"{op}: scale must be a static finite number or None, got {scale!r}")
    return float(scale)


def positive(op, name, value):
    if not checks.is_number(value) or not (np.isfinite(value) and value > 0):
        raise ValueError(f"{op}: {name} must be a static number above 0, got {value!r}")
    return float(value)


# ---------------------------------------------------------------------------------------------------------------------
# What is computed


@compiled("spec", "alignment", "save")
def call(x, *, spec, alignment, save):
    """(y, lse) of `operands`, y of the dtype of query; without `save` (y, None)."""
    limits = limits_of(x, alignment, spec)
    if x.slopes is None and x.positions is None and _cudnn.can(spec, limits, x.query, x.key, x.value, x.bias):
        batch, padded = x.query.shape[:-3], x.rows is not None or x.columns is not None
        counts = [
            jnp.full(batch, size, jnp.int32) if n is None else jnp.clip(n, 0, size).astype(jnp.int32)
            for n, size in ((x.rows, x.query.shape[-3]), (x.columns, x.key.shape[-3]))
        ]
        found = _by_platform(x.query, x.key, x.value, *counts, save=save, spec=spec, padded=padded)
        return tuple(found) if save else (found[0], None)
    y, lse = reference(x, spec, limits)
    return y, lse if save else None


def reference(x, spec, limits):
    """By `attend`."""
    groups = x.key.shape[-2]
    q, k, v = grouped(wide(x.query), groups), *(jnp.swapaxes(wide(a), -3, -2) for a in (x.key, x.value))
    bias = None if x.bias is None else wide(limits_like(x.bias, x, groups))
    slopes = None if x.slopes is None else limits_like(x.slopes[:, None, None], x, groups)
    y, lse = attend(spec, q, k, v, bias, slopes, limits)
    return ungrouped(y).astype(x.query.dtype), lse_of_heads(lse)


def limits_of(x, alignment, spec):
    """Which keys a query sees, of `operands`."""
    t, s = x.query.shape[-3], x.key.shape[-3]
    rows, columns = (None if n is None else _as_limit(n, x) for n in (x.rows, x.columns))
    shift = None
    aligns = spec.is_causal or spec.left is not None or spec.right is not None or x.slopes is not None
    if alignment == "bottom_right" and aligns:
        shift = (s if columns is None else columns) - (t if rows is None else rows)
        shift = None if isinstance(shift, int) and not shift else shift
    if x.offset is not None:
        info = jnp.iinfo(x.offset.dtype)
        shift = jnp.clip(x.offset, max(info.min, -FAR), min(info.max, FAR)).astype(jnp.int32)
        shift = shift[..., None, None, None, None] if shift.ndim else shift
    mask = None if x.mask is None else limits_like(x.mask, x, x.key.shape[-2])
    positions = None if x.positions is None else x.positions[..., None, None, None, :]
    return Limits(mask, shift, rows, columns, positions)


def _as_limit(n, x):
    """Lengths as int32 [..., 1, 1, 1, 1], what is larger than any array as its length."""
    longest = max(x.query.shape[-3], x.key.shape[-3])
    n = jnp.clip(n, 0, min(longest, jnp.iinfo(n.dtype).max)).astype(jnp.int32)
    return n[..., None, None, None, None]


def limits_like(a, x, groups):
    """What broadcasts to [..., heads, queries, keys], with the heads in groups."""
    a = explicit.reshape(a, *(1,) * (x.query.ndim - a.ndim), *a.shape)
    split = (1, 1) if a.shape[-3] == 1 else (groups, a.shape[-3] // groups)
    return explicit.reshape(a, *a.shape[:-3], *split, *a.shape[-2:])


def grouped(query, groups):
    """[..., length, heads, d] -> [..., groups, heads of a group, length, d]"""
    q = jnp.swapaxes(query, -3, -2)
    return explicit.reshape(q, *q.shape[:-3], groups, q.shape[-3] // groups, *q.shape[-2:])


def ungrouped(y):
    y = explicit.reshape(y, *y.shape[:-4], y.shape[-4] * y.shape[-3], *y.shape[-2:])
    return jnp.swapaxes(y, -3, -2)


def lse_of_heads(lse):
    lse = explicit.reshape(lse, *lse.shape[:-3], lse.shape[-3] * lse.shape[-2], lse.shape[-1])
    return jnp.swapaxes(lse, -2, -1)


def _of_platform(query, key, value, rows, columns, *, spec, padded):
    x = Operands(query, key, value, None, None, *((rows, columns) if padded else ()))
    return reference(x, spec, limits_of(x, "top_left", spec))


_by_platform = _cudnn.attention(_of_platform)
