"""What all ops of the family share in their declarations."""

import numpy as np

from .._core.regime import by_entries
from .._core.sku import OpCategory
from ..segment._family import spaced
from ..segment._index import index_of_ids

CONSTANT = {"senders": "they are integers", "receivers": "they are integers"}
FAMILY = dict(
    family="graph",
    category=OpCategory.SEGMENT_OPS,
    sometimes=("segment_index", "take_along"),
    regime=by_entries,
    constant=CONSTANT,
    shared={"senders": 1, "receivers": 1},
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)


def by_receiver(index):
    """The index of receivers, of those that an op has: first that of receivers, then that of senders, without offsets where
    it is not known."""
    return _known(index[:2])


def by_sender(index):
    return _known(index[2:])


def _known(index):
    return index if index and index[1].shape[-1] else ()


def draws(
    nodes, features, entries, segments, weights=None, dtype=np.int32, outside=0, is_sorted=False, is_indexed=False
):
    """A draw of x [nodes, *features], senders and receivers [entries], up to `outside` beyond both ends of their ranges; and
    weights [entries, *weights]."""

    def draw(rng):
        x = spaced(rng, nodes, *features)
        senders = rng.integers(-outside, nodes + outside, entries).astype(dtype)
        receivers = rng.integers(-outside, segments + outside, entries).astype(dtype)
        receivers = np.sort(receivers) if is_sorted else receivers
        if is_indexed:
            senders, receivers = index_of_ids(senders, nodes), index_of_ids(receivers, segments)
        arrays = (x, senders, receivers)
        return arrays if weights is None else (*arrays, rng.standard_normal((entries, *weights)))

    return draw
