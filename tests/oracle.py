"""What the ops compute, written out in NumPy, in float64 or wrapping integers."""

import importlib
import inspect
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from baracuda_jax.elementwise._made import MADE


def _windows(shape, window, strides, ceil_mode):
    """Each window's position among the outputs, and the slices of its elements."""
    counts = []
    for n, k, s in zip(shape, window, strides, strict=True):
        count = (math.ceil((n - k) / s) if ceil_mode else (n - k) // s) + 1
        counts.append(count - (ceil_mode and (count - 1) * s >= n))
    positions = itertools.product(*map(range, counts))
    return counts, {
        o: tuple(slice(i * s, min(i * s + k, n)) for i, s, k, n in zip(o, strides, window, shape, strict=True))
        for o in positions
    }


def _per_axis(value, rank):
    return (value,) * rank if np.ndim(value) == 0 else tuple(value)


def _channels_first(rank, x, data_format):
    return np.moveaxis(x, -1, 1) if data_format and not data_format.startswith("NC") else x


def lp_pool(rank, x, norm_type, window, strides=None, ceil_mode=False, data_format=None):
    x = _channels_first(rank, np.asarray(x).astype(np.float64), data_format)
    window = _per_axis(window, rank)
    counts, positions = _windows(
        x.shape[2:], window, window if strides is None else _per_axis(strides, rank), ceil_mode
    )
    y = np.empty((*x.shape[:2], *counts))
    for o, elements in positions.items():
        part = np.abs(x[(..., *elements)])
        part = part.reshape(*x.shape[:2], math.prod(part.shape[2:]))
        y[(..., *o)] = part.max(-1) if math.isinf(norm_type) else (part**norm_type).sum(-1) ** (1 / norm_type)
    return np.moveaxis(y, 1, -1) if data_format and not data_format.startswith("NC") else y


def lp_pool_gradient(rank, x, dy, norm_type, window, strides=None, ceil_mode=False, data_format=None):
    """0 where the element or the norm is 0; the first largest element for an infinite p."""
    if data_format and not data_format.startswith("NC"):
        first = lambda a: np.moveaxis(np.asarray(a), -1, 1)
        dx = lp_pool_gradient(rank, first(x), first(dy), norm_type, window, strides, ceil_mode)
        return np.moveaxis(dx, 1, -1)
    x, dy = np.asarray(x).astype(np.float64), np.asarray(dy).astype(np.float64)
    y = lp_pool(rank, x, norm_type, window, strides, ceil_mode)
    window = _per_axis(window, rank)
    _, positions = _windows(x.shape[2:], window, window if strides is None else _per_axis(strides, rank), ceil_mode)
    dx = np.zeros_like(x)
    for o, elements in positions.items():
        for b in np.ndindex(*x.shape[:2]):
            part, norm, ct = x[(*b, *elements)], y[(*b, *o)], dy[(*b, *o)]
            if norm == 0:
                continue
            if math.isinf(norm_type):
                slope = np.zeros(part.size)
                magnitude = np.abs(part).ravel()
                arg = np.argmax(magnitude)
                slope[arg] = -1 if part.ravel()[arg] < 0 else 1
                slope = slope.reshape(part.shape)
            else:
                safe = np.where(part == 0, 1, np.abs(part))
                slope = np.where(part == 0, 0, np.sign(part) * (safe / norm) ** (norm_type - 1))
            dx[(*b, *elements)] += ct * slope
    return dx


def quantize(
    name, x, scale=None, zero_point=None, *, dtype="int8", qmin=None, qmax=None, axis=None, group_size=None, **_
):
    """quantize_*, dequantize_*, fake_quantize and dynamic_quantize, element by element of an array with its scale next to it."""
    wide = np.float64 if x.dtype == np.float64 else np.float32
    x = np.asarray(x).astype(wide)
    code = jnp.dtype(dtype)
    is_float8 = jnp.issubdtype(code, jnp.floating)
    info = jnp.finfo(code) if is_float8 else jnp.iinfo(code)
    low = float(info.min) if qmin is None else qmin
    high = float(info.max) if qmax is None else qmax
    if name == "dynamic_quantize":
        rows = x.reshape(*x.shape[:-1], -1, group_size) if group_size else x[..., None, :]
        most, smallest = np.maximum(rows.max(-1), 0), np.maximum(-rows.min(-1), 0)
        symmetric = low < 0
        scale = np.maximum(most, smallest) / wide(high) if symmetric else (most + smallest) / wide(high - low)
        zero_point = np.zeros(scale.shape) if symmetric else np.rint(low + smallest / scale)
        x, shape = rows, x.shape
        scale, zero_point = scale[..., None], zero_point[..., None]
    else:
        shape = x.shape
        scale, zero_point = np.asarray(scale).astype(wide), np.asarray(zero_point)
        if axis is not None:
            spread = [1] * x.ndim
            spread[axis] = -1
            scale, zero_point = scale.reshape(spread), zero_point.reshape(spread)
        elif group_size is not None:
            x = x.reshape(*scale.shape, group_size)
        if scale.ndim and axis is None:
            scale, zero_point = scale[..., None], zero_point[..., None]
    if name.startswith("dequantize"):
        return ((x - zero_point) * scale).reshape(shape)
    if is_float8:
        return np.clip(x / scale, low, high).astype(np.float32).astype(code).astype(np.float64).reshape(shape)
    q = np.clip(np.rint(x / scale) + zero_point, low, high)
    return ((q - zero_point) * scale if name == "fake_quantize" else q).reshape(shape)


def _wide(x):
    """In float64, or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


_ELEMENTWISE = {
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x),
    "elu": lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "threshold": lambda x, threshold, value: np.where(x > threshold, x, value),
    "hardtanh": lambda x, min_val=-1, max_val=1: np.clip(x, min_val, max_val),
    "softshrink": lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0),
    "hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    "softplus": lambda x, beta=1: np.logaddexp(0, beta * x) / beta,
    "logit": lambda x, eps=0: np.log(np.clip(x, eps, 1 - eps) / (1 - np.clip(x, eps, 1 - eps))),
    "ldexp": lambda x, n: x * 2.0**n,
    "where": lambda condition, x, y: np.where(condition, x, y),
    "fma": lambda x, y, z: x * y + z,
    "addcmul": lambda x, y, z, value=1: x + value * y * z,
    "addcdiv": lambda x, y, z, value=1: x + value * y / z,
    "clamp_between": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "glu": lambda x, axis: _gated(x, axis, lambda b: 1 / (1 + np.exp(-b))),
    "reglu": lambda x, axis: _gated(x, axis, lambda b: np.maximum(b, 0)),
    "swiglu": lambda x, axis: _gated(x, axis, lambda b: b / (1 + np.exp(-b))),
    "geglu": lambda x, axis: _gated(x, axis, lambda b: b * np.vectorize(math.erfc)(-b / math.sqrt(2)) / 2),
    "geglu_tanh": lambda x, axis: _gated(
        x, axis, lambda b: b * (1 + np.tanh(math.sqrt(2 / math.pi) * (b + 0.044715 * b**3))) / 2
    ),
    "integer_pow": lambda x, exponent: np.power(x, float(exponent)),
    "affine": lambda x, scale, shift: scale * x + shift,
    "clamp": lambda x, min=-math.inf, max=math.inf: np.minimum(np.maximum(x, min), max),
    "lerp": lambda start, end, weight: (1 - weight) * start + weight * end,
    "prelu": lambda x, weight: np.where(x > 0, x, x * weight.reshape(1, -1, *(1,) * (x.ndim - 2))),
}


def _gated(x, axis, gate):
    first, second = np.split(x, 2, axis)
    return first * gate(second)


def made(line, *args):
    """NumPy's function of the same name as JAX's, or else PyTorch's."""
    if line.name in _BITS:
        return _BITS[line.name](*args)
    if line.name != "nextafter" and jnp.issubdtype(args[0].dtype, jnp.inexact):
        args = [_wide(a) for a in args]
    theirs = (line.theirs("jax") or "").removeprefix("jax.numpy.")
    if hasattr(np, theirs):
        return getattr(np, theirs)(*args)
    torch = pytest.importorskip("torch")
    return line.call_theirs(torch, *map(torch.tensor, args)).numpy()


def _by_bits(fun):
    """A function of the string of an integer's bits."""

    def of(x):
        width = 8 * x.dtype.itemsize
        return np.array([fun(format(int(v) % 2**width, f"0{width}b")) for v in x.flat], x.dtype).reshape(x.shape)

    return of


def _shift(fun):
    """Exact, then wrapped; a shift by nothing sensible moves every bit out."""

    def of(x, count):
        width = 8 * x.dtype.itemsize
        wrap = lambda v: np.array(v % 2**width, f"uint{width}").astype(x.dtype)
        out = [
            wrap(fun(int(v), int(n) if 0 <= n < width else 2 * width)) for v, n in zip(x.flat, count.flat, strict=True)
        ]
        return np.array(out, x.dtype).reshape(x.shape)

    return lambda x, count: of(*np.broadcast_arrays(x, count))


_BITS = {
    "population_count": _by_bits(lambda bits: bits.count("1")),
    "clz": _by_bits(lambda bits: len(bits) - len(bits.lstrip("0"))),
    "ctz": _by_bits(lambda bits: len(bits) - len(bits.rstrip("0"))),
    "left_shift": _shift(lambda x, n: x << n),
    "right_shift": _shift(lambda x, n: x >> n),
    "cube": lambda x: (x if x.dtype.kind in "iu" else _wide(x)) ** 3,
}


# name: (reduction of what comes before, what it is of nothing)
_SCAN = {
    "cumsum": (lambda x: x.sum(0, dtype=x.dtype), 0),
    "cumprod": (lambda x: x.prod(0, dtype=x.dtype), 1),
    "cummax": (lambda x: x.max(0), -math.inf),
    "cummin": (lambda x: x.min(0), math.inf),
    "logcumsumexp": (lambda x: np.logaddexp.reduce(x, 0), -math.inf),
}


def cumulative(name, x, axis=0, reverse=False, exclusive=False):
    """Element by element: what comes before it, and the element, as one array that is reduced."""
    x = np.asarray(x)
    is_integer = np.issubdtype(x.dtype, np.integer)
    x = np.moveaxis(x if is_integer else x.astype(np.float64), axis, 0)
    reduce, nothing = _SCAN[name]
    if is_integer and math.isinf(nothing):
        nothing = np.iinfo(x.dtype).max if nothing > 0 else np.iinfo(x.dtype).min
    x = x[::-1] if reverse else x
    y = np.full(x.shape, nothing, x.dtype)
    with np.errstate(all="ignore"):
        for i in range(len(x)):
            if i + (not exclusive):
                y[i] = reduce(x[: i + (not exclusive)])
    return np.moveaxis(y[::-1] if reverse else y, 0, axis)


def linear_scan(a, b, axis=0, reverse=False):
    a, b = (np.moveaxis(np.asarray(x), axis, 0) for x in (a, b))
    a, b = (_wide(x[::-1] if reverse else x) for x in (a, b))
    h = np.zeros_like(a)
    for i in range(len(a)):
        h[i] = a[i] * h[i - 1] + b[i] if i else b[i]
    return np.moveaxis(h[::-1] if reverse else h, 0, axis)


def _search(sequence, values, side="left"):
    """By counting."""
    elements = sequence[..., None, :] if sequence.ndim > 1 else sequence
    x = values[..., None]
    return (elements < x if side == "left" else elements <= x).sum(-1)


def _histogram(a, bins, range=None):
    edges = np.linspace(*range, bins + 1) if range else np.asarray(bins, np.float64)
    a = np.asarray(a, np.float64)
    last = len(edges) - 2
    inside = [(a >= edges[b]) & ((a < edges[b + 1]) | ((b == last) & (a == edges[-1]))) for b in np.arange(last + 1)]
    return np.asarray([elements.sum() for elements in inside], np.float64)


def _padded(values, size, fill):
    return np.concatenate([values[:size], np.full(max(size - len(values), 0), fill, values.dtype)])


def _first_coordinate(a, size, fill_value=0):
    fill = fill_value[0] if isinstance(fill_value, tuple) else fill_value
    return _padded(np.nonzero(a)[0], size, fill)


def _distinct(x, size, fill_value=None, **_):
    values = np.unique(x.astype(np.float64)).astype(x.dtype)
    return _padded(values, size, values[0] if fill_value is None else fill_value)


def _heads(x, size, **_):
    x = x.ravel()
    return _padded(x[np.concatenate([[True], x[1:] != x[:-1]])], size, x[0])


COUNTING = {
    "searchsorted": _search,
    "bincount": lambda x, length: (x[:, None] == np.arange(length)).sum(0),
    "histogram": _histogram,
    "nonzero": _first_coordinate,
    "unique": _distinct,
    "unique_consecutive": _heads,
}


def _order(rows, descending=False):
    """A stable order of the last axis, by comparing each pair: NaN is the largest."""
    x = np.asarray(rows)
    x = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    a, b = x[..., :, None], x[..., None, :]
    less = (a < b) | ((a == a) & (b != b))
    before = np.swapaxes(less, -1, -2) if not descending else less  # [i, j]: j goes before i
    ties = ~less & ~np.swapaxes(less, -1, -2)
    n = x.shape[-1]
    before = before | (ties & (np.arange(n)[None, :] < np.arange(n)[:, None]))
    order = np.empty(x.shape, np.int64)
    np.put_along_axis(order, before.sum(-1), np.broadcast_to(np.arange(n), x.shape), -1)
    return x, order


def sorting(name, x, values=None, k=None, axis=-1, descending=False, largest=True, keepdims=False):
    descending = largest if name == "topk" else descending
    rows, order = _order(np.moveaxis(np.asarray(x), axis, -1), descending)
    if name == "argsort":
        return np.moveaxis(order, -1, axis)
    if name == "sort_key_val":
        rows = np.moveaxis(np.asarray(values), axis, -1)
        rows = rows.astype(np.float64) if rows.dtype.kind not in "iub" else rows
    y = np.take_along_axis(rows, order, -1)
    if name == "kthvalue":
        y = y[..., k - 1 : k]
        return np.moveaxis(y, -1, axis) if keepdims else y[..., 0]
    return np.moveaxis(y[..., :k], -1, axis)


def argextremum(name, x, axis=None, keepdims=False):
    x = np.asarray(x)
    x = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    return getattr(np, name)(x, axis, keepdims=keepdims)


def quantile(name, a, q=0.5, axis=None, method="linear", keepdims=False):
    method = "midpoint" if name.endswith("median") else method
    fun = np.nanquantile if name.startswith("nan") else np.quantile
    return fun(
        np.asarray(a).astype(np.float64), np.asarray(q).astype(np.float64), axis, method=method, keepdims=keepdims
    )


# ---------------------------------------------------------------------------------------------------------------------
# Ops that move elements


def _pad(x, pad_width, mode="constant", constant_values=0):
    """The elements that NumPy puts on; those that are taken away, by slices: before, where the rest goes round."""
    pairs = np.broadcast_to(pad_width, (x.ndim, 2))
    if mode in ("circular", "wrap"):
        x = x[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape, pairs, strict=True))]
        pairs = np.maximum(pairs, 0)
    names = {"replicate": "edge", "circular": "wrap"}
    more = dict(constant_values=constant_values) if mode == "constant" else {}
    y = np.pad(x, np.maximum(pairs, 0), names.get(mode, mode), **more)
    return y[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(y.shape, pairs, strict=True))]


