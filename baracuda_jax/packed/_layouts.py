"""Layouts of weights of other programs, as rows of neighbors, of four bits with the low ones first.

Weights of AWQ and Marlin are stored for products x W with W [K, N]. Here W^T [N, K] is packed along K, and so its values are
transposed. A matrix that is used often is converted once: `from_awq` and `from_marlin`. GPTQ's are along K already."""

import jax.numpy as jnp
import numpy as np

from .._core.compiled import compiled

# The column of eight that each four bits of a word are, from the lowest.
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)
MARLIN_TILE, MARLIN_WORDS = 16, 1024  # rows and columns of a tile, and values that are permuted together


def fields(words, bits=4):
    """The fields of so many bits of int32 or uint32 [..., n], uint8 [..., n, 32 / bits], from the lowest."""
    shifts = jnp.arange(0, 32, bits, dtype=jnp.uint32).reshape(*(1,) * words.ndim, 32 // bits)
    return ((words.astype(jnp.uint32)[..., None] >> shifts) & (2**bits - 1)).astype(jnp.uint8)


def packed_pairs(q):
    """Values of four bits [..., n] as [..., n / 2] bytes, the first in the low four bits."""
    return q[..., 0::2] | (q[..., 1::2] << 4)


def awq_values(words):
    """[..., columns / 8] words as [..., columns] values."""
    order = np.argsort(AWQ_COLUMNS)
    q = fields(words)[..., order]
    return q.reshape(*words.shape[:-1], 8 * words.shape[-1])


@compiled("dtype")
def awq_weights(q, scales, zeros, *, dtype):
    """W [..., K, N] as floats."""
    *batch, groups, columns = scales.shape
    values, minus = awq_values(q).astype(jnp.float32), awq_values(zeros).astype(jnp.float32)
    grouped = values.reshape(*batch, groups, values.shape[-2] // max(groups, 1), columns)
    y = (grouped - minus[..., None, :]) * scales.astype(jnp.float32)[..., None, :]
    return y.reshape(values.shape).astype(dtype)


@compiled()
def awq_rows(q, scales, zeros):
    """(data, scale, zero point) of W^T."""
    return packed_pairs(awq_values(q).T), scales.astype(jnp.float32).T, awq_values(zeros).astype(jnp.int32).T


@compiled("less", "bits")
def gptq_rows(q, scales, zeros, *, less, bits):
    """(data, scale, zero point) of W^T, of words [K bits / 32, N]; zero points are less by so much."""
    values = fields(q.T, bits).reshape(q.shape[1], 32 // bits * q.shape[0])
    zeros = fields(zeros, bits).reshape(zeros.shape[0], 32 // bits * zeros.shape[1])[:, : q.shape[1]]
    zeros = zeros.astype(jnp.int32).T + less
    scale = scales.astype(jnp.float32).T
    return (packed_pairs(values), scale, zeros) if bits == 4 else (values ^ 128, scale, zeros - 128)


def _marlin_order():
    """Marlin's permutation of 1024 neighboring values, which are four tiles of 16 rows and 16 columns: position i of the
    words has value order[i]. A thread of a warp has, of each tile, the values of its fragments of two mma instructions."""
    lane, tile, block, pair = np.ogrid[:32, :4, :2, :4]
    row = 2 * (lane % 4) + (pair % 2) + 8 * (pair // 2)
    value = 16 * row + lane // 4 + 8 * block + 256 * tile
    order = np.broadcast_to(value, (32, 4, 2, 4)).reshape(-1, 8)
    return order[:, list(AWQ_COLUMNS)].ravel()


def _marlin_scale_order(is_grouped):
    if is_grouped:
        return np.arange(64).reshape(8, 8).T.ravel()
    lane, k = np.ogrid[:4, :8]
    return (2 * lane + np.array([0, 1, 8, 9, 16, 17, 24, 25])[k]).ravel()


@compiled()
def marlin_rows(q, scales):
    """(data, scale) of W^T: words [K / 16, 2 N], scales [K / group, N]."""
    tiles, columns = q.shape[0], q.shape[1] // 2
    values = fields(q).reshape(tiles * columns // 64, MARLIN_WORDS)
    values = values[:, np.argsort(_marlin_order())]
    values = values.reshape(tiles, columns // MARLIN_TILE, MARLIN_TILE, MARLIN_TILE)
    # One pair of dimensions at a time, as JAX merges those of batches that are sharded.
    w = values.transpose(1, 3, 0, 2).reshape(columns // MARLIN_TILE, MARLIN_TILE, tiles * MARLIN_TILE)
    w = w.reshape(columns, tiles * MARLIN_TILE)
    order = np.argsort(_marlin_scale_order(scales.shape[0] > 1))
    scale = scales.reshape(-1, order.size)[:, order].reshape(scales.shape)
    return packed_pairs(w), scale.astype(jnp.float32).T
