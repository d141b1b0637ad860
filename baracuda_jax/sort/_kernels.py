"""The kernel calls that the native bodies are made of. They go along the last axis; here any may be meant."""

import math

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.take_along import take_along


def sort(x, *, axis, descending, k=None, indices):
    """The first k along the axis, or all, and where they were."""
    rows = jnp.moveaxis(x, axis, -1)
    n = rows.shape[-1]
    k = n if k is None else k
    dtypes = [x.dtype, jnp.int32][: 2 if indices else 1]
    out = [jax.ShapeDtypeStruct((*rows.shape[:-1], k), dtype) for dtype in dtypes]
    dims = f"...n -> {', '.join(['...k'] * len(out))}"
    workspace = _workspace(rows, indices or k < n)
    results = kernel("sort", dims, rows, out=out, workspace=workspace, descending=descending)
    return [jnp.moveaxis(y, -1, axis) for y in results]


def order_statistics(x, ranks):
    """The elements of the last axis that a stable ascending sort puts at these ranks, and where they were."""
    m = ranks.shape[-1]
    out = [jax.ShapeDtypeStruct((*x.shape[:-1], m), dtype) for dtype in (x.dtype, jnp.int32)]
    workspace = _workspace(x, True, m)
    return kernel("order_statistics", "...n, ...m -> ...m, ...m", x, ranks, out=out, workspace=workspace)


def take(x, index, axis):
    """x from where the index says, along the axis."""
    rows, index = jnp.moveaxis(x, axis, -1)[..., None], jnp.moveaxis(index, axis, -1)[..., None]
    return jnp.moveaxis(take_along(index, rows)[..., 0], -1, axis)


def scatter(index, dy, count, axis, *, unique):
    """Zeros, `count` along the axis, with dy added where the index says; `unique`: no position twice."""
    index, dy = jnp.moveaxis(index, axis, -1), jnp.moveaxis(dy, axis, -1)
    out = jax.ShapeDtypeStruct((*dy.shape[:-1], count), dy.dtype)
    workspace = _parted_workspace(dy.shape[-1], dy.dtype.itemsize) if unique else 0
    (dx,) = kernel("scatter_along", "...m, ...m -> ...n", index, dy, out=[out], workspace=workspace, unique=unique)
    return jnp.moveaxis(dx, -1, axis)


def argextremum(x, *, axis, is_max):
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    inner = math.prod(x.shape[axis + 1 :])
    out = jax.ShapeDtypeStruct((*x.shape[:axis], inner), jnp.int32)
    rows = x.reshape((*x.shape[: axis + 1], inner))
    workspace = _parts_workspace(math.prod(x.shape[:axis]), x.shape[axis], inner, x.dtype.itemsize)
    (index,) = kernel("argextremum", "...nd -> ...d", rows, out=[out], workspace=workspace, is_max=is_max)
    return index.reshape(shape)


def _workspace(x, positions, ranks=0):
    """Bytes of what the CUDA drivers keep for each row that does not fit into a block: the keys twice, the numbers of the
    elements (of which a sort of keys alone needs fewer), the counters of CUB, and what is known of each rank. Rows that
    are few are sorted as one, by keys that have the row's number too (ffi/patterns/sort_large_cuda.h)."""
    *batch, n = x.shape
    itemsize = x.dtype.itemsize
    if isinstance(n, int) and n <= (16384 if itemsize == 8 else 32768):
        return 0
    is_few = not all(isinstance(size, int) for size in batch) or math.prod(batch) <= 64
    key = (4 if itemsize < 4 else 8) if is_few else max(itemsize, 2)
    return n * (2 * key + (12 if positions else 4)) + n // 2 + 65536 + 8 * ranks


def _parts_workspace(rows, count, inner, itemsize):
    """Bytes of the bests of each slice's parts, into which the CUDA driver cuts few long slices (arg_of_slices of
    ffi/patterns/argextremum_cuda.h). With fewer bytes there are fewer parts."""
    if not all(isinstance(size, int) for size in (rows, count, inner)) or not rows * inner:
        return 0  # in an export for any size
    most, shortest = (1056, 4096) if inner == 1 else (540672, 64)
    parts = min(-(-most // (rows * inner)), count // shortest)
    return parts * inner * (16 if itemsize == 8 else 8) + 256 if parts > 1 else 0


def _parted_workspace(items, itemsize):
    """Bytes for a row's elements with their positions, twice, and for the counters of CUB: where elements are too many for
    the L2 cache, the CUDA driver parts them (ffi/patterns/scatter_parted_cuda.h). Without them it puts them as they come."""
    if not isinstance(items, int) or items * itemsize < 2**26:
        return 0  # or in an export for any size
    return 2 * items * (4 + itemsize) + items // 2 + 65536
