"""Rows of tokens in the order of their experts."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.types import Implementation
from .._core.wide import wide
from ..segment._family import spaced
from ..segment._kernels import index_of
from ..segment._references import count, per_batch, segment_or_last, take
from . import _arguments, _kernels
from ._family import FAMILY, MOST_SLOTS, labels
from ._slots import each_slot, flat, rows_of_slots, sizes_of, slots_of_rows, tokens_of


class Permuted(NamedTuple):
    """What `moe_permute` returns.

    x               [R, ...], the rows in the order of their experts
    group_sizes     int32 [num_experts], the number of rows of each expert
    row_map         int32 [T, k], the row of each slot, -1 where it was dropped
    """

    x: Array
    group_sizes: Array
    row_map: Array


@api
def moe_permute(
    x: ArrayLike,
    experts: ArrayLike,
    num_experts: int,
    *,
    capacity: int | None = None,
    implementation: Implementation = None,
) -> Permuted:
    """Rows of tokens in the order of the experts that they are sent to.

    Formula:
        y[row_map[t, j]] = x[t], for each slot (t, j) that has a row; dx[t] = sum of dy[row_map[t, j]] over its slots j.
        Slots are sorted by experts[t, j], those of one expert by token and then by j.

    Args:
        x: floats [T, ...], a row for each token.
        experts: integers [T, k], the experts of each token. Slots whose expert is outside [0, num_experts), negative ones
            too, are dropped.
        num_experts: static integer E.
        capacity: static integer C, how many rows an expert has; the first C slots of each are kept, others are dropped. None
            for as many as there are: then none is dropped.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        A named tuple: x [R, ...] of x's dtype; group_sizes, int32 [E], the number of rows of each expert; and row_map,
        int32 [T, k], the row of each slot, -1 where it was dropped. Without capacity R is T k: expert after expert, and then
        rows of 0 for dropped slots, as `grouped_gemm` and jax.lax.ragged_dot allow. With capacity R is E C: expert e has the
        rows e C ... (e + 1) C - 1, of which those after the first group_sizes[e] are 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. The gradient of float16 and bfloat16 accumulates in float32 and is rounded
    once; slots are added in order, so it is the same bits every time.

    Source: transformer_engine.pytorch.moe_permute; jnp.take(x, jnp.argsort(experts.ravel()) // k, axis=0).
    """
    op = "moe_permute"
    x, experts = _arguments.rows(op, "x", x, "tokens"), _arguments.slots(op, "experts", experts)
    if experts.shape[0] != x.shape[0]:
        raise ValueError(
            f"{op}: experts must have one row for each of x: expected ({x.shape[0]}, k) of x {tuple(x.shape)}, got "
            f"{tuple(experts.shape)}"
        )
    num_experts = checks.integer(op, "num_experts", num_experts, 0)
    checks.positions(op, "num_experts", num_experts, "experts")
    num_rows = experts.shape[0] * experts.shape[1]
    if capacity is not None:
        capacity = checks.integer(op, "capacity", capacity, 0)
        num_rows = num_experts * capacity
        if num_rows > MOST_SLOTS:
            raise ValueError(
                f"{op}: capacity times num_experts must be at most {MOST_SLOTS}, got {capacity} times {num_experts}"
            )
    params = dict(axis=0, num_experts=num_experts, capacity=capacity, num_rows=num_rows)
    return Permuted(*PERMUTE(x, experts, **params, save=True, implementation=implementation))


@api
def moe_permute_backward(row_map: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None) -> Array:
    """The gradient of `moe_permute`: dx[t] = sum of dy[row_map[t, j]] over the slots j of t.

    Args:
        row_map: integers [T, k], as `moe_permute` returns it.
        dy: floats [R, ...], the cotangent of the rows.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [T, ...].
    """
    op = "moe_permute_backward"
    return sum_of_rows(_arguments.slots(op, "row_map", row_map), _arguments.rows(op, "dy", dy, "rows"), implementation)


def sum_of_rows(row_map, dy, implementation):
    """The sum of each token's rows: linear, with the permutation for its transpose."""
    params = dict(axis=0, num_experts=0, capacity=None, num_rows=dy.shape[0])
    return PERMUTE.vjp(row_map, dy, **params, implementation=implementation)


def _index(experts, num_experts):
    """As `index_of`: the slots in the order of their experts, dropped ones last, and the first of each expert's."""
    ids = flat(experts)
    order = lambda ids: jnp.argsort(segment_or_last(ids, num_experts), stable=True)
    ends = jnp.cumsum(count(ids, num_experts), -1)
    return per_batch(order, ids.ndim - 1)(ids), jnp.pad(ends, [(0, 0)] * (ends.ndim - 1) + [(1, 0)])


def _tokens(row_map, num_rows):
    """[*batch, R]: the token of each row, -1 where it has none."""
    return tokens_of(slots_of_rows(row_map, num_rows), row_map.shape[-1])


def _maps(experts, index, capacity):
    return sizes_of(index[1], capacity), rows_of_slots(experts, *index, capacity)


def _reference(x, experts, *, axis, num_experts, capacity, num_rows):
    sizes, row_map = _maps(experts, _index(experts, num_experts), capacity)
    return *_tangent_reference(row_map, x, axis=axis, num_rows=num_rows), sizes, row_map


def _native(x, experts, *, save, axis, num_experts, capacity, num_rows):
    sizes, row_map = _maps(experts, index_of(flat(experts), num_experts, False), capacity)
    y = _tangent_native(row_map, x, axis=axis, num_rows=num_rows)
    return (*y, sizes, row_map)[: None if save else 1]


def _tangent_reference(row_map, t, *, axis, num_rows, **_):
    return (take(t, _tokens(row_map, num_rows), axis=axis),)


def _tangent_native(row_map, t, *, axis, num_rows, **_):
    return (_kernels.spread(t, row_map, axis=axis, num_rows=num_rows),)


def _backward_reference(row_map, dy, *, axis, **_):
    return (wide(each_slot(dy, row_map, axis)).sum(axis + 1).astype(dy.dtype),)


def _backward_native(row_map, dy, *, axis, **_):
    return (_kernels.total(dy, row_map, axis=axis),)


def _case(name, tokens, features, k, num_experts, dtype=np.int32, outside=0, **kwargs):
    def draw(rng):
        experts = rng.integers(-outside, num_experts + outside, (tokens, k)).astype(dtype)
        return spaced(rng, tokens, *features), experts

    return Case(name, draw, dict(num_experts=num_experts, **kwargs))


PERMUTE = declare(
    "moe_permute",
    **FAMILY,
    public=moe_permute,
    cases=(
        _case("dropless", 13, (6,), 2, 5),
        _case("some dropped", 9, (2, 3), 3, 4, np.int8, outside=1),
        _case("capacity", 11, (5,), 2, 3, np.int64, outside=1, capacity=6),
        _case("vector", 17, (), 1, 200, np.int16),
    ),
    operands=("x", "experts"),
    results=("y", "group_sizes", "row_map"),
    differentiable=("x",),
    constant={"experts": "they are integers"},
    residuals=("row_map",),
    shared={"experts": 2, "row_map": 2},
    follows={"group_sizes": "experts", "row_map": "experts"},
    cut=Partition(labels(("x",)), frozenset("trke")),
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("segment_index", "slot_spread"),
        "tangent": ("slot_spread",),
        "backward": ("slot_sum",),
    },
)
