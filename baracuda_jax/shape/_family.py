"""What the ops that move elements share in their declarations."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._core import checks
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from ._map import index_map

FAMILY = dict(family="shape", category=OpCategory.SHAPE_LAYOUT, dtypes=checks.EVERY, batched=as_they_are, weak=True)
OF_X = FAMILY | dict(operands=("x",), differentiable=("x",), linear=lambda params: params)


def spaced(rng, *shape):
    """No two values alike."""
    return rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)


def case(name, shape, /, **kwargs):
    return Case(name, lambda rng: (spaced(rng, *shape),), kwargs)


class Way(NamedTuple):
    """map_of(shape, **params) -> the map, and the result's shape, of the last dimensions; reference(x, **params) -> y"""

    map_of: Callable
    reference: Callable

    def turned(self, inverse):
        """The way back, where it is the same with the parameters inverse(params)."""
        return Way(
            lambda shape, **params: self.map_of(shape, **inverse(params)),
            lambda x, **params: self.reference(x, **inverse(params)),
        )


def _body(op, rank_of, way):
    def reference(x, **params):
        return (way.reference(x, **params),)

    def native(x, *, save=False, **params):
        lead = x.ndim - rank_of(params)
        of, shape = way.map_of(x.shape[lead:], **params)
        return [index_map(op, x, lead, of, shape)]

    return Body(reference, native)


def rearrangement(name, *, rank_of, forward, backward, **declared):
    """Declares an op whose gradient moves elements back, from the ways there and back. rank_of(params) is the number of last
    dimensions along which elements move."""
    return declare(
        name,
        **OF_X | dict(default="xla") | declared,
        forward=_body(name, rank_of, forward),
        backward=_body(name, rank_of, backward),
        kernels={"forward": ("move",), "backward": ("move",)},
    )


def operand(op, name, x, dtypes=checks.EVERY):
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, dtypes)
    return x


def axes_of(op, x, axis):
    """Axes counted from the last, each once, and what was given for them: None stands for all."""
    given = tuple(range(x.ndim)) if axis is None else axis
    given = tuple(given) if isinstance(given, tuple | list | np.ndarray) else (given,)
    positions = tuple(
        checks.axis(op, "x", x, a, f"axis[{i}]" if len(given) > 1 else "axis") for i, a in enumerate(given)
    )
    if len(set(positions)) < len(positions):
        raise ValueError(f"{op}: axis must name each axis once, got {axis}")
    return tuple(position - x.ndim for position in positions)


def sizes(op, shape):
    """A shape, which may be one integer."""
    many = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    return tuple(checks.integer(op, f"shape[{i}]" if len(many) > 1 else "shape", n, 0) for i, n in enumerate(many))
