"""Functions of `jax.lax` with native kernels: the same names, signatures and semantics."""

import math

import jax
import jax.lax
import jax.numpy as jnp
import numpy as np

import baracuda_jax as bj

from ._core import explicit
from ._mirror.mirror import derived_by, has_axis, is_integer, is_number, mirror, takes

__all__ = [
    "argmax",
    "argmin",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "reduce_window",
    "sort",
    "sort_key_val",
    "top_k",
]

_cummax, _cummin, _cumlogsumexp = jax.lax.cummax, jax.lax.cummin, jax.lax.cumlogsumexp


def _scans(op, operand, axis, reverse):
    """JAX's scans take no negative axes."""
    return takes(op, operand) and is_integer(axis) and 0 <= axis < operand.ndim and isinstance(reverse, bool)


def _derived_scan(op, theirs, operand, axis, reverse):
    if not _scans(op, operand, axis, reverse):
        return NotImplemented
    native = lambda x: getattr(bj, op)(x, axis, reverse=reverse)
    return derived_by(lambda x: theirs(x, axis, reverse), native, operand)


@mirror(jax.lax, jax.lax.cumsum, "cumsum")
def cumsum(operand, axis=0, reverse=False):
    """As jax.lax.cumsum; native for real operands."""
    return bj.cumsum(operand, axis, reverse=reverse) if _scans("cumsum", operand, axis, reverse) else NotImplemented


@mirror(jax.lax, jax.lax.cumprod, "cumprod", differs="gradients of products with NaN or infinity")
def cumprod(operand, axis=0, reverse=False):
    """As jax.lax.cumprod; native for real operands."""
    return bj.cumprod(operand, axis, reverse=reverse) if _scans("cumprod", operand, axis, reverse) else NotImplemented


@mirror(jax.lax, jax.lax.cummax, "cummax")
def cummax(operand, axis=0, reverse=False):
    """As jax.lax.cummax; native for real operands, unless derivatives are taken."""
    return _derived_scan("cummax", _cummax, operand, axis, reverse)


@mirror(jax.lax, jax.lax.cummin, "cummin")
def cummin(operand, axis=0, reverse=False):
    """As jax.lax.cummin; native for real operands, unless derivatives are taken."""
    return _derived_scan("cummin", _cummin, operand, axis, reverse)


@mirror(jax.lax, jax.lax.cumlogsumexp, "logcumsumexp")
def cumlogsumexp(operand, axis=0, reverse=False):
    """As jax.lax.cumlogsumexp; native for real floats, unless derivatives are taken."""
    return _derived_scan("logcumsumexp", _cumlogsumexp, operand, axis, reverse)


@mirror(jax.lax, jax.lax.sort, "sort", "sort_key_val")
def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    """As jax.lax.sort; native for one real array, or for a key with arrays that move along."""
    if num_keys != 1 or not isinstance(is_stable, bool):
        return NotImplemented
    if not isinstance(operand, tuple | list):
        return bj.sort(operand, dimension) if _sorts(operand, dimension) else NotImplemented
    if not operand or not all(_sorts(x, dimension) and x.shape == operand[0].shape for x in operand):
        return NotImplemented
    if len(operand) == 1:
        return (bj.sort(operand[0], dimension),)
    keys, values = bj.sort_key_val(operand[0], tuple(operand[1:]), dimension)
    return (keys, *values)


def _sorts(x, dimension):
    return takes("sort", x) and has_axis(x, dimension)


@mirror(jax.lax, jax.lax.sort_key_val, "sort_key_val")
def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """As jax.lax.sort_key_val; native for real keys and values."""
    if not (_sorts(keys, dimension) and _sorts(values, dimension) and keys.shape == values.shape):
        return NotImplemented
    return tuple(bj.sort_key_val(keys, values, dimension))


@mirror(jax.lax, jax.lax.top_k, "topk", differs="0 and -0 tie, and XLA puts 0 first")
def top_k(operand, k, *, axis=-1, is_stable=True):
    """As jax.lax.top_k; native for real operands."""
    if not takes("topk", operand) or not has_axis(operand, axis) or not is_integer(k):
        return NotImplemented
    if not 0 <= k <= operand.shape[axis]:
        return NotImplemented
    return list(bj.topk(operand, int(k), axis))


def _position(op, operand, axis, index_dtype):
    if not takes(op, operand) or not is_integer(axis) or not 0 <= axis < operand.ndim or not operand.shape[axis]:
        return NotImplemented
    try:
        dtype = jnp.dtype(index_dtype)
    except TypeError:
        return NotImplemented
    if dtype.name not in ("int32", "uint32", "int64", "uint64") or jax.dtypes.canonicalize_dtype(dtype) != dtype:
        return NotImplemented
    return getattr(bj, op)(operand, axis).astype(dtype)


