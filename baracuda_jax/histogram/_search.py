"""Where values are in a sorted sequence."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.types import Implementation
from ..segment._references import per_batch
from ._arguments import numbers, vector
from ._family import FAMILY, POSITIONS
from ._partition import each_value

SIDES = ("left", "right")


@api
def searchsorted(
    sorted_sequence: ArrayLike,
    values: ArrayLike,
    *,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
    dtype: DTypeLike = "int32",
    implementation: Implementation = None,
) -> Array:
    """Positions at which values can be inserted into a sorted sequence, so that it stays sorted.

    Formula:
        y = the number of elements of sorted_sequence that are below the value; with side="right", that are not above it.
        NaN is above every number and equal to itself; -0 and 0 are equal.

    Args:
        sorted_sequence: array of a float or integer type, [n], for values of any shape; or [..., n] for values
            [..., m] with the same leading dimensions. Ascending along the last axis; else the positions are unspecified.
        values: array of a float or integer type. Where the two dtypes differ both become the one that jax.numpy promotes to.
        side: "left" or "right".
        sorter: integers of sorted_sequence's shape that sort it along its last axis, as argsort gives; then
            sorted_sequence may be in any order.
        dtype: of the result, int32 or int64.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of values' shape: positions in [0, n].

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact.

    Source: torch.searchsorted; jax.numpy.searchsorted.
    """
    op = "searchsorted"
    sequence, values = numbers(op, "sorted_sequence", sorted_sequence, 1), numbers(op, "values", values)
    if sequence.ndim > 1 and (values.ndim != sequence.ndim or values.shape[:-1] != sequence.shape[:-1]):
        raise ValueError(
            f"{op}: values must have the leading dimensions of sorted_sequence, [*{tuple(sequence.shape[:-1])}, m], since "
            f"that has more than one dimension; got {tuple(values.shape)}"
        )
    checks.positions(op, "sorted_sequence", sequence.shape[-1])
    checks.choice(op, "side", side, SIDES)
    if sorter is not None:
        sorter = checks.array(op, "sorter", sorter)
        checks.dtype(op, "sorter", sorter, checks.INTEGERS)
        checks.shape(op, "sorter", sorter, sequence.shape, "that of sorted_sequence")
        last = (sequence.ndim - 1,)
        sequence = jnp.take_along_axis(explicit.whole(sequence, last), explicit.whole(sorter, last), -1)
    checks.choice(op, "dtype", jnp.dtype(dtype).name, ("int32", "int64"))
    return search(sequence, values, right=side == "right", implementation=implementation).astype(dtype)


def search(sequence, values, *, right, implementation):
    common = jnp.result_type(sequence, values)
    return _search(sequence.astype(common), values.astype(common), right=right, implementation=implementation)


@api
def digitize(
    x: ArrayLike, bins: int | ArrayLike, right: bool = False, *, implementation: Implementation = None
) -> Array:
    """Index of the bin of each value, for edges in ascending or descending order.

    Formula:
        bins ascending: y is the number of edges that are not above the value; with right=True, that are below it.
        bins descending: y is the number of edges that are above the value; with right=True, that are not below it.

    Args:
        x: array of a float or integer type, of any shape.
        bins: array [n] of a float or integer type, ascending or descending.
        right: whether a bin has its right edge, and not its left one.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        int32 array of x's shape: numbers in [0, n], 0 for what is before the first edge.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact.

    Source: jax.numpy.digitize; torch.bucketize.
    """
    op = "digitize"
    x, bins = numbers(op, "x", x), explicit.whole(vector(op, "bins", bins))
    right = checks.flag(op, "right", right)
    checks.positions(op, "bins", bins.shape[0])
    if not bins.shape[0]:
        return jnp.zeros(x.shape, jnp.int32)
    is_ascending, ascending = _ascending(bins)
    return _turned(
        is_ascending, search(ascending, x, right=not right, implementation=implementation), count=bins.shape[0]
    )


@compiled()
def _ascending(bins):
    is_ascending = bins[-1] >= bins[0]
    return is_ascending, jnp.where(is_ascending, bins, jnp.flip(bins))


@compiled("count")
def _turned(is_ascending, position, *, count):
    return jnp.where(is_ascending, position, count - position)


def _native(sequence, values, *, save, right):
    rows = values if values.ndim >= sequence.ndim else values[..., None]
    out = [jax.ShapeDtypeStruct(rows.shape, jnp.int32)]
    return [
        y.reshape(values.shape)
        for y in kernel("searchsorted", "...n, ...m -> ...m", sequence, rows, out=out, right=right)
    ]


def _reference(sequence, values, *, right):
    side = SIDES[right]
    one = lambda sequence, values: jnp.searchsorted(sequence, values, side=side).astype(jnp.int32)
    return (per_batch(one, sequence.ndim - 1)(sequence, values),)


def _sorted(rng, *shape):
    """With elements that tie; above zero, so that they are sorted as unsigned integers too."""
    return np.sort(np.abs(np.round(4 * rng.standard_normal(shape)) / 4))


CASES = (
    Case("vector", lambda r: (_sorted(r, 40), np.round(4 * r.standard_normal(29)) / 4)),
    Case("right", lambda r: (_sorted(r, 17), r.standard_normal((3, 5, 2))), dict(side="right")),
    Case("batches", lambda r: (_sorted(r, 3, 21), r.standard_normal((3, 50)))),
    Case("a number", lambda r: (_sorted(r, 9), r.standard_normal(())), dict(side="right")),
)

_search = declare(
    "searchsorted",
    **FAMILY,
    public=searchsorted,
    operands=("sorted_sequence", "values"),
    constant={"sorted_sequence": POSITIONS, "values": POSITIONS},
    dtypes=checks.NUMBERS,
    cases=CASES,
    shared={"sorted_sequence": 1},
    cut=each_value,
    forward=Body(_reference, _native),
    kernels={"forward": ("searchsorted",)},
)
