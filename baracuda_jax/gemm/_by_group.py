"""Products of rows with the matrix of the group that each is in.

Data flow: rows are brought into the order of their groups and cut into tiles, each of rows of one group and filled up with
zeros. A loop multiplies a tile with its matrix. So the arithmetic is that of all rows, and of one more tile for each group,
at most; no matrix is read for rows of others. The kernels read rows where they are, by their order, and write them there."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .._core.kernel import kernel
from .._core.wide import wide_dtype
from .._core.within import within
from ..segment._kernels import index_of
from ._product import product

TILE = 16, 1024  # rows of the smallest and of the largest
KERNEL_TILE = 32, 64, 128  # rows
CHUNK = 8  # elements of half precisions that the kernels load at once
FEW = 2**24  # elements of all rows for all groups, which take less time on CUDA than a loop's launches


class Tiles(NamedTuple):
    """Of rows [R]. What is past the end of an array stands for nothing."""

    rows: Array  # [tiles, rows of a tile]
    group: Array  # [tiles]
    index: Array  # [R], where each row is among the rows of all tiles


def tiles_of(groups, count):
    """The tiles of rows whose groups [batches, rows] are integers; those outside [0, count) are in none. Each batch has
    groups of its own."""
    batches, size = groups.shape[0], _size(groups.shape[1], count)
    before = count * jnp.arange(batches, dtype=jnp.int32)[:, None]
    every = count * batches
    groups = jnp.where(within(groups, count), groups.astype(jnp.int32) + before, every).reshape(-1)
    rows = groups.shape[0]
    # As many as groups can have, of which no more than there are rows have any.
    is_known = isinstance(rows, int) and isinstance(every, int)
    total = rows // size + (min(every, rows) if is_known else every)
    order = jnp.argsort(groups, stable=True).astype(jnp.int32)
    in_order = groups[order]
    sizes = jnp.zeros(every, jnp.int32).at[groups].add(1, mode="drop")
    edges, first = _cumulated(sizes), _cumulated(-(-sizes // size))  # rows, and tiles, before each group

    tile = jnp.arange(total, dtype=jnp.int32)
    # How many groups have all of their tiles before this one.
    group = jnp.cumsum(jnp.zeros(total, jnp.int32).at[first[1:]].add(1, mode="drop"))
    position = (edges[group] + (tile - first[group]) * size)[:, None] + jnp.arange(size, dtype=jnp.int32)[None]
    is_in = (position < edges[jnp.minimum(group + 1, every)][:, None]) & (group < every)[:, None]
    index = first[in_order] * size + jnp.arange(rows, dtype=jnp.int32) - edges[in_order]
    index = jnp.where(in_order < every, index, total * size)
    return Tiles(
        jnp.where(is_in, order.at[position].get(mode="clip"), rows),
        jnp.minimum(group, every - 1),
        jnp.zeros_like(order).at[order].set(index, unique_indices=True),
    )


def _cumulated(sizes):
    """How much is before each, and at last of all."""
    zero = jnp.zeros((*sizes.shape[:-1], 1), jnp.int32)
    return jnp.concatenate([zero, jnp.cumsum(sizes, -1)], -1)


def _size(rows, count):
    """The power of two next to the rows of a group, if these are even."""
    smallest, largest = TILE
    if not (isinstance(rows, int) and isinstance(count, int)):  # an export for any size
        return largest
    return min(max(1 << (max(rows // count, 1) - 1).bit_length(), smallest), largest)


def by_group(a, b, groups, *, transpose_b=False, precision=None):
    """y[..., i, :] = a[..., i, :] b[..., groups[..., i], :, :], of a's dtype, and 0 where there is no such matrix. The
    matrices may lack the last of the batches that rows have."""
    shape, k, n = groups.shape, a.shape[-1], b.shape[-2 if transpose_b else -1]
    if 0 in (*shape, *b.shape):
        return jnp.zeros((*shape, n), a.dtype)
    batches, count = math.prod(b.shape[:-3]), b.shape[-3]
    operands = a.reshape(batches, -1, k), b.reshape(batches, count, *b.shape[-2:]), groups.reshape(batches, -1)
    how = dict(transpose_b=transpose_b, precision=precision)
    by_tiles, at_once = functools.partial(_by_tiles, **how), functools.partial(_at_once, **how)
    work = groups.size * count * max(k, n)
    is_few = isinstance(work, int) and work <= FEW
    y = jax.lax.platform_dependent(*operands, cuda=at_once, default=by_tiles) if is_few else by_tiles(*operands)
    return y.reshape(*shape, n)


def _by_tiles(a, b, groups, *, transpose_b, precision):
    tiles = tiles_of(groups, b.shape[1])
    b = b.reshape(-1, *b.shape[2:])
    dims = ((1,), (1 if transpose_b else 0,)), ((), ())
    multiplied = lambda tile: product(tile[0], b[tile[1]], dims, precision).astype(a.dtype)
    y = jax.lax.map(multiplied, (_taken(a.reshape(-1, a.shape[-1]), tiles.rows), tiles.group))
    return _taken(y.reshape(-1, y.shape[-1]), tiles.index).reshape(*groups.shape, -1)


def _at_once(a, b, groups, *, transpose_b, precision):
    """All rows by all matrices, of which each row keeps its own."""
    rows = jnp.broadcast_to(a[:, None], (*b.shape[:2], *a.shape[1:]))
    y = product(rows, b, (((3,), (3 if transpose_b else 2,)), ((0, 1), (0, 1))), precision).astype(a.dtype)
    is_in = within(groups, b.shape[1])
    own = jnp.take_along_axis(y, jnp.where(is_in, groups, 0)[:, None, :, None], axis=1)[:, 0]
    return jnp.where(is_in[..., None], own, 0)


def sums_by_group(a, dy, groups, count, *, precision=None):
    """The sums of the outer products of rows of a and dy over those of each group: [..., count, K, N], of a's dtype."""
    batch, shape = groups.shape[:-1], (a.shape[-1], dy.shape[-1])
    sums = jnp.zeros((*batch, count, *shape), wide_dtype(a.dtype))
    if 0 in (*groups.shape, *sums.shape):
        return sums.astype(a.dtype)
    tiles = tiles_of(groups.reshape(math.prod(batch), -1), count)
    dims = ((0,), (0,)), ((), ())

    def add(sums, tile):
        rows, given, group = tile
        return sums.at[group].add(product(rows, given, dims, precision)), None

    of = lambda x: _taken(x.reshape(-1, x.shape[-1]), tiles.rows)
    sums, _ = jax.lax.scan(add, sums.reshape(-1, *shape), (of(a), of(dy), tiles.group))
    return sums.reshape(*batch, count, *shape).astype(a.dtype)