def _broadcast_in_dim(x, shape, broadcast_dimensions):
    kept = dict(zip(broadcast_dimensions, x.shape, strict=True))
    return np.broadcast_to(x.reshape([kept.get(i, 1) for i in range(len(shape))]), shape)


def _windows_of(x, window, strides=1, padding=0, dilation=1):
    """The elements of a padded array's windows, by their numbers: [C K, L]."""
    count = len(window) if np.ndim(window) else 2
    size, d, p, s = (_per_axis(value, count) for value in (window, dilation, padding, strides))
    spatial = x.shape[x.ndim - count :]
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(spatial, size, d, p, s, strict=True)]
    columns = []
    for element in np.ndindex(*size):
        positions = [np.arange(m) * s + k * d - p for m, k, d, p, s in zip(counts, element, d, p, s, strict=True)]
        positions = np.meshgrid(*positions, indexing="ij")
        inside = np.logical_and.reduce(
            [(position >= 0) & (position < n) for position, n in zip(positions, spatial, strict=True)]
        )
        at = [np.clip(position, 0, n - 1) for position, n in zip(positions, spatial, strict=True)]
        columns.append(np.where(inside, x[(..., *at)], np.zeros((), x.dtype)))
    lead = x.shape[: x.ndim - count]
    y = np.stack(columns, x.ndim - count)
    return y.reshape(*lead[:-1], lead[-1] * len(columns), math.prod(counts))


