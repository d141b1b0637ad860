"""The kernel calls that the native bodies are made of."""

import math

import jax
import jax.numpy as jnp

from .._core.bits import words
from .._core.kernel import kernel
from .._core.take_along import take_along
from .._core.within import within
from ._arguments import MOST_SEGMENTS
from ._references import broadcast


def flat(x, axis):
    """[*batch, N, ...] as [*batch, N, D]."""
    shape = (*x.shape[: axis + 1], math.prod(x.shape[axis + 1 :]))
    return x if x.shape == shape else x.reshape(shape)


def result_type(x, axis, num_segments, dtype=None):
    """The type of a result: rows [*batch, N, D] with segments for rows."""
    return jax.ShapeDtypeStruct((*x.shape[:axis], num_segments, x.shape[-1]), dtype or x.dtype)


def unflat(y, like, axis):
    """[*batch, S, D] with the trailing dimensions of `like` [*batch, N, ...]."""
    shape = (*y.shape[: axis + 1], *like.shape[axis + 1 :])
    return y if y.shape == shape else y.reshape(shape)


def kernel_ids(ids):
    """The kernels read int32 and int64. No id that is too large for those is the id of a segment."""
    if ids.dtype in (jnp.int32, jnp.int64):
        return ids
    if ids.dtype in (jnp.uint32, jnp.uint64):
        return jnp.minimum(ids, MOST_SEGMENTS).astype(jnp.int32)
    return ids.astype(jnp.int32)


def short_ids(ids, num_segments):
    """As int32, -1 for what is no segment's and would not fit."""
    ids = kernel_ids(ids)
    return ids if ids.dtype == jnp.int32 else jnp.where(within(ids, num_segments), ids, -1).astype(jnp.int32)


def index_of(ids, num_segments, sorted, index=()):
    """perm and offsets: the rows of segment s are perm[offsets[s]:offsets[s + 1]]; sorted rows need no perm.
    They are `index` where that is known."""
    if index:
        batch = max((x.shape[:-1] for x in index), key=len)
        return [broadcast(x, batch) for x in index]
    rows, batches = ids.shape[-1], math.prod(ids.shape[:-1])
    shape = lambda last: jax.ShapeDtypeStruct((*ids.shape[:-1], last), jnp.uint32)
    out = [shape(0 if sorted else rows), shape(num_segments + 1)]
    # The sort's keys, twice, and row numbers; twice a word of 4 or 8 bytes for each of a tile's 256 digits, of 4096 rows;
    # the histograms of all digits.
    # A number of batches or segments that is not known, in an export for any, may be large.
    keys = batches * (num_segments + 1)
    key = 4 if isinstance(keys, int) and keys <= 2**32 else 8
    workspace = 0 if sorted else rows * (2 * key + 4 + 1) + 2**16
    operand = kernel_ids(ids)
    return kernel("segment_index", "...n -> ...p, ...q", operand, out=out, workspace=workspace, sorted=sorted)


def is_few(entries, segments, columns):
    """Whether a block has a look at all rows of a batch: `is_few` of ffi/patterns/segment_few_cuda.h. Sums of a batch of few
    rows have an order of their own, which other batches do not change."""
    return (
        all(isinstance(size, int) for size in (entries, segments, columns))
        and entries <= 2**14
        and segments <= 2**15
        and (entries + segments) * columns <= 2**21
    )


# Reductions that need no more of a segment's rows than their number: `by_buckets` of ffi/kernels/segment.h.
BY_BUCKETS = (
    "segment_sum", "segment_mean_of_sources", "segment_weighted_sum", "segment_sum_of_arg", "segment_sgd_step",
    "segment_adagrad_step",
)  # fmt: skip


