"""Concatenation of arrays along an axis. The gradient cuts them apart again: one kernel each, for any number of arrays."""

import itertools
import math
from collections.abc import Sequence

import jax
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.types import Implementation, Integers
from ._family import FAMILY, case, operand
from ._partition import whole_along


@api
def concat(xs: Sequence[ArrayLike] | Array, axis: int = 0, *, implementation: Implementation = None) -> Array:
    """Concatenate arrays along an axis.

    Formula:
        y[..., n_1 + ... + n_{k-1} + i, ...] = x_k[..., i, ...], where x_k has n_k elements along the axis;
        dx_k is what y has of it, of dy.

    Args:
        xs: a sequence of arrays of one dtype, floats, integers, bool or complex, whose shapes differ along the axis at most;
            or one array, whose leading axis is such a sequence.
        axis: a static integer; None to flatten each array first.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of their dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; for no arrays.

    Precision: values are moved as they are.

    Source: jax.numpy.concatenate, which promotes dtypes; torch.cat.
    """
    op = "concat"
    if not hasattr(xs, "__len__") or isinstance(xs, str | dict):
        raise TypeError(f"{op}: xs must be a sequence of arrays, got {type(xs).__name__}")
    xs = explicit.whole(xs, (0,)) if isinstance(xs, jax.Array) else xs
    one = (lambda i: lax.index_in_dim(xs, i, keepdims=False)) if isinstance(xs, jax.Array) else (lambda i: xs[i])
    arrays = [operand(op, f"xs[{i}]", one(i)) for i in range(len(xs))]
    if not arrays:
        raise ValueError(f"{op}: xs must have one array at least, got none")
    if axis is None:
        arrays, axis = [explicit.reshape(x, -1) for x in arrays], 0
    first = arrays[0]
    if np.ndim(axis):
        raise TypeError(
            f"{op}: axis must be an integer, got an array of shape {np.shape(axis)}; the arrays are one argument, as in "
            "concat([x, y])"
        )
    axis = checks.axis(op, "xs[0]", first, axis)
    for i, x in enumerate(arrays):
        checks.same_dtype(op, f"xs[{i}]", x, "xs[0]", first)
        if x.ndim != first.ndim or _others(x.shape, axis) != _others(first.shape, axis):
            raise ValueError(
                f"{op}: xs[{i}] must have the shape of xs[0], {first.shape}, except for axis {axis}, got {x.shape}"
            )
    return _concat(
        *arrays, axis=axis - first.ndim, sizes=tuple(x.shape[axis] for x in arrays), implementation=implementation
    )


concatenate = concat


@api
def concat_backward(
    dy: ArrayLike, sizes: Integers, axis: int = 0, *, implementation: Implementation = None
) -> list[Array]:
    """The gradient of `concat`: dy, cut apart.

    Args:
        dy: floats or complex, the cotangent of the result.
        sizes: those of the arrays along the axis, static integers that add up to that of dy.
        axis: as for `concat`.
        implementation: "native", "xla" or None.

    Returns:
        List of the arrays' cotangents.
    """
    op = "concat_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    axis = checks.axis(op, "dy", dy, axis)
    if not isinstance(sizes, tuple | list | np.ndarray) or len(sizes) == 0:
        raise TypeError(f"{op}: sizes must be a tuple of integers, got {sizes!r}")
    sizes = tuple(checks.integer(op, f"sizes[{i}]", n, 0) for i, n in enumerate(sizes))
    if sum(sizes) != dy.shape[axis]:
        raise ValueError(f"{op}: sizes must add up to the {dy.shape[axis]} elements of dy's axis {axis}, got {sizes}")
    return _concat.vjp(dy, axis=axis - dy.ndim, sizes=sizes, implementation=implementation)


def _others(shape, axis):
    return tuple(n for i, n in enumerate(shape) if i != axis)


# ---------------------------------------------------------------------------------------------------------------------
# References and kernel calls


def _reference(*xs, axis, sizes):
    return (lax.concatenate(xs, axis + xs[0].ndim),)


def _backward_reference(dy, *, axis, sizes):
    axis += dy.ndim
    ends = np.cumsum((0, *sizes)).tolist()
    return [lax.slice_in_dim(dy, begin, end, axis=axis) for begin, end in itertools.pairwise(ends)]


def _dims(count):
    """Each part has a last dimension of its own, and so has the whole: of letters there are enough among the ideographs."""
    return [f"...{chr(0x4E00 + i)}" for i in range(count + 1)]


def _rows(x, axis):
    """[*batches, the axis with all after it]"""
    axis += x.ndim
    return x.reshape(*x.shape[:axis], math.prod(x.shape[axis:]))


def _native(*xs, save=False, axis, sizes):
    if len(xs) == 1:
        return [xs[0]]
    rows = [_rows(x, axis) for x in xs]
    batch, elements = rows[0].shape[:-1], sum(row.shape[-1] for row in rows)
    *parts, whole = _dims(len(xs))
    out = [jax.ShapeDtypeStruct((*batch, elements), xs[0].dtype)]
    (y,) = kernel("concat", f"{', '.join(parts)} -> {whole}", *rows, out=out)
    return [y.reshape(*batch, sum(sizes), *xs[0].shape[len(batch) + 1 :])]


def _backward_native(dy, *, axis, sizes):
    if len(sizes) == 1:
        return [dy]
    row = _rows(dy, axis)
    batch, rest = row.shape[:-1], dy.shape[axis + dy.ndim + 1 :]
    *parts, whole = _dims(len(sizes))
    out = [jax.ShapeDtypeStruct((*batch, n * math.prod(rest)), dy.dtype) for n in sizes]
    results = kernel("concat_backward", f"{whole} -> {', '.join(parts)}", row, out=out)
    return [part.reshape(*batch, n, *rest) for part, n in zip(results, sizes, strict=True)]


_concat = declare(
    "concat",
    **FAMILY,
    public=concat,
    # One array stands for a sequence here; those of several sizes are in tests/test_shape.py.
    cases=(
        case("rows", (3, 4, 5)),
        case("columns", (4, 3, 6), axis=1),
        case("middle", (2, 3, 4, 8), axis=-2),
        case("rows", (5, 2, 3), axis=None),
        case("vectors", (7, 9)),
    ),
    operands=("*xs",),
    differentiable=("*xs",),
    linear=lambda params: params,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    cut=whole_along(lambda params: (params["axis"],)),
    kernels={"forward": ("concat",), "backward": ("concat_backward",)},
    default="xla",
)
