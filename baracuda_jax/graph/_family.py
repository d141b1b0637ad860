"""What all ops of the family share in their declarations."""

import numpy as np

from .._core.regime import by_entries
from .._core.sku import OpCategory
from ..segment._family import spaced

CONSTANT = {"senders": "they are integers", "receivers": "they are integers"}
FAMILY = dict(
    family="graph",
    category=OpCategory.SEGMENT_OPS,
    regime=by_entries,
    constant=CONSTANT,
    shared={"senders": 1, "receivers": 1},
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)


def draws(nodes, features, entries, segments, weights=None, dtype=np.int32, outside=0, is_sorted=False):
    """A draw of x [nodes, *features], senders and receivers [entries], up to `outside` beyond both ends of their ranges; and
    weights [entries, *weights]."""

    def draw(rng):
        x = spaced(rng, nodes, *features)
        senders = rng.integers(-outside, nodes + outside, entries).astype(dtype)
        receivers = rng.integers(-outside, segments + outside, entries).astype(dtype)
        arrays = (x, senders, np.sort(receivers) if is_sorted else receivers)
        return arrays if weights is None else (*arrays, rng.standard_normal((entries, *weights)))

    return draw
