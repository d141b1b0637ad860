"""What all sorts share in their declarations."""

import functools
import math

import numpy as np

from .._core.case import Case
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory

FAMILY = dict(family="sort", category=OpCategory.SORTING)
AXIS = FAMILY | dict(batched=lambda params: {**params, "axis": params["axis"] + 1}, regime=along_axes)
NO_DERIVATIVE = "the result is made of indices"


def spaced(rng, *shape):
    """Random values, no two alike, so that finite differences meet no tie; the middle one is not 0."""
    return rng.permutation(np.linspace(-2, 2.5, math.prod(shape))).reshape(shape)


def cases(table, arrays=1):
    """{name: (shape of the arrays, arguments)}"""
    return tuple(
        Case(name, lambda rng, shape=shape: tuple(spaced(rng, *shape) for _ in range(arrays)), kwargs)
        for name, (shape, kwargs) in table.items()
    )


def _labels(names, types, params, full, reduces):
    """[*batch, n, *features]; `n` of the arrays that are sorted, `m` of what is found; results that are reduced have none.
    Two labels: else the compiler would cut the results too, and gather them again for the derivatives."""

    def of(name, x):
        axis = params["axis"]
        seen = ("n",) if name in full else () if reduces else ("m",)
        return (*(f"batch{i}" for i in range(axis)), *seen, *(f"feature{i}" for i in range(x.ndim - axis - len(seen))))

    return [of(name, x) for name, x in zip(names, types, strict=True)]


def whole_axis(*full, reduces=False):
    """The rule that all dimensions but the sorted one, of the operands `full`, are apart from each other."""
    labels = functools.partial(_labels, full=full, reduces=reduces)
    return Partition(labels, whole=frozenset("nm"), plain=True)
