"""What all scans share in their declarations."""

import math

import numpy as np

from .._core.case import Case
from .._core.regime import along_axes
from .._core.sku import OpCategory

FAMILY = dict(
    family="scan",
    category=OpCategory.SCAN,
    regime=along_axes,
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)
CUMULATIVE = FAMILY | dict(operands=("x",), differentiable=("x",))


def spaced(rng, *shape):
    """Random values, no two alike: finite differences meet no tie."""
    return (rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape),)


def cases(draw=spaced, exclusive=True):
    """The shapes that every scan is tried on; `draw` gives the arrays of one shape."""
    table = {
        "rows": ((5, 41), dict(axis=-1)),
        "columns": ((37, 6), {}),
        "middle": ((3, 17, 4), dict(axis=1)),
        "vector reverse": ((50,), dict(reverse=True)),
        "exclusive": ((9, 23), dict(axis=1, exclusive=True)),
        "exclusive reverse": ((13, 5), dict(axis=0, exclusive=True, reverse=True)),
    }
    return tuple(
        Case(name, lambda rng, shape=shape: draw(rng, *shape), kwargs)
        for name, (shape, kwargs) in table.items()
        if exclusive or "exclusive" not in kwargs
    )
