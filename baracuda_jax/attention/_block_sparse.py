"""Attention in which each block of queries sees the blocks of keys that it lists."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..segment import segment_take
from ._attend import NOWHERE
from ._call import heads, static
from ._decode import slopes_of
from ._varlen import listed


@api
def sdpa_block_sparse(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    key_blocks: ArrayLike,
    slopes: ArrayLike | None = None,
    block_size: int | tuple[int, int] = 64,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    alignment: Literal["top_left", "bottom_right"] = "top_left",
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    return_lse: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Scaled dot-product attention in which each block of queries sees the blocks of keys that it lists.

    Formula:
        `sdpa` with a mask: with blocks of m queries and n keys, query i sees the keys j of which key_blocks[i // m] has j //
        n, and that causal attention and a window leave to it. A block that is listed twice counts twice. Slopes add slopes
        (j - i - o) to the scores, with o as `alignment` says.

    Args:
        query: floats [..., queries, heads, d].
        key: array of query's dtype, [..., keys, heads of keys, d]. The heads of queries are a multiple of those of keys.
        value: array of query's dtype, [..., keys, heads of keys, d of values].
        key_blocks: integers [blocks of queries, most blocks of keys of one], for all batches and heads. Numbers of no block
            of keys, such as -1, fill up shorter lists.
        slopes: floats [heads], those of `alibi`; None for none.
        block_size: static integers, the number of queries and of keys in a block, of which the last may have fewer; one for
            both.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool.
        alignment: static "top_left", where the first query is at the first key, or "bottom_right", where the last is at the
            last.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        return_lse: static bool, whether lse is returned too.
        implementation: "native" (kernels of `flash_sdpa_varlen`; blocks are gathered, and their gradients added up, by
            kernels too), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y, of query's dtype, [..., queries, heads, d of values]; with `return_lse` a tuple of it and lse, [..., queries,
        heads], float32, or float64 for float64. Both have derivatives. A query that sees no key has y = 0, lse = -inf and
        gradient 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `flash_sdpa_varlen`. Time and memory are those of the listed blocks, whose keys are gathered. Their
    gradients are added up in order: the same bits every time.

    Source: flashinfer.BlockSparseAttentionWrapper; torch's flex_attention with a BlockMask.
    """
    op = "sdpa_block_sparse"
    query, key, value = heads(op, query, key, value)
    sizes = checks.integers(op, "block_size", block_size, 2, 1)
    key_blocks = checks.array(op, "key_blocks", key_blocks)
    checks.dtype(op, "key_blocks", key_blocks, checks.INTEGERS)
    count = -(-query.shape[-3] // sizes[0])
    if key_blocks.ndim != 2 or key_blocks.shape[0] != count:
        raise ValueError(
            f"{op}: key_blocks must be [{count}, most blocks of keys of one], a row for each {sizes[0]} of the "
            f"{query.shape[-3]} queries, got shape {key_blocks.shape}"
        )
    checks.positions(op, "key_blocks", key_blocks.size * sizes[1], "keys")
    slopes = None if slopes is None else slopes_of(op, slopes, query)
    spec, alignment = static(
        op, query, scale=scale, is_causal=is_causal, alignment=alignment, window=window, softcap=softcap, block_size=512
    )  # fmt: skip
    if not isinstance(alignment, str):
        raise TypeError(f'{op}: alignment must be "top_left" or "bottom_right", got {alignment!r}')
    return_lse = checks.flag(op, "return_lse", return_lse)
    blocks, ids = _blocks(key, value, key_blocks, size=sizes[1])
    keys = [segment_take(x, ids, implementation=implementation) for x in blocks]
    params = dict(
        spec=spec, offset=key.shape[-3] - query.shape[-3] if alignment == "bottom_right" else 0, save=return_lse
    )
    y, lse = _attend(
        query, *keys, key_blocks, slopes, sizes=sizes, length=key.shape[-3], implementation=implementation, **params
    )
    return (y, lse) if return_lse else y


def _known(blocks, count):
    """As int32, -1 for what is no block's number."""
    exists = (
        (blocks >= 0) & (blocks <= min(max(count - 1, 0), jnp.iinfo(blocks.dtype).max)) if count else blocks != blocks
    )
    return jnp.where(exists, jnp.where(exists, blocks, 0).astype(jnp.int32), -1)


@compiled("size")
def _blocks(key, value, key_blocks, *, size):
    """((keys and values by block, [..., blocks, size, heads, d]), the blocks that are listed, for each batch)"""
    batch, length = key.shape[:-3], key.shape[-3]
    count = -(-length // size)

    def cut(x):
        x = jnp.pad(x, [(0, count * size - length if i == x.ndim - 3 else 0) for i in range(x.ndim)])
        return explicit.reshape(x, *batch, count, size, *x.shape[-2:])

    ids = _known(key_blocks, count)
    return (cut(key), cut(value)), jnp.broadcast_to(ids.reshape(ids.size), (*batch, ids.size))


@compiled("sizes", "length", "spec", "offset", "save", "implementation")
def _attend(query, k, v, key_blocks, slopes, *, sizes, length, spec, offset, save, implementation):
    """As many sequences as blocks of queries, whose keys are those that are listed for them, at positions from that of the
    first query of the block on."""
    *batch, t, _, _ = query.shape
    (rows, count), (of_queries, of_keys) = key_blocks.shape, sizes
    keys = [explicit.reshape(x, *batch, rows * count * of_keys, *x.shape[-2:]) for x in (k, v)]
    ids = _known(key_blocks, -(-length // of_keys))
    at = lambda axis, shape: jax.lax.broadcasted_iota(jnp.int32, shape, axis)
    j = ids[:, :, None] * of_keys + at(2, (1, 1, of_keys))
    first = at(0, (rows, 1, 1)) * of_queries + offset
    positions = jnp.where((ids[:, :, None] >= 0) & (j < length), j - first, NOWHERE).reshape(rows * count * of_keys)
    index = jnp.arange(rows + 1, dtype=jnp.int32)
    arrays = query, *keys, jnp.minimum(index * of_queries, t), index * (count * of_keys), slopes, positions
    params = dict(most=(of_queries, count * of_keys), spec=spec, alignment="top_left", save=save)
    return listed(*arrays, **params, implementation=implementation)


def _draw(shape, keys, groups, values, blocks, slopes=False):
    *batch, _, _, d = shape

    def draw(rng):
        arrays = (
            rng.standard_normal(shape), rng.standard_normal((*batch, keys, groups, d)),
            rng.standard_normal((*batch, keys, groups, values)), np.array(blocks, np.int32),
        )  # fmt: skip
        return (*arrays, rng.uniform(0, 1, shape[-2])) if slopes else arrays

    return draw


compose(
    "sdpa_block_sparse",
    family="attention",
    category=OpCategory.ATTENTION,
    public=sdpa_block_sparse,
    cases=(
        Case(
            "grouped heads, causal",
            _draw((2, 6, 4, 3), 8, 2, 2, [[0, -1], [1, 0], [-1, -1]]),
            dict(block_size=2, is_causal=True, alignment="bottom_right", softcap=3.0),
        ),
        Case(
            "blocks that are not whole, and lse",
            _draw((5, 2, 4), 7, 1, 4, [[2, 0], [1, 9]]),
            dict(block_size=(3, 3), window=(4, 2), return_lse=True),
        ),
        Case(
            "slopes",
            _draw((2, 6, 2, 3), 6, 1, 3, [[1, 0], [-1, 1], [2, 0]], slopes=True),
            dict(block_size=2, is_causal=True),
        ),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "key", "value", "key_blocks", "slopes"),
    outputs=("y", "lse"),
    differentiable=("query", "key", "value", "slopes"),
    constant={"key_blocks": "numbers of blocks are integers"},
    made_of=("segment_take", "flash_sdpa_varlen"),
)
