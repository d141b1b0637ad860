"""The index of segments: which rows each has, in order. Ops on the same ids share one that is built once."""

import dataclasses

import jax
import numpy as np
from jax import Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SegmentIndex:
    """Segment ids with the order of their rows, as `segment_index` makes it. It stands for the ids wherever an op takes
    `segment_ids`, or `senders` and `receivers`, and then nothing is sorted, neither for the result nor for gradients. It
    is a pytree: it may be an argument of a function under jit, or be saved between steps.

    Attributes:
        segment_ids: integers [N] (or with batches [*batch, N]), the ids.
        perm: uint32 [N], the rows in the order of their segments, or [0] where that is their own order.
        offsets: uint32 [num_segments + 1]; segment s has the rows perm[offsets[s]] ... perm[offsets[s + 1] - 1].
    """

    segment_ids: Array
    perm: Array
    offsets: Array

    @property
    def num_segments(self) -> int:
        """The number of segments."""
        return self.offsets.shape[-1] - 1

    @property
    def is_sorted(self) -> bool:
        """Whether the ids are in ascending order."""
        return self.perm.shape[-1] == 0


def with_index(ids, index):
    """The ids, as a SegmentIndex where their index is known."""
    return SegmentIndex(ids, *index) if index else ids


def index_of_ids(ids, num_segments):
    """The SegmentIndex of ids [N], of NumPy arrays."""
    inside = (ids >= 0) & (ids < num_segments)
    segments = np.where(inside, ids, num_segments).astype(np.int64)
    offsets = np.append(0, np.bincount(segments, minlength=num_segments)[:num_segments].cumsum())
    return SegmentIndex(ids, np.argsort(segments, kind="stable").astype(np.uint32), offsets.astype(np.uint32))
