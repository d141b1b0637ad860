"""What the declarations and public functions of the family share."""

import math

import numpy as np

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.data_format import FORMATS
from .._core.op import as_they_are
from .._core.regime import by_windows
from .._core.sku import OpCategory

RANKS = (1, 2, 3)
FAMILY = dict(
    family="pool",
    category=OpCategory.POOLING,
    dtypes=checks.FLOATS,
    differentiable=("x",),
    batched=as_they_are,
    cut="windows reach over the borders of shards",
    regime=by_windows,
)
WINDOWS = """
        window: static window size, an integer or one for each spatial axis.
        strides: static step between windows, the same; by default the window size.
        padding: how far windows reach beyond x: an integer, one for each spatial axis, a pair (before, after) for each,
            "valid" for not at all, or "same" for as far as gives x's size with strides 1, one more after if odd."""
DILATION = """
        dilation: static distance between the elements of a window, an integer or one for each spatial axis."""
CEIL = """
        ceil_mode: whether the number of windows, (size + padding - window) / strides + 1, is rounded up instead of
            down. The last window then is cut off; it is dropped if it would begin after x."""
LAST = """
        data_format: "{first}" or "{last}".
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic."""
ERRORS = """
    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it."""
X = """
        x: floats {first}, or {last} with data_format="{last}"; the batch dimension N may be left out."""


def named(fun, name, rank, doc):
    """A public function, with its name and docstring."""
    first, last = FORMATS[rank]
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc.format(rank=rank, first=first, last=last)
    return api(fun)


def distinct(rng, shape):
    """No two elements alike, so that finite differences meet no kink."""
    return rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)


def shape_of(rank, is_last=False):
    sizes = (9, 8, 7)[:rank]
    return (2, *sizes, 3) if is_last else (2, 3, *sizes)


def case(name, rank, is_last=False, **kwargs):
    kwargs |= dict(data_format=FORMATS[rank][1]) if is_last else {}
    return Case(name, lambda rng: (distinct(rng, shape_of(rank, is_last)),), kwargs)
