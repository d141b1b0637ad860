"""The weighted sum of each token's rows."""

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from ..segment._family import spaced
from ..segment._references import take
from . import _arguments, _kernels
from ._family import FAMILY, labels
from ._permute import sum_of_rows
from ._slots import each_slot, flat, slots_of_rows, tokens_of


@api
def moe_combine(
    x: ArrayLike, row_map: ArrayLike, weights: ArrayLike | None = None, *, implementation: Implementation = None
) -> Array:
    """The weighted sum of each token's rows: what its experts returned, in the order of tokens.

    Formula:
        y[t] = sum of weights[t, j] x[row_map[t, j]] over the slots j of t that have a row; dx[row_map[t, j]] =
        weights[t, j] dy[t], and 0 in rows that no slot has; dweights[t, j] = <dy[t], x[row_map[t, j]]>.

    Args:
        x: floats [R, ...], the experts' rows.
        row_map: integers [T, k], the row of each slot, as `moe_permute` returns it: no row is that of two slots, or the
            gradient of x is unspecified. Slots outside [0, R), negative ones too, add 0.
        weights: floats [T, k] of x's dtype, or float32 for float16 and bfloat16; None for 1.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [T, ...] of x's dtype; tokens without rows are 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are multiplied and accumulated in float32 and rounded once. Slots are added in order, so
    results are the same bits every time, and so are gradients.

    Source: transformer_engine.pytorch.moe_unpermute; (x[row_map] * weights[..., None]).sum(1).
    """
    op = "moe_combine"
    x, row_map = _arguments.rows(op, "x", x, "rows"), _arguments.slots(op, "row_map", row_map)
    if weights is None:
        return sum_of_rows(row_map, x, implementation)
    weights = _arguments.weights_of(op, weights, row_map, x).astype(wide_dtype(x.dtype))
    return COMBINE(x, row_map, weights, axis=0, implementation=implementation)


@api
def moe_combine_backward(
    x: ArrayLike, row_map: ArrayLike, weights: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    """The gradient of `moe_combine` with weights: dx[row_map[t, j]] = weights[t, j] dy[t], and dweights[t, j] = the dot
    product of dy[t] and x[row_map[t, j]].

    Args:
        x, row_map, weights: as in `moe_combine`.
        dy: floats [T, ...], the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and of weights, that in float32 for float16 and bfloat16.
    """
    op = "moe_combine_backward"
    x, row_map = _arguments.rows(op, "x", x, "rows"), _arguments.slots(op, "row_map", row_map)
    dy = checks.floats(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, (row_map.shape[0], *x.shape[1:]), "x's with tokens for rows")
    weights = _arguments.weights_of(op, weights, row_map, x).astype(wide_dtype(x.dtype))
    return tuple(COMBINE.vjp(x, row_map, weights, dy, axis=0, implementation=implementation))


def _column(weights, like):
    """weights [*batch, n] shaped to go with [*batch, n, *features]."""
    return weights.reshape(*weights.shape, *(1,) * (like.ndim - weights.ndim))


def _reference(x, row_map, weights, *, axis):
    each = wide(each_slot(x, row_map, axis))
    return ((each * _column(weights, each)).sum(axis + 1).astype(x.dtype),)


def _native(x, row_map, weights, *, save=False, axis):
    return (_kernels.total(x, row_map, weights, axis=axis),)


def _tangent(by):
    def tangent(x, row_map, weights, t, u, *, axis):
        return (by(t, row_map, weights, axis=axis)[0] + by(x, row_map, u, axis=axis)[0],)

    return tangent


def _backward_reference(x, row_map, weights, dy, *, axis):
    slots = slots_of_rows(row_map, x.shape[axis])
    tokens, scale = tokens_of(slots, row_map.shape[-1]), take(flat(weights), slots, axis=axis)
    dx = (wide(take(dy, tokens, axis=axis)) * _column(scale, x)).astype(x.dtype)
    each = wide(each_slot(x, row_map, axis))
    products = each * wide(dy).reshape(*dy.shape[: axis + 1], 1, *dy.shape[axis + 1 :])
    return dx, products.sum(tuple(range(axis + 2, each.ndim)))


def _backward_native(x, row_map, weights, dy, *, axis):
    return _kernels.gradient(x, row_map, weights, dy, axis=axis)


def _case(name, rows, features, tokens, k, dtype=np.int32):
    """Some of the slots have no row where there are too few of these, and some rows no slot elsewhere."""

    def draw(rng):
        row_map = np.where((row := rng.permutation(tokens * k)) < rows, row, -1).reshape(tokens, k).astype(dtype)
        return spaced(rng, rows, *features), row_map, rng.standard_normal((tokens, k))

    return Case(name, draw)


COMBINE = declare(
    "moe_combine",
    **FAMILY,
    public=moe_combine,
    cases=(
        _case("dropless", 22, (6,), 11, 2),
        _case("some dropped", 13, (2, 3), 9, 3, np.int8),
        _case("more rows", 29, (8,), 7, 2, np.int64),
        _case("vector", 17, (), 17, 1, np.int16),
    ),
    operands=("x", "row_map", "weights"),
    results=("y",),
    outputs=("y",),
    differentiable=("x", "weights"),
    constant={"row_map": "it has integers"},
    residuals=("x", "row_map", "weights"),
    multilinear=True,
    shared={"row_map": 2},
    cut=Partition(labels(("y",)), frozenset("rk")),
    forward=Body(_reference, _native),
    tangent=Body(_tangent(_reference), _tangent(_native)),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("slot_sum",),
        "tangent": ("slot_sum",),
        "backward": ("slot_gradient",),
    },
)