def _fold(x, output_size, **window):
    elements = math.prod(_per_axis(window["window"], 2) if np.ndim(window["window"]) == 0 else window["window"])
    *batch, rows, count = x.shape
    positions = _windows_of(1 + np.arange(math.prod(output_size)).reshape(1, *output_size), **window)
    wide = _wide(x).reshape(*batch, rows // elements, elements * count)
    y = np.zeros((*batch, rows // elements, math.prod(output_size) + 1), wide.dtype)
    np.add.at(y, (..., positions.reshape(-1)), wide)
    return y[..., 1:].reshape(*batch, rows // elements, *output_size)


def _pixel_shuffle(x, upscale_factor):
    *batch, channels, rows, columns = x.shape
    r = upscale_factor
    y = np.empty((*batch, channels // r**2, rows * r, columns * r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., i::r, j::r] = x[..., r * i + j :: r * r, :, :]
    return y


def _pixel_unshuffle(x, downscale_factor):
    *batch, channels, rows, columns = x.shape
    r = downscale_factor
    y = np.empty((*batch, channels * r**2, rows // r, columns // r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., r * i + j :: r * r, :, :] = x[..., i::r, j::r]
    return y


def _channel_shuffle(x, groups, axis=-3):
    channels = x.shape[axis]
    return np.take(x, np.arange(channels).reshape(groups, -1).T.ravel(), axis)


def _dynamic_update_slice(x, update, start):
    y = x.copy()
    start = [s + n if s < 0 else s for s, n in zip(start, x.shape, strict=True)]
    begin = [max(0, min(s, n - m)) for s, n, m in zip(start, x.shape, update.shape, strict=True)]
    y[tuple(slice(b, b + m) for b, m in zip(begin, update.shape, strict=True))] = update
    return y


def _repeat_interleave(x, repeats, axis=None, total_repeat_length=None):
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    rows = np.repeat(np.arange(x.shape[axis]), repeats)[:total_repeat_length]
    return np.take(x, np.pad(rows, (0, total_repeat_length - rows.size), mode="edge"), axis)


_MOVED = {
    "repeat": lambda x, repeats: np.tile(x, repeats),
    "flip": np.flip,
    "roll": np.roll,
    "permute": np.transpose,
    "pad": _pad,
    "pad_folded": _pad,
    "triu": np.triu,
    "tril": np.tril,
    "concat": np.concatenate,
    "broadcast_in_dim": _broadcast_in_dim,
    "fill": lambda value, shape: np.full(shape, value),
    "dynamic_update_slice": _dynamic_update_slice,
    "repeat_interleave": _repeat_interleave,
    "unfold": _windows_of,
    "fold": _fold,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "channel_shuffle": _channel_shuffle,
}


def _with_mean(fun, x, return_residuals=False, ddof=0, **k):
    """Of several outputs, as one vector."""
    y = fun(x, ddof=ddof, **k)
    return np.concatenate([y.ravel(), x.mean(**k).ravel()]) if return_residuals else y


_REDUCE = {
    "sum": lambda x, **k: x.sum(**k),
    "mean": lambda x, **k: x.mean(**k),
    "max": lambda x, **k: x.max(**k),
    "min": lambda x, **k: x.min(**k),
    "prod": lambda x, **k: x.prod(**k),
    "logsumexp": lambda x, **k: np.log(np.exp(x).sum(**k)),
    "vector_norm": lambda x, ord=2, **k: (np.abs(x) ** float(ord)).sum(**k) ** (1 / ord),
    "var": lambda x, **k: _with_mean(np.var, x, **k),
    "std": lambda x, **k: _with_mean(np.std, x, **k),
    "count_nonzero": lambda x, **k: (x != 0).sum(**k),
    "any": lambda x, **k: (x != 0).any(**k),
    "all": lambda x, **k: (x != 0).all(**k),
    "trace": lambda x, **k: np.trace(x, **k),
}


def reduction(name, x, **kwargs):
    """In float64, complex128, or the type that NumPy gives integers."""
    x = np.asarray(x)
    wide = x if x.dtype.kind in "iub" else _wide(x)
    with np.errstate(over="ignore"):
        return _REDUCE[name](wide, **kwargs)


def kv_cache_append(cache, new, position):
    """Row by row."""
    y, new = np.array(cache), np.asarray(new)
    for batch in np.ndindex(y.shape[:-2]):
        p = int(position[batch[: position.ndim]])
        for i, row in enumerate(new[batch]):
            if 0 <= p + i < y.shape[-2]:
                y[(*batch, p + i)] = row
    return y


def _of_facade(example):
    """As Example.call: the first outputs, several as one vector."""
    of_family = importlib.import_module(f"oracles.{example.op.family}")
    args = [_wide(x) if jnp.issubdtype(x.dtype, jnp.inexact) else np.asarray(x) for x in example.args]
    fun, kwargs = getattr(of_family, example.op.name), dict(example.case.kwargs)
    if "dtype" in inspect.signature(fun).parameters:  # of what is drawn in it
        kwargs.setdefault("dtype", example.dtype)
    found = fun(*example.structured(args), **kwargs)
    outputs = jax.tree.leaves((found if isinstance(found, tuple) else (found,))[: len(example.op.outputs)])
    return outputs[0] if len(outputs) == 1 else np.concatenate([np.ravel(y) for y in outputs])


def value(example):
    """The oracle's result for an example."""
    name, args, kwargs = example.op.name.removesuffix("_split"), example.args, dict(example.case.kwargs)
    if example.op.is_facade or example.op.family in ("segment", "graph", "indexing", "loss", "moe", "embedding"):
        return _of_facade(example)
    if name in _SCAN:
        return cumulative(name, *args, **kwargs)
    if name == "linear_scan":
        return linear_scan(*args, **kwargs)
    if name in COUNTING:
        return COUNTING[name](*map(np.asarray, args), **kwargs)
    if name in ("sort", "argsort", "sort_key_val", "topk", "kthvalue"):
        return sorting(name, *args, **kwargs)
    if name in ("argmax", "argmin"):
        return argextremum(name, *args, **kwargs)
    if name in ("median", "quantile", "nanmedian", "nanquantile"):
        return quantile(name, *args, **kwargs)
    if name in _MOVED:
        return _MOVED[name](*map(np.asarray, args), **kwargs)
    if example.op.family == "reduce":
        return reduction(name, *args, **kwargs)
    if name == "kv_cache_append":
        return kv_cache_append(*map(np.asarray, args))
    if name == "repeat":
        return np.tile(np.asarray(args[0]), kwargs["repeats"])
    if name.startswith("lp_pool"):
        return lp_pool(int(name[7]), *args, **kwargs)
    if "quantize" in name:
        return quantize(name.removesuffix("_lsq"), *args, **kwargs)
    if name in MADE and name not in _ELEMENTWISE:
        return made(MADE[name], *map(np.asarray, args))
    if name in _ELEMENTWISE:
        return _ELEMENTWISE[name](*map(_wide, args), **kwargs)
    raise KeyError(f"tests/oracle.py has no oracle for {name}")
