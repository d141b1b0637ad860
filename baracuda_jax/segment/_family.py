"""What all segment ops share in their declarations."""

import math

import numpy as np

from .._core.body import Body
from .._core.case import Case
from .._core.op import declare
from .._core.regime import by_rows
from .._core.sku import OpCategory
from ._index import index_of_ids

INDEX = "*index"
FAMILY = dict(
    family="segment",
    category=OpCategory.SEGMENT_OPS,
    sometimes=("segment_index",),
    regime=by_rows,
    operands=("data", "segment_ids"),
    differentiable=("data",),
    constant={"segment_ids": "they are integers"},
    shared={"segment_ids": 1, "counts": 1},
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)


def declare_with_index(name, *, operands, residuals, constant, shared, forward, backward, tangent=None, **declaration):
    """Declares an op of segment ids whose last operands and residuals may be their index, where it is known: references are
    as without, native bodies have it as the keyword `index`, a tuple that is empty where there is none."""
    results, differentiable = declaration.get("results", ("y",)), declaration["differentiable"]
    after = {"forward": 0, "tangent": len(differentiable), "backward": len(declaration.get("outputs", results[:1]))}
    before = {"forward": len(operands), "tangent": len(residuals), "backward": len(residuals)}

    def with_index(body, kind):
        def taken(fun, has_index):
            def run(*arrays, **params):
                end = len(arrays) - after[kind]
                index = {"index": arrays[before[kind] : end]} if has_index else {}
                return fun(*arrays[: before[kind]], *arrays[end:], **params, **index)

            return run

        return body and Body(taken(body.reference, False), taken(body.native, True))

    return declare(
        name,
        operands=(*operands, INDEX),
        residuals=(*residuals, INDEX),
        constant={**constant, INDEX: "it has integers"},
        shared={**shared, INDEX: 1},
        forward=with_index(forward, "forward"),
        tangent=with_index(tangent, "tangent"),
        backward=with_index(backward, "backward"),
        **declaration,
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
        "index": (lambda r: (normal(r, 31, 4), index_of_ids(ids(r, 31, -1, 8), 7)), {}),
    }
    return tuple(Case(name, draw, {**options, **kwargs}) for name, (draw, options) in table.items())
