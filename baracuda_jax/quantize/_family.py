"""What the quantization ops share in their declarations and their documentation."""

import functools

import numpy as np

from .._core import checks
from .._core.case import Case
from .._core.op import as_they_are
from .._core.partition import Partition
from .._core.sku import OpCategory


def _labels(names, types, params, *, reads_rows=False):
    """Scales are cut as the elements that they belong to. Groups stay whole, and so do bytes of packed values."""
    by, rank = params["by"], types[0].ndim
    is_packed = any(x.dtype.name.endswith("int4") for x in types)
    elements = [f"dim{i}" for i in range(rank)]
    if rank and ((is_packed and (by.group_size or 1) % 2) or (reads_rows and by.kind != "group")):
        elements[-1] = "row"

    def of_scale(rank):
        if by.kind in ("tensor", "token"):
            return elements[:rank]
        return [*elements[: rank - 1], elements[-1 if by.kind == "group" else by.axis]]

    return [
        of_scale(x.ndim) if name in ("scale", "zero_point") else elements for name, x in zip(names, types, strict=True)
    ]


_WHOLE = frozenset({"row"})
BY_ELEMENT, BY_ROW = Partition(_labels, _WHOLE), Partition(functools.partial(_labels, reads_rows=True), _WHOLE)
FAMILY = dict(family="quantize", category=OpCategory.QUANTIZATION, dtypes=checks.FLOATS, batched=as_they_are)

# kind: (arguments between zero_point and dtype, their documentation, the scale's shape)
SIGNATURES = {
    "tensor": ((), "", "scalar"),
    "channel": (("axis",), "        axis: static, the dimension of channels.\n", "[channels]"),
    "token": ((), "", "x's shape without the last dimension"),
    "group": (
        ("group_size",),
        "        group_size: static, the number of neighbors along the last dimension that share a scale. It must divide\n"
        "            that dimension.\n",
        "x's shape with last dimension / group_size as the last size",
    ),
}


def shared_ranks(kind):
    """Under vmap, a scale that serves all is not repeated."""
    ranks = {"tensor": 0, "channel": 1}
    return {name: ranks[kind] for name in ("scale", "zero_point")} if kind in ranks else {}


def random_scale(rng, *shape):
    return np.asarray(0.02 + 0.02 * rng.random(shape))


def random_zero(rng, *shape):
    return np.asarray(rng.integers(-9, 10, shape), np.int32)


def cases(kind, first, **kwargs):
    """`first(rng, *shape)` draws x or q."""
    table = {
        "tensor": {
            "image": (lambda r: (first(r, 3, 8, 5), random_scale(r), random_zero(r)), {}),
        },
        "channel": {
            "last": (lambda r: (first(r, 6, 16), random_scale(r, 16), random_zero(r, 16)), {"axis": -1}),
            "middle": (lambda r: (first(r, 2, 5, 3, 3), random_scale(r, 5), random_zero(r, 5)), {"axis": 1}),
        },
        "token": {
            "sequences": (lambda r: (first(r, 2, 3, 7), random_scale(r, 2, 3), random_zero(r, 2, 3)), {}),
        },
        "group": {
            "odd": (
                lambda r: (first(r, 2, 3, 15), random_scale(r, 2, 3, 5), random_zero(r, 2, 3, 5)),
                {"group_size": 3},
            ),
        },
    }
    return tuple(Case(name, draw, {**options, **kwargs}) for name, (draw, options) in table[kind].items())


def normal(rng, *shape):
    return rng.standard_normal(shape)


def float_values(rng, *shape):
    return rng.integers(-20, 20, shape) + 0.25
