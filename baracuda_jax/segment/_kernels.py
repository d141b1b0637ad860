"""The kernel calls that the native bodies are made of."""

import math

import jax
import jax.numpy as jnp

from .._core.bits import words
from .._core.kernel import kernel
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
    # A number of batches that is not known, in an export for any, may be large.
    key = 4 if isinstance(batches, int) and batches * (num_segments + 1) <= 2**32 else 8
    workspace = 0 if sorted else rows * (2 * key + 4 + 1) + 2**16
    operand = kernel_ids(ids)
    return kernel("segment_index", "...n -> ...p, ...q", operand, out=out, workspace=workspace, sorted=sorted)


def counts_of(offsets):
    return jnp.diff(offsets, axis=-1).astype(jnp.int32)


def index_dtype(rows):
    return jnp.int32 if rows < 2**31 else jnp.uint32


def _reduce_workspace(rows, segments, columns, itemsize):
    """Bytes of what the CUDA driver keeps: 8 for each block, two states for each of its columns, and one for those of each
    run of blocks. `segment_grid` and `segment_runs` of ffi/patterns/segment_*_cuda.h say how many there are. A state has
    at most a value and a row number."""
    width = 16 // itemsize
    width = width if columns % width == 0 else 1
    lanes = 1
    while lanes < 32 and lanes * width < columns:
        lanes *= 2
    tiles, workers = -(-columns // (lanes * width)), 256 // lanes
    parts = lambda count: -(-(rows + segments) * lanes * tiles // count)
    items = min(max(parts(2**18), min(parts(2**17), 32), 8), 1024, 8192 // workers)
    blocks = -(-(rows + segments) // (items * workers))
    state = 16 if itemsize == 8 else 8
    runs = (blocks - 1) // 64
    states = 2 * blocks + (runs if runs >= 8 else 0)
    return 0 if blocks == 1 else blocks * 8 + states * tiles * lanes * width * state + 4 * 256


def reduce(target, data, index, out, *, axis, num_segments, sources=None, more=(), **attributes):
    """Calls a reduction. `out` are the dtypes of its results; `sources` [..., E] the rows of data that the index's entries
    name, if these are not the rows themselves; `more` has other operands, as (array, dimensions)."""
    rows = flat(data, axis)
    operands = [(rows, "...nd"), *zip(index, ("...p", "...q"), strict=True)]
    operands += [] if sources is None else [(sources, "...e")]
    arrays, dims = zip(*operands, *more, strict=True)
    entries = rows.shape[axis] if sources is None else sources.shape[-1]
    results = kernel(
        target, f"{', '.join(dims)} -> {', '.join(['...sd'] * len(out))}", *arrays, **attributes,
        out=[result_type(rows, axis, num_segments, dtype) for dtype in out],
        workspace=_reduce_workspace(entries, num_segments, rows.shape[-1], rows.dtype.itemsize),
    )  # fmt: skip
    return [unflat(y, data, axis) for y in results]


def gradient(target, ids, dy, *, axis, sorted, index=(), counts=(), elements=(), data=(), **_):
    """Calls a backward target, whose result has a row for each id. Its operands are `data`, shaped as the result, the
    index, `counts`, one for each segment, `elements`, shaped as dy, and dy."""
    index = index_of(ids, dy.shape[axis], sorted, index)
    dims = ", ".join(
        ["...nd"] * len(data) + ["...p", "...q"] + ["...s"] * len(counts) + ["...sd"] * (len(elements) + 1)
    )
    arrays = [flat(x, axis) for x in (*data, *elements, dy)]
    operands = (*arrays[: len(data)], *index, *counts, *arrays[len(data) :])
    out = result_type(arrays[-1], axis, ids.shape[-1])
    return unflat(kernel(target, f"{dims} -> ...nd", *operands, out=[out])[0], dy, axis)


def gathered(x, ids, *, axis, fill=b""):
    """Each row's x [*batch, S, ...], read wherever it is; for rows that are dropped, the number with the bytes `fill`."""
    rows = flat(x, axis)
    at = kernel_ids(ids)
    if at.dtype == jnp.int64:
        at = jnp.where(within(at, x.shape[axis]), at, -1).astype(jnp.int32)
    out = result_type(rows, axis, ids.shape[-1])
    (y,) = kernel("take_rows", "...nd, ...m -> ...md", rows, at, out=[out], fill=words(fill))
    return unflat(y, x, axis)


def each_row(x, ids, **params):
    """As `gathered`, but each x is read once, in the order of an index, which the sum that this is the gradient of has."""
    return gradient("segment_sum_backward", ids, x, **params)
