"""Quantized values."""

import jax.numpy as jnp
import numpy as np


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


def linear(x, w, w_scale, bias, smooth=None):
    """Row by row, rounded as the row says."""
    wide = np.float64 if x.dtype == np.float64 else np.float32
    rows = x.astype(wide) if smooth is None else (x.astype(wide) / smooth.astype(wide)).astype(x.dtype).astype(wide)
    size = np.abs(rows).max(-1, keepdims=True) / wide(127)
    n = np.rint(rows / size).astype(np.int64) @ w.T.astype(np.int64)
    return n * size.astype(np.float64) * w_scale + np.asarray(bias, np.float64)


def value(name, *args, **kwargs):
    if name == "quantized_linear":
        return linear(*args)
    if name == "smooth_quant_linear":
        x, smooth, *rest = args
        return linear(x, *rest, smooth=smooth)
    return quantize(name.removesuffix("_lsq"), *args, **kwargs)