@mirror(jax.lax, jax.lax.argmax, "argmax")
def argmax(operand, axis, index_dtype):
    """As jax.lax.argmax; native for real operands and indices of 32 and 64 bits."""
    return _position("argmax", operand, axis, index_dtype)


@mirror(jax.lax, jax.lax.argmin, "argmin")
def argmin(operand, axis, index_dtype):
    """As jax.lax.argmin; native for real operands and indices of 32 and 64 bits."""
    return _position("argmin", operand, axis, index_dtype)


# ---------------------------------------------------------------------------------------------------------------------
# Windows

_POOLS = tuple(f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3))


@mirror(jax.lax, jax.lax.reduce_window, *_POOLS, differs="gradients of maxima and minima of windows with NaN")
def reduce_window(
    operand,
    init_value,
    computation,
    window_dimensions,
    window_strides=None,
    padding="VALID",
    base_dilation=None,
    window_dilation=None,
):
    """As jax.lax.reduce_window; native for sums, maxima and minima of floats without `base_dilation`."""
    pools = {jax.lax.add: (0, _sums), jax.lax.max: (-np.inf, _maxima), jax.lax.min: (np.inf, _minima)}
    nothing, pool = next((pools[known] for known in pools if computation is known), (None, None))
    if pool is None or not takes("max_pool1d", operand) or not _is_number_like(init_value, nothing, operand.dtype):
        return NotImplemented
    rank, ones = operand.ndim, (1,) * operand.ndim
    given = window_dimensions, window_strides, window_dilation, base_dilation
    window, strides, dilation, base = (ones if v is None else v for v in given)
    if not all(_are_sizes(v, rank) for v in (window, strides, dilation, base)) or tuple(base) != ones:
        return NotImplemented
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True))
    if isinstance(padding, str):
        if padding.upper() not in ("VALID", "SAME", "SAME_LOWER"):
            return NotImplemented
        padding = jax.lax.padtype_to_pads(operand.shape, reach, strides, padding)
    if len(padding) != rank or not all(_are_sizes(sides, 2, 0) for sides in padding):
        return NotImplemented
    padding = [tuple(map(int, sides)) for sides in padding]
    has_windows = all(n and n + sum(p) >= r for n, p, r in zip(operand.shape, padding, reach, strict=True))
    axes = [axis for axis in range(rank) if window[axis] > 1 or strides[axis] > 1 or any(padding[axis])]
    if not axes or not has_windows:
        return NotImplemented
    # Three axes at a time, from the last: so the first of equal maxima is that of the whole window.
    y = operand
    while axes:
        last = axes[-1]
        some = slice(next(axis for axis in axes if axis > last - 3), last + 1)
        y = _pooled(pool, y, some, *(tuple(v[some]) for v in (window, strides, padding, dilation)))
        axes = [axis for axis in axes if axis < some.start]
    return y


def _is_number_like(value, want, dtype):
    """Whether it is that number, as a Python number or as NumPy's of the dtype."""
    if isinstance(value, np.ndarray | np.generic):
        return value.shape == () and value.dtype == dtype and value == want
    return is_number(value) and value == want


def _are_sizes(values, count, minimum=1):
    return (
        isinstance(values, tuple | list)
        and len(values) == count
        and all(is_integer(n) and n >= minimum for n in values)
    )


def _pooled(pool, x, axes, window, strides, padding, dilation):
    """By windows along neighboring axes, those before and after which are one each: channels."""
    before, size, after = x.shape[: axes.start], x.shape[axes], x.shape[axes.stop :]
    layout = ("NLC", "NHWC", "NDHWC") if after else ("NCL", "NCHW", "NCDHW")
    x = explicit.reshape(x, math.prod(before), *size, *([math.prod(after)] if after else []))
    how = dict(dilation=dilation, data_format=layout[len(size) - 1])
    y = pool(len(size), x, window, strides, padding, **how)
    return explicit.reshape(y, *before, *y.shape[1 : 1 + len(size)], *after)


def _sums(rank, x, *windows, **how):
    return getattr(bj, f"avg_pool{rank}d")(x, *windows, divisor_override=1, **how)


def _maxima(rank, x, *windows, **how):
    return getattr(bj, f"max_pool{rank}d")(x, *windows, **how)


def _minima(rank, x, *windows, **how):
    return -_maxima(rank, -x, *windows, **how)
