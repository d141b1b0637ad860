"""Elements moved round along axes. The gradient moves them back."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.types import Axes, Implementation, Integers
from ._family import Way, axes_of, case, operand, rearrangement
from ._map import WRAP, Axis, Map, Term, strides
from ._partition import whole_along


@api
def roll(x: ArrayLike, shift: int | Integers, axis: Axes = None, *, implementation: Implementation = None) -> Array:
    """Roll the elements of x along axes; those that pass the last element come in before the first.

    Formula:
        y[..., i, ...] = x[..., (i - shift) mod n, ...] along each of the axes, of n elements; dx is dy moved back.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        shift: a static integer, or one for each axis. Above 0 elements move to greater indices.
        axis: a static integer, or several, where shifts along the same axis add up; None to flatten x,
            in their order.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it; for shifts and axes of unequal number.

    Precision: values are moved as they are.

    Source: jax.numpy.roll; torch.roll.
    """
    return _rolled("roll", _roll, operand("roll", "x", x), shift, axis, implementation)


@api
def roll_backward(
    dy: ArrayLike, shift: int | Integers, axis: Axes = None, *, implementation: Implementation = None
) -> Array:
    """The gradient of `roll`: dy moved back.

    Args:
        dy: floats or complex, the cotangent of the result.
        shift, axis: as for `roll`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _rolled(
        "roll_backward", _roll.vjp, operand("roll_backward", "dy", dy, checks.INEXACT), shift, axis, implementation
    )


def _rolled(op, run, x, shift, axis, implementation):
    if axis is None:
        flat = explicit.reshape(x, -1)
        return explicit.reshape(run(flat, **_params(op, flat, shift, -1), implementation=implementation), *x.shape)
    return run(x, **_params(op, x, shift, axis), implementation=implementation)


def _params(op, x, shift, axis):
    is_one = not isinstance(axis, tuple | list | np.ndarray)
    axes = [axes_of(op, x, a)[0] for a in ((axis,) if is_one else axis)]
    many = isinstance(shift, tuple | list | np.ndarray)
    shifts = [checks.integer(op, f"shift[{i}]", s, -(2**62)) for i, s in enumerate(shift)] if many else None
    shifts = shifts if many else [checks.integer(op, "shift", shift, -(2**62))] * len(axes)
    if is_one and many:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"{op}: shift must have one number for each axis, {len(axes)}, got {len(shifts)}")
    total = {}
    for a, s in zip(axes, shifts, strict=True):
        total[a] = total.get(a, 0) + s
    # An axis with a shift of 0 stays: on shards the size of the others is not known here.
    return dict(axes=tuple(total), shifts=tuple(total.values()))


def _map(shape, *, axes, shifts):
    shift_of, out, terms = dict(zip(axes, shifts, strict=True)), [], []
    for i, (n, stride) in enumerate(zip(shape, strides(shape), strict=True)):
        shift = shift_of.get(i - len(shape), 0) % n if n else 0
        if not shift:
            out.append(Axis(n, stride))
            continue
        out.append(Axis(n, 0, len(terms), 1))
        terms.append(Term(WRAP, n, -shift, stride))
    return Map(tuple(out), tuple(terms)), shape


_way = Way(_map, lambda x, *, axes, shifts: jnp.roll(x, shifts, axes) if axes else x)
_roll = rearrangement(
    "roll",
    public=roll,
    cases=(
        case("rows", (5, 7), shift=3, axis=-1),
        case("columns", (6, 8), shift=-2, axis=0),
        case("flat", (3, 4, 5), shift=17),
        case("two axes", (4, 3, 5), shift=(1, -7), axis=(0, 2)),
        case("middle", (2, 9, 4), shift=100, axis=1),
    ),
    rank_of=lambda params: max((-axis for axis in params["axes"]), default=0),
    forward=_way,
    backward=_way.turned(lambda params: {**params, "shifts": tuple(-s for s in params["shifts"])}),
    cut=whole_along(lambda params: params["axes"]),
)
