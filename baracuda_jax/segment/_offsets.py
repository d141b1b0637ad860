"""The index of segments whose rows are in order, from where each begins."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.types import Implementation
from ..histogram._search import search
from ._arguments import MOST_ROWS
from ._index import SegmentIndex


@api
def segment_index_of_offsets(offsets: ArrayLike, length: int, *, implementation: Implementation = None) -> SegmentIndex:
    """The index of segments whose rows are in order, as in a CSR matrix: segment s has the rows offsets[s] ...
    offsets[s + 1] - 1. Nothing is sorted.

    Args:
        offsets: integers [num_segments + 1] in ascending order, a CSR matrix's row pointers. Rows before the first, and from
            the last on, belong to no segment. If they are not in order, the result is unspecified.
        length: static integer, the number of rows.
        implementation: "native", "xla" or None.

    Returns:
        A SegmentIndex, as `segment_index` returns it.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.
    """
    op = "segment_index_of_offsets"
    length = checks.integer(op, "length", length, 0)
    if length > MOST_ROWS:
        raise ValueError(f"{op}: length must be at most {MOST_ROWS}, got {length}")
    return of_offsets(op, "offsets", offsets, length, implementation)


def of_offsets(op, name, offsets, length, implementation):
    """The same, of an argument of this name."""
    offsets = checks.array(op, name, offsets)
    checks.dtype(op, name, offsets, checks.INTEGERS)
    if offsets.ndim != 1 or offsets.shape[0] < 1:
        raise ValueError(
            f"{op}: {name} must have one dimension, with one element more than there are segments; got shape "
            f"{tuple(offsets.shape)}"
        )
    wide, positions, perm, inside = _within_rows(offsets, length=length)
    ids = search(wide, positions, right=True, implementation=implementation)
    return SegmentIndex(_before(ids), perm, inside)


@compiled("length")
def _within_rows(offsets, *, length):
    """The offsets in a dtype that holds all positions; these; no perm; and the offsets as kernels read them, which must not
    lead out of the rows."""
    wide = offsets.astype(jnp.int32) if offsets.dtype.itemsize < 4 else offsets
    inside = jnp.clip(wide, 0, min(length, jnp.iinfo(wide.dtype).max)).astype(jnp.uint32)
    return wide, jnp.arange(length, dtype=wide.dtype), jnp.zeros(0, jnp.uint32), inside


@compiled()
def _before(ends):
    return ends.astype(jnp.int32) - 1
