"""Products of matrices: sums of products of elements."""

import numpy as np
from scipy.special import erf


def _product(a, b, transpose_a=False, transpose_b=False):
    a, b = np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b
    return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)


def gemm(a, b, c=0, alpha=1, beta=1, **transposed):
    return alpha * _product(a, b, **transposed) + beta * c


dense_gemm = batched_gemm = gemm


def gemv(a, x, c=0, alpha=1, beta=1, transpose_a=False):
    return alpha * ((a.T if transpose_a else a) * x).sum(1) + beta * c


def gemm_bias(a, b, bias, c=0, **options):
    return gemm(a, b, c, **options) + bias


def gemm_bias_relu(*args, **options):
    return np.maximum(gemm_bias(*args, **options), 0)


def gemm_bias_gelu(*args, **options):
    z = gemm_bias(*args, **options)
    return z * (1 + erf(z / np.sqrt(2))) / 2


def gemm_bias_silu(*args, **options):
    z = gemm_bias(*args, **options)
    return z / (1 + np.exp(-z))


def grouped_gemm(a, b, group_sizes, transpose_b=False):
    b = np.swapaxes(b, 1, 2) if transpose_b else b
    y, begin = np.zeros((len(a), b.shape[2])), 0
    for matrix, size in zip(b, group_sizes, strict=True):
        y[begin : begin + size] = a[begin : begin + size] @ matrix
        begin += size
    return y


def gemm_sparse24(values, metadata, b, c=0, alpha=1, beta=1, transpose_b=False):
    a = np.zeros((len(values), 2 * values.shape[1]))
    for i, g in np.ndindex(metadata.shape):
        byte = int(metadata[i, g])
        for k in range(2):
            a[i, 4 * g + (byte >> 2 * k) % 4] = values[i, 2 * g + k]
    return gemm(a, b, c, alpha, beta, transpose_b=transpose_b)


def int8_gemm(a, b, scale=None, bias=0, a_zero=0, b_zero=0, zero=0, activation="identity", **transposed):
    a_zero, b_zero = np.reshape(a_zero, (-1, 1)).astype(np.int64), np.asarray(b_zero, np.int64)
    to = np.iinfo(a.dtype)
    a = (a.T if transposed.get("transpose_a") else a).astype(np.int64) - a_zero
    n = _product(a, (b.T if transposed.get("transpose_b") else b).astype(np.int64) - b_zero)
    if scale is None:
        return n + bias
    z = n * scale + bias
    return np.clip(np.rint(np.maximum(z, 0) if activation == "relu" else z) + zero, to.min, to.max).astype(a.dtype)


def fp8_gemm(a, b, a_scale, b_scale, bias, dtype="float32", **transposed):
    return _product(a, b, **transposed) * np.reshape(a_scale, (-1, 1)) * b_scale + bias


def int4_gemm(a, b):
    return a.astype(np.int64) @ b.astype(np.int64)


def bin_gemm(a, b, signs=False):
    differ = (np.unpackbits(a, axis=1)[:, None] != np.unpackbits(b, axis=1)[None]).sum(-1)
    return 8 * a.shape[1] - 2 * differ if signs else differ