def native_by_group(a, b, groups, *, transpose_b=False, precision=None):
    """`by_group`, by the kernel, whose products of float32 and float64 are exact whatever the precision."""
    shape, n = groups.shape, b.shape[-2 if transpose_b else -1]
    batch, count = b.shape[:-3], b.shape[-3]
    rows = math.prod(shape[len(batch) :])  # also those of the batches that have the same matrices
    order, edges = _in_order(groups.reshape(*batch, rows), count)
    size = _kernel_tile(rows, count)
    first = _cumulated(-(-jnp.diff(edges) // size))
    dims = f"...rk, {'...gnk' if transpose_b else '...gkn'}, ...r, ...e, ...e -> ...rn"
    a, b = _in_chunks(a.reshape(*batch, rows, a.shape[-1]), -1), _in_chunks(b, -1, -2)
    out = [jax.ShapeDtypeStruct((*a.shape[:-1], b.shape[-2 if transpose_b else -1]), a.dtype)]
    (y,) = kernel("grouped_products", dims, a, b, order, edges, first, out=out, transposed=transpose_b, tile=size)
    return y[..., :n].reshape(*shape, n)


def native_sums_by_group(a, dy, groups, count, *, precision=None):
    """`sums_by_group`, by the kernel."""
    k, n = a.shape[-1], dy.shape[-1]
    order, edges = _in_order(groups, count)
    a, dy = _in_chunks(a, -1), _in_chunks(dy, -1)
    out = [jax.ShapeDtypeStruct((*groups.shape[:-1], count, a.shape[-1], dy.shape[-1]), a.dtype)]
    (sums,) = kernel("grouped_sums", "...rk, ...rn, ...r, ...e -> ...gkn", a, dy, order, edges, out=out)
    return sums[..., :k, :n]


def _in_order(groups, count):
    """Rows in the order of their groups, and how many precede each group; the rows without one are a group at the end."""
    order, offsets = index_of(groups, count, False)
    rows = jnp.full((*offsets.shape[:-1], 1), groups.shape[-1], jnp.int32)
    return order, jnp.concatenate([offsets.astype(jnp.int32), rows], -1)


def _kernel_tile(rows, count):
    """The smallest tile that holds the rows of a group, if these are even; at most the largest."""
    is_known = isinstance(rows, int) and isinstance(count, int)
    return next((size for size in KERNEL_TILE if is_known and rows <= size * count), KERNEL_TILE[-1])


def _in_chunks(x, *axes):
    """Of half precisions, with zeros up to whole chunks."""
    if x.dtype.itemsize != 2:
        return x
    widths = [(0, 0)] * x.ndim
    for axis in axes:
        widths[axis] = (0, -x.shape[axis] % CHUNK)
    return x if all(width == (0, 0) for width in widths) else jnp.pad(x, widths)


def _taken(x, rows):
    return x.at[rows].get(mode="fill", fill_value=0)
