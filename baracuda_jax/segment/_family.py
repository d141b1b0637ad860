"""What all segment ops share in their declarations."""

import math

import numpy as np

from .._core.case import Case
from .._core.regime import by_rows
from .._core.sku import OpCategory

FAMILY = dict(
    family="segment",
    category=OpCategory.SEGMENT_OPS,
    regime=by_rows,
    operands=("data", "segment_ids"),
    differentiable=("data",),
    constant={"segment_ids": "they are integers"},
    shared={"segment_ids": 1, "counts": 1},
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)


def spaced(rng, *shape):
    """Random values, no two alike: finite differences meet no tie."""
    return rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)


def cases(draw_data=None, **kwargs):
    """The shapes that every segment op is tried on."""
    normal = draw_data or spaced

    def ids(rng, shape, low, high, dtype=np.int32):
        return rng.integers(low, high, shape).astype(dtype)

    table = {
        "rows": (lambda r: (normal(r, 37, 6), ids(r, 37, 0, 9)), dict(num_segments=9)),
        # The ids' dtype does not hold the number of segments.
        "vector": (lambda r: (normal(r, 50), ids(r, 50, 0, 7, np.int8)), dict(num_segments=200)),
        "dropped": (lambda r: (normal(r, 23, 3), ids(r, 23, -3, 9)), dict(num_segments=6)),
        "sorted": (
            lambda r: (normal(r, 29, 5), np.sort(ids(r, 29, -1, 12))),
            dict(num_segments=11, indices_are_sorted=True),
        ),
        "batched": (lambda r: (normal(r, 2, 13, 2, 2), ids(r, (2, 13), 0, 4)), dict(num_segments=4)),
    }
    return tuple(Case(name, draw, {**options, **kwargs}) for name, (draw, options) in table.items())
