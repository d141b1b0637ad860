"""Where the elements of a result come from, and the kernel calls that move them.

A map sees the result as an array of axes. Along an axis, the position in the operand moves by a stride. What strides can't
say are terms: a position on an axis of the operand, which axes of the result step along, folded where it leaves that axis.
The adjoint map sees the operand so: along each axis a stride in the result, or a term that says where its elements went.

Axes whose elements stay neighbors are merged, so that a kernel sees few.
"""

import math
from typing import NamedTuple

import jax

from .._core.bits import words
from .._core.kernel import kernel

CONSTANT, CLAMP, REFLECT, WRAP, SYMMETRIC = range(5)
MOST_AXES, MOST_TERMS, MOST_ADDED_AXES, MOST_ADDED_TERMS = 9, 6, 8, 5


class Axis(NamedTuple):
    """One axis of a map: how far a step goes, and which of the terms it is a step of."""

    size: int
    stride: int
    term: int = -1
    step: int = 0


class Term(NamedTuple):
    """The position offset + (the steps of axes) on an axis of so many elements. With a stride of 0 it only says where the
    fill value is."""

    fold: int
    size: int
    offset: int
    stride: int = 0


class Map(NamedTuple):
    axes: tuple[Axis, ...]
    terms: tuple[Term, ...] = ()
    base: int = 0

    @property
    def elements(self):
        return math.prod(axis.size for axis in self.axes)


class Origin(NamedTuple):
    """A term of an adjoint map: element i of `count` came from the folded i + offset; of windows, element k of window i came
    from i * step + k * dilation + offset."""

    fold: int
    count: int
    offset: int
    stride: int
    kernel: int = 1
    kernel_stride: int = 0
    dilation: int = 1
    step: int = 1


def strides(shape):
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def merged(axes):
    """Neighbors without terms become one axis where they may; axes of one element are dropped."""
    out = []
    for axis in axes:
        if axis.size == 1 and axis.term < 0:
            continue
        if out and out[-1].term < 0 and axis.term < 0 and out[-1].stride == axis.size * axis.stride:
            out[-1] = Axis(out[-1].size * axis.size, axis.stride)
        else:
            out.append(axis)
    return tuple(out) or (Axis(1, 0),)


def _most(op, axes, terms, most_axes, most_terms):
    if len(axes) > most_axes or len(terms) > most_terms:
        raise ValueError(
            f"{op}: x must have at most {most_axes} axes, and {most_terms} with positions outside, after merging neighbors "
            f"that stay neighbors; got {len(axes)} and {len(terms)}"
        )


def index_map(op, x, lead, of, shape, fill=b""):
    """The array [*batches, *shape] of x [*batches, ...], which has `lead` batch dimensions. `fill` is the
    fill value's bytes; by default it is 0."""
    axes, elements = merged(of.axes), math.prod(x.shape[lead:])
    _most(op, axes, of.terms, MOST_AXES, MOST_TERMS)
    result = (*x.shape[:lead], *shape)
    if not of.terms and of.base == 0 and axes == merged((Axis(elements, 1),)):
        return x.reshape(result)
    terms = [
        number
        for t, term in enumerate(of.terms)
        for number in (*term, *(axis.step if axis.term == t else 0 for axis in axes))
    ]
    out = jax.ShapeDtypeStruct((*x.shape[:lead], of.elements), x.dtype)
    (y,) = kernel(
        "move", "...n -> ...m", x.reshape(*x.shape[:lead], elements), out=[out], base=of.base, fill=words(fill),
        axes=tuple(n for axis in axes for n in axis[:2]), terms=tuple(terms),
    )  # fmt: skip
    return y.reshape(result)


def index_map_adjoint(op, dy, lead, axes, terms, shape):
    """The array [*batches, *shape], each element of which adds those of dy [*batches, ...] that came from it. `axes` and
    `terms`, Origins, are of the adjoint map."""
    axes, size = merged(axes), math.prod(axis.size for axis in axes)
    _most(op, axes, terms, MOST_ADDED_AXES, MOST_ADDED_TERMS)
    (dx,) = kernel(
        "move_add", "...m -> ...n", dy.reshape(*dy.shape[:lead], math.prod(dy.shape[lead:])),
        out=[jax.ShapeDtypeStruct((*dy.shape[:lead], size), dy.dtype)],
        axes=tuple(n for axis in axes for n in axis[:3]), terms=tuple(n for term in terms for n in term),
    )  # fmt: skip
    return dx.reshape(*dy.shape[:lead], *shape)
