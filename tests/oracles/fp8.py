"""8-bit training, by the floats of ml_dtypes. What is rounded to 8 bits is multiplied in float32, as its definition says."""

import ml_dtypes
import numpy as np


def _largest(dtype):
    return np.float32(ml_dtypes.finfo(np.dtype(dtype)).max)


def fp8_cast(x, scale, dtype="float8_e4m3fn"):
    x, scale, largest = np.asarray(x, np.float32), np.float32(scale), _largest(dtype)
    q = np.clip(x * scale, -largest, largest).astype(np.dtype(dtype))
    return q.astype(np.float64), np.abs(x).max(initial=0)


def fp8_dequant(q, scale):
    return np.asarray(q, np.float64) / scale


def fp8_recipe_update(history, scale, margin=0, amax_compute_algo="max", **to):  # a parameter dtype would get x's
    amax = history.max(-1) if amax_compute_algo == "max" else history[..., 0]
    found = np.where(amax > 0, _largest(to.get("dtype", "float8_e4m3fn")) / amax / 2**margin, scale)
    return np.concatenate([0 * history[..., :1], history[..., 2:], history[..., :1]], -1), found


def fp8_linear(x, kernel, state, bias=0, margin=0, amax_compute_algo="max"):
    (qx, _), (qk, _) = fp8_cast(x, state.x.scale), fp8_cast(kernel, state.kernel.scale)
    return qx @ qk / (state.x.scale * state.kernel.scale) + bias