def is_by_buckets(target, entries, segments, rows):
    """Whether the kernel orders a medium number of rows [*batch, N, D] itself, by their ids: `is_by_buckets` of
    ffi/patterns/segment_buckets_cuda.h. How many batches there are has no part in it, as in `is_few`."""
    columns, itemsize = rows.shape[-1], rows.dtype.itemsize
    return (
        target in BY_BUCKETS
        and jnp.issubdtype(rows.dtype, jnp.floating)
        and itemsize <= 4
        and all(isinstance(size, int) for size in (entries, segments, columns))
        and columns % (16 // itemsize) == 0
        and 2**17 < entries <= 2**20
        and 2**10 <= segments <= 2**17
        and segments * columns <= 2**25
        and not is_few(entries, segments, columns)
    )


def is_ordered_by_blocks(ids, num_segments, rows):
    """Whether the kernels order few rows [*batch, N, D] themselves, by their ids, which each of a batch's blocks does. Where
    there are more batches than multiprocessors, an index costs less."""
    batches = math.prod(rows.shape[:-2])
    return isinstance(batches, int) and batches <= 2**7 and is_few(ids.shape[-1], num_segments, rows.shape[-1])


def is_even(entries, count, length):
    """Whether there are `count` times `length` entries, and not only a shard of them. 0 is a length that is not known."""
    known = all(isinstance(size, int) for size in (entries, count, length))
    return known and 0 < entries == count * length


def _has_even_kernel(rows, entries, segments, length):
    """Whether segments of so many entries are reduced without an index: chunks are better where they are shorter than what
    a lane reads at a time, or so long that a block would take long for one."""
    is_float = jnp.issubdtype(rows.dtype, jnp.floating)
    return is_float and is_even(entries, segments, length) and 4 <= length <= 512


def order_of(ids, num_segments, rows, sorted, index):
    """What the kernels know of the order of rows [*batch, N, D]: an index, or, of few rows, ids instead of `perm`."""
    if index or not is_ordered_by_blocks(ids, num_segments, rows):
        return index_of(ids, num_segments, sorted, index)
    return by_ids(ids, num_segments)


def is_by_rows(num_segments, rows, sorted):
    """Whether a gradient writes rows [*batch, N, D] in their own order, by their ids, and not in that of their segments:
    narrow ones, where what the segments have comes from the cache."""
    most_row_bytes, most_bytes = 64, 2**24
    row_bytes = rows.shape[-1] * rows.dtype.itemsize
    if not all(isinstance(size, int) for size in (num_segments, row_bytes)):
        return False
    return row_bytes <= most_row_bytes and (sorted or num_segments * row_bytes <= most_bytes)


def ids_of_rows(ids, num_segments, rows, sorted, order):
    """What a kernel that reduces rows by an index and writes them by ids has besides, as (array, dimensions)."""
    has_index, batch = order[0].dtype == jnp.uint32, order[1].shape[:-1]
    if not has_index or ids.ndim > len(batch) + 1 or not is_by_rows(num_segments, rows, sorted):
        return []
    return [(broadcast(short_ids(ids, num_segments), batch), "...n")]


def by_ids(ids, num_segments):
    """What kernels that order rows themselves know of these."""
    return short_ids(ids, num_segments), jnp.zeros((*ids.shape[:-1], 0), jnp.uint32)


def counts_of(ids, num_segments, rows, sorted, index=()):
    """int32 [..., S], the number of rows of each segment: by the index where a reduction of these rows has one."""
    if index or not is_ordered_by_blocks(ids, num_segments, rows):
        return jnp.diff(index_of(ids, num_segments, sorted, index)[1], axis=-1).astype(jnp.int32)
    ones, axis = jnp.ones(ids.shape, jnp.int32), ids.ndim - 1
    (counts,) = reduce(
        "segment_sum", ones, ids, [ones.dtype], axis=axis, num_segments=num_segments, sorted=sorted, empty_bits=0
    )
    return counts


def index_dtype(rows):
    return jnp.int32 if rows < 2**31 else jnp.uint32


def bucket_workspace(entries, segments, rows):
    """Bytes of what the kernels keep of a batch of so many rows [*batch, N, D] by buckets, as `bucket_grid` of
    ffi/patterns/segment_buckets_cuda.h makes them; a wave may have three quarters of these. Entries; for each tile where
    buckets begin; for each chunk three words and, of each segment, a count and a state of float32, which for each 16 bytes
    of a row may have one value more."""
    columns, width = rows.shape[-1], 16 // rows.dtype.itemsize
    tile = 1024
    while tile * 128 < entries:
        tile *= 2
    tiles, buckets = -(-entries // tile), 4 * 132
    segments_of_bucket = min(max(2, -(-(segments + 1) // (3 * 132))), 256)
    slots = 2 * entries // min(max(8 * -(-entries // buckets), 512), 3072)
    words = buckets + tiles * tile + (buckets + 1) * tiles
    words += slots * (3 + segments_of_bucket * (1 + columns // width * (width + 1)))
    return 4 * words + 6 * 256


def reduce_workspace(entries, segments, rows, values=2):
    """Bytes of what the CUDA driver keeps for a batch of rows [*batch, N, D]: 12 for each block, two states for each of its
    columns, and one for those of each run of blocks. `segment_grid` and `segment_runs` of ffi/patterns/segment_*_cuda.h say
    how many there are. A state has at most so many values: most have one and a row number."""
    columns, itemsize = rows.shape[-1], rows.dtype.itemsize
    if is_few(entries, segments, columns):
        return 0
    width = 16 // itemsize
    width = width if columns % width == 0 else 1
    lanes = 1
    while lanes < 32 and lanes * width < columns:
        lanes *= 2
    tiles, workers = -(-columns // (lanes * width)), 256 // lanes
    parts = lambda count: -(-(entries + segments) * lanes * tiles // count)
    items = min(max(parts(2**18), min(parts(2**17), 32), 8), 1024, 8192 // workers)
    blocks = -(-(entries + segments) // (items * workers))
    state = values * (8 if itemsize == 8 else 4)
    runs = (blocks - 1) // 64
    states = 2 * blocks + (runs if runs >= 8 else 0)
    return blocks * 12 + states * tiles * lanes * width * state + 5 * 256


def reduce(
    target, data, ids, out, *, axis, num_segments, sorted=False, index=(), sources=None, length=0, repeats=0, more=(),
    values=2, **attributes
):  # fmt: skip
    """Calls a reduction by ids, whose index may be known. `out` are the dtypes of its results; `sources` [..., E] the rows
    of data that the ids are for, if these are not the rows themselves: int32 or uint32, of which those that name no row are
    skipped. If it is not 0, `length` is the number of neighboring sources that each segment has, and `repeats` the number of
    neighboring sources that name each row. `more` has other operands, as (array, dimensions); a state has at most so many
    `values`."""
    rows = flat(data, axis)
    entries = rows.shape[axis] if sources is None else sources.shape[-1]
    if sources is not None and rows.shape[axis] == 0:  # kernels load a row before they know whether it is one
        one = lambda x: jnp.zeros((*x.shape[:axis], 1, x.shape[-1]), x.dtype)
        rows, more = one(rows), [(one(x) if dims == "...nd" else x, dims) for x, dims in more]
    workspace = reduce_workspace(entries, num_segments, rows, values)
    if sources is not None and _has_even_kernel(rows, entries, num_segments, length):
        order, workspace = (jnp.zeros((*ids.shape[:-1], 0), jnp.uint32),) * 2, 0
    elif not index and not sorted and is_by_buckets(target, entries, num_segments, rows):
        order = by_ids(ids, num_segments)
        workspace = bucket_workspace(entries, num_segments, rows)
    else:
        order = order_of(ids, num_segments, rows, sorted, index)
    operands = [(rows, "...nd"), *zip(order, ("...p", "...q"), strict=True)]
    if sources is not None:
        if order[0].dtype == jnp.int32 and is_even(entries, rows.shape[axis], repeats):
            operands.append((sources[..., :0], "...r"))
        else:
            operands.append((_in_order(order[0], sources), "...e"))
    arrays, dims = zip(*operands, *more, strict=True)
    results = kernel(
        target, f"{', '.join(dims)} -> {', '.join(['...sd'] * len(out))}", *arrays, **attributes,
        out=[result_type(rows, axis, num_segments, dtype) for dtype in out],
        workspace=workspace,
    )  # fmt: skip
    return [unflat(y, data, axis) for y in results]


def _in_order(perm, sources):
    """In the order of an index's entries; ids are no index, nor is the one of sorted ids an order."""
    if perm.dtype != jnp.uint32 or perm.shape[-1] == 0:
        return sources
    return take_along(perm[..., None], sources[..., None])[..., 0]


def gradient(target, ids, dy, *, axis, sorted, index=(), counts=(), elements=(), data=(), **_):
    """Calls a backward target, whose result has a row for each id. Its operands are `data`, shaped as the result, the
    order, `counts`, one for each segment, `elements`, shaped as dy, and dy."""
    arrays = [flat(x, axis) for x in (*data, *elements, dy)]
    segments, rows = dy.shape[axis], arrays[-1]
    by_rows = is_by_rows(segments, rows, sorted)
    order = by_ids(ids, segments) if by_rows else order_of(ids, segments, rows, sorted, index)
    dims = ", ".join(
        ["...nd"] * len(data) + ["...p", "...q"] + ["...s"] * len(counts) + ["...sd"] * (len(elements) + 1)
    )
    operands = (*arrays[: len(data)], *order, *counts, *arrays[len(data) :])
    out = result_type(arrays[-1], axis, ids.shape[-1])
    return unflat(kernel(target, f"{dims} -> ...nd", *operands, out=[out])[0], dy, axis)


def gathered(x, ids, *, axis, fill=b""):
    """Each row's x [*batch, S, ...], read wherever it is; for rows that are dropped, the number with the bytes `fill`."""
    rows = flat(x, axis)
    out, at = result_type(rows, axis, ids.shape[-1]), short_ids(ids, x.shape[axis])
    (y,) = kernel("take_rows", "...nd, ...m -> ...md", rows, at, out=[out], fill=words(fill))
    return unflat(y, x, axis)


def each_row(x, ids, **params):
    """As `gathered`, but unless rows are narrow each x is read once, in the order of an index, which the sum that this is
    the gradient of has."""
    return gradient("segment_sum_backward", ids, x, **params)
