"""The arguments of segment ops: their documentation and their checks."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks
from .._core.bits import to_bits
from .._core.types import Decorator
from ._index import SegmentIndex

MOST_ROWS = 2**32 - 2
MOST_SEGMENTS = 2**31 - 1

_DOC = """

    Formula:
        {formula}

    Args:
        data: array [N, ...] of {dtypes}, or with batches [*batch, N, ...] when segment_ids is [*batch, N].
        segment_ids: integers [N]; row n belongs to segment segment_ids[n]. Rows whose id is outside [0, num_segments),
            negative ids too, belong to none and are dropped. In any order. Or a SegmentIndex, which saves the sort.
        num_segments: static integer; by default max(segment_ids) + 1, which is computed from the values and therefore
            must be given under jit, or what the SegmentIndex has.
        indices_are_sorted: promise that segment_ids is sorted, which saves the sort. The result is the same. If the
            promise is broken, the result is unspecified.
{more}{empty}        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision} Rows are taken in order, so results are the same bits every time.

    Source: jax.ops.segment_{name}; torch.scatter_reduce; torch_scatter.
    """

_EMPTY = "        empty_value: static scalar for segments without rows; by default {}.\n"


def document(formula, empty, more="", returns=None, precision=None, dtypes="a float or integer type") -> Decorator:
    def decorate(fun):
        name = fun.__name__.removeprefix("segment_")
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(
            name=name,
            formula=formula,
            empty="" if empty is None else _EMPTY.format(empty),
            more=more,
            dtypes=dtypes,
            returns=returns or "Array [num_segments, ...] (with the batches, if any), of data's dtype.",
            precision=precision or "float16 and bfloat16 accumulate in float32; integers wrap.",
        )
        return fun

    return decorate


def arguments(op, data, segment_ids, num_segments, indices_are_sorted, dtypes, name="data"):
    """(data, ids, their index or (), static parameters)"""
    data, (ids, index) = checks.array(op, name, data), ids_and_index(op, segment_ids)
    checks.dtype(op, name, data, dtypes)
    if data.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, the rows; got a scalar")
    if data.shape[: ids.ndim] != ids.shape:
        raise ValueError(
            f"{op}: segment_ids must have the shape of {name}'s leading dimensions, one id a row: expected "
            f"{tuple(data.shape[: max(ids.ndim, 1)])} of {name} {tuple(data.shape)}, got {tuple(ids.shape)}"
        )
    return data, ids, index, {
        "axis": ids.ndim - 1,
        "num_segments": segments_of(op, segment_ids, index, num_segments),
        "sorted": sorted_of(op, index, indices_are_sorted),
    }  # fmt: skip


def ids_and_index(op, value, name="segment_ids"):
    """(ids, (perm, offsets)) of a SegmentIndex, (ids, ()) of ids."""
    if not isinstance(value, SegmentIndex):
        return check_ids(op, checks.array(op, name, value), name), ()
    ids, perm, offsets = (checks.array(op, f"{name}.{f.name}", getattr(value, f.name)) for f in fields(value))
    ids = check_ids(op, ids, f"{name}.segment_ids")
    for part, x in (("perm", perm), ("offsets", offsets)):
        checks.dtype(op, f"{name}.{part}", x, ("uint32",))
    batch = ids.shape[:-1]
    if perm.shape not in (ids.shape, (*batch, 0)) or offsets.shape[:-1] != batch or not offsets.shape[-1:] >= (1,):
        raise ValueError(
            f"{op}: {name} must be a SegmentIndex as segment_index makes it, with perm and offsets for ids "
            f"{tuple(ids.shape)}; got perm {tuple(perm.shape)} and offsets {tuple(offsets.shape)}"
        )
    return ids, (perm, offsets)


def sorted_of(op, index, indices_are_sorted):
    """Whether the ids are in order, as is promised or known."""
    is_sorted = checks.flag(op, "indices_are_sorted", indices_are_sorted)
    return index[0].shape[-1] == 0 if index else is_sorted


def segments_of(op, ids, index, num_segments, source="num_segments"):
    """The number of segments, which must be that of the index, if there is one."""
    if not index:
        return check_num_segments(op, ids, num_segments)
    known = index[1].shape[-1] - 1
    if num_segments is not None and checks.integer(op, source, num_segments, 0) != known:
        raise ValueError(
            f"{op}: {source} must be left out or have the {known} segments of the index, got {num_segments}"
        )
    return known


def check_ids(op, ids, name="segment_ids"):
    checks.dtype(op, name, ids, checks.INTEGERS)
    if ids.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, the rows; got a scalar")
    if ids.shape[-1] > MOST_ROWS:
        raise ValueError(f"{op}: {name} may have at most {MOST_ROWS} rows, got {ids.shape[-1]}")
    return ids


def check_num_segments(op, ids, num_segments):
    if num_segments is None:
        if isinstance(ids, jax.core.Tracer):
            raise ValueError(
                f"{op}: num_segments must be given under jit and other transformations, where the values of segment_ids "
                "are not known: the result's shape depends on it"
            )
        ids = np.asarray(ids)
        num_segments = int(ids.max(initial=-1)) + 1 if ids.size else 0
        num_segments = max(num_segments, 0)
    num_segments = checks.integer(op, "num_segments", num_segments, 0)
    if num_segments > MOST_SEGMENTS:
        raise ValueError(f"{op}: num_segments must be at most {MOST_SEGMENTS}, got {num_segments}")
    return num_segments


def bits_of(op, value, dtype):
    """`value` in data's dtype, as the bits that a kernel gets."""
    if isinstance(value, jax.core.Tracer) or np.ndim(value) != 0:
        raise TypeError(f"{op}: empty_value must be a static scalar, got {value!r}")
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        if value != int(value) or not info.min <= value <= info.max:
            raise ValueError(f"{op}: empty_value must be an integer in [{info.min}, {info.max}], got {value!r}")
        value = int(value)
    return to_bits(value, dtype)


def backward_arguments(op, ids, dy, indices_are_sorted, same=(), per_segment=()):
    """Checks a backward function's arguments; `same` and `per_segment` are (name, array) shaped as dy, and as the ids with
    segments for rows."""
    value, (ids, index) = ids, ids_and_index(op, ids)
    checks.dtype(op, "dy", dy, checks.FLOATS)
    axis = ids.ndim - 1
    if dy.ndim < ids.ndim or dy.shape[:axis] != ids.shape[:axis]:
        raise ValueError(
            f"{op}: dy must be [*batch, num_segments, ...] with the batches of segment_ids, {tuple(ids.shape[:axis])}, "
            f"got {tuple(dy.shape)}"
        )
    for name, x in same:
        checks.shape(op, name, x, dy.shape, "that of dy")
    for name, x in per_segment:
        checks.shape(op, name, x, dy.shape[: axis + 1], "one a segment")
    return ids, index, {
        "axis": axis,
        "num_segments": segments_of(op, value, index, dy.shape[axis], "dy"),
        "sorted": sorted_of(op, index, indices_are_sorted),
        "empty_bits": 0,
    }  # fmt: skip
