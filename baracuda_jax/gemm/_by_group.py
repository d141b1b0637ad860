"""Products of rows with the matrix of the group that each is in.

Data flow: rows are brought into the order of their groups and cut into tiles, each of rows of one group and filled up with
zeros. A loop multiplies a tile with its matrix. So the arithmetic is that of all rows, and of one more tile for each group,
at most; no matrix is read for rows of others."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .._core.kernel import kernel
from .._core.wide import wide_dtype
from .._core.within import within
from ._product import product

TILE = 16, 1024  # rows of the smallest and of the largest
KERNEL_TILE = 32, 64, 128  # rows
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
    order, edges, first = _in_order(groups, every, size)
    in_order, edges, first = groups[order], edges[:-1], first[:-1]

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


def _in_order(groups, count, size):
    """The group of each row, `count` without one; the rows in the order of their groups; and how many rows, and tiles, are
    before each group and at last, the rows without one being a group too."""
    groups = jnp.where((groups >= 0) & (groups < count), groups.astype(jnp.int32), count)
    sizes = jnp.zeros(count + 1, jnp.int32).at[groups].add(1)
    order = jnp.argsort(groups, stable=True).astype(jnp.int32)
    return groups, order, _cumulated(sizes), _cumulated(-(-sizes // size))


def _cumulated(sizes):
    """How much is before each, and at last of all."""
    return jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(sizes)])


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
    """`by_group`, by the kernel where it has one."""
    k, n = a.shape[-1], b.shape[-2 if transpose_b else -1]
    if not _has_kernel(a, groups, b, k, n):
        return by_group(a, b, groups, transpose_b=transpose_b, precision=precision)
    batches, count = math.prod(b.shape[:-3]), b.shape[-3]
    flat = _of_all(groups.reshape(batches, -1), count)
    size = _kernel_size(flat.size, count * batches)
    _, order, edges, first = _in_order(flat, count * batches, size)
    operands = a.reshape(-1, k), b.reshape(-1, *b.shape[-2:]), order, edges, first
    dims = f"rk, {'gnk' if transpose_b else 'gkn'}, r, e, e -> rn"
    out = [jax.ShapeDtypeStruct((flat.size, n), a.dtype)]
    (y,) = kernel("grouped_products", dims, *operands, out=out, transposed=transpose_b, tile=size)
    return y.reshape(*groups.shape, n)


def native_sums_by_group(a, dy, groups, count, *, precision=None):
    """`sums_by_group`, by the kernel where it has one."""
    k, n = a.shape[-1], dy.shape[-1]
    if count == 0 or not _has_kernel(a, groups, dy, k, n):
        return sums_by_group(a, dy, groups, count, precision=precision)
    batch = groups.shape[:-1]
    batches = math.prod(batch)
    flat = _of_all(groups.reshape(batches, -1), count)
    _, order, edges, _ = _in_order(flat, count * batches, KERNEL_TILE[-1])
    out = [jax.ShapeDtypeStruct((count * batches, k, n), a.dtype)]
    (sums,) = kernel("grouped_sums", "rk, rn, r, e -> gkn", a.reshape(-1, k), dy.reshape(-1, n), order, edges, out=out)
    return sums.reshape(*batch, count, k, n)


def _has_kernel(a, groups, other, k, n):
    """Of 16-bit floats, whose lines are whole chunks of 16 bytes."""
    shapes = *a.shape, *groups.shape, *other.shape
    is_known = all(isinstance(size, int) for size in shapes)
    return is_known and 0 not in shapes and a.dtype.itemsize == 2 and k % 8 == 0 and n % 8 == 0


def _kernel_size(rows, count):
    """The smallest tile that holds the rows of a group, if these are even; at most the largest."""
    return next((size for size in KERNEL_TILE if rows <= size * count), KERNEL_TILE[-1])


def _of_batches(groups, count):
    """Those of all batches [batches, rows] at once, each with groups of its own."""
    batches, rows = groups.shape
    return tiles_of(_of_all(groups, count), count * batches, _size(rows, count))


def _of_all(groups, count):
    """The groups of the rows of all batches, each of which has its own."""
    batches = groups.shape[0]
    first = count * jnp.arange(batches, dtype=jnp.int32)[:, None]
    is_in = (groups >= 0) & (groups < count)
    groups = jnp.where(is_in, groups.astype(jnp.int32) + first, -1)
    return groups.reshape(-1)


def _taken(x, rows):
    return x.at[rows].get(mode="fill", fill_value=0)
