"""The index of segments as an op: a stable sort of the rows by segment."""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.types import Implementation
from ._arguments import check_ids, check_num_segments
from ._family import FAMILY
from ._index import SegmentIndex
from ._kernels import index_of
from ._references import count, per_batch, segment_or_last


@api
def segment_index(
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> SegmentIndex:
    """The rows of each segment, in order, for any number of ops on the same ids.

    Formula:
        segment s has the rows perm[offsets[s]] ... perm[offsets[s + 1] - 1], in ascending order; rows that are dropped come
        after those of the last segment.

    Args:
        segment_ids: integers [N], or with batches [*batch, N]; row n belongs to segment segment_ids[n]. Rows whose id is
            outside [0, num_segments), negative ids too, belong to none. In any order.
        num_segments: static integer; by default max(segment_ids) + 1, which is computed from the values and therefore
            must be given under jit.
        indices_are_sorted: promise that segment_ids is sorted, which saves the sort. If the promise is broken, the result is
            unspecified.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        A SegmentIndex: a pytree with the arrays segment_ids, perm and offsets, which ops take in place of the ids.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact.

    Source: jax.numpy.argsort(segment_ids, stable=True) with jax.numpy.searchsorted; dgl.DGLGraph.adj_sparse("csr").
    """
    op = "segment_index"
    ids = check_ids(op, checks.array(op, "segment_ids", segment_ids))
    params = dict(
        num_segments=check_num_segments(op, segment_ids, num_segments),
        sorted=checks.flag(op, "indices_are_sorted", indices_are_sorted),
    )
    perm, offsets = _INDEX(ids, **params, save=True, implementation=implementation)
    return SegmentIndex(ids, perm, offsets)


def _reference(ids, *, num_segments, sorted):
    order = lambda ids: jnp.argsort(segment_or_last(ids, num_segments), stable=True).astype(jnp.uint32)
    perm = jnp.zeros((*ids.shape[:-1], 0), jnp.uint32) if sorted else per_batch(order, ids.ndim - 1)(ids)
    ends = jnp.cumsum(count(ids, num_segments), -1, dtype=jnp.uint32)
    # Rows that are dropped come first where their ids are the smallest, and nothing is sorted.
    first = ((ids < 0) & sorted).sum(-1, keepdims=True, dtype=jnp.uint32)
    return perm, jnp.concatenate([first, first + ends], -1)


def _native(ids, *, save=False, num_segments, sorted):
    return tuple(index_of(ids, num_segments, sorted))[: None if save else 1]


def _case(name, shape, low, high, num_segments, **kwargs):
    """Of ids of any integer type, to which numbers are cast times 4."""

    def draw(rng):
        ids = rng.integers(low, high, shape) / 4
        return (np.sort(ids) if kwargs else ids,)

    return Case(name, draw, dict(num_segments=num_segments, **kwargs))


_INDEX = declare(
    "segment_index",
    **{key: FAMILY[key] for key in ("family", "category")},
    public=segment_index,
    dtypes=checks.INTEGERS,
    cases=(
        _case("rows", 37, 0, 9, 9),
        _case("dropped", 23, -3, 9, 6),
        _case("sorted", 29, 0, 12, 11, indices_are_sorted=True),
        _case("batched", (2, 13), 0, 4, 4),
    ),
    operands=("segment_ids",),
    results=("perm", "offsets"),
    constant={"segment_ids": "they are integers"},
    batched=as_they_are,
    cut="the order of all rows decides",
    forward=Body(_reference, _native),
    kernels={"forward": ("segment_index",)},
)
