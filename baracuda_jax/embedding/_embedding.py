"""Rows of a table for ids."""

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..segment import segment_take, segment_take_backward
from ..segment._index import with_index
from ._arguments import bound_of, flat, gradients_of, indexed_ids_of, padding_of, table_of
from ._gradient import adjusted, bounded, over_counts, zeroed


@api
def embedding(
    x: ArrayLike,
    weight: ArrayLike,
    *,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Rows of a table for ids.

    Formula:
        y[...] = weight[x[...]], and 0 where x[...] is not in [0, V); dweight[v] = sum of dy[...] over the positions with
        x[...] == v, and 0 for padding_idx.

    Args:
        x: integers of any shape and width, ids. Those out of range, negative ones too, give rows of 0 that have no gradient.
            Or a SegmentIndex of ids [N], of V segments, with which the gradient sorts nothing.
        weight: floats [V, ...], the table, a row for each id.
        padding_idx: static, the id whose row has no gradient; its value is that of the table. Negative ones count from the
            end; None for none.
        max_norm: static number; rows of the result whose norm is above it are scaled to it. The table stays as it is, and
            the scale has no gradient. None for no bound.
        norm_type: static number above 0, the p of the norm; may be infinite.
        scale_grad_by_freq: whether the gradient of a row is divided by the number of positions with its id.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [*x.shape, ...] of weight's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. The gradient of float16 and bfloat16 accumulates in float32, and what equal ids give is added in
    order: the same bits every time. Norms are computed in float32 at least.

    Source: torch.nn.functional.embedding; flax.linen.Embed.
    """
    op = "embedding"
    weight = table_of(op, weight)
    x, index = indexed_ids_of(op, x, weight.shape[0], "weight")
    padding, bound = padding_of(op, padding_idx, weight.shape[0]), bound_of(op, max_norm, norm_type)
    by_frequency = checks.flag(op, "scale_grad_by_freq", scale_grad_by_freq)
    ids = flat(x)
    table = adjusted(weight, ids, padding, by_frequency)
    rows = segment_take(table, with_index(ids, index), implementation=implementation)
    rows = bounded(rows, bound)
    return rows if x.ndim == 1 else explicit.reshape(rows, *x.shape, *weight.shape[1:])


@api
def embedding_backward(
    x: ArrayLike,
    dy: ArrayLike,
    num_rows: int,
    *,
    padding_idx: int | None = None,
    scale_grad_by_freq: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `embedding`: dweight[v] = sum of dy[...] over the positions with x[...] == v.

    Args:
        x: integers or a SegmentIndex, as in `embedding`.
        dy: floats [*x.shape, ...], the cotangent of the result.
        num_rows: static integer, the number V of rows of the table.
        padding_idx: static, as in `embedding`: the row is 0.
        scale_grad_by_freq: as in `embedding`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of weight, [V, ...].
    """
    op = "embedding_backward"
    size = checks.integer(op, "num_rows", num_rows, 0)
    x, index = indexed_ids_of(op, x, size, "num_rows")
    dy, ids, padding = gradients_of(op, x, dy), flat(x), padding_of(op, padding_idx, size)
    dweight = segment_take_backward(with_index(ids, index), dy, size, implementation=implementation)
    if padding is not None:
        dweight = zeroed(dweight, row=padding)
    return over_counts(dweight, ids) if checks.flag(op, "scale_grad_by_freq", scale_grad_by_freq) else dweight


def _case(name, ids, table, low, high, dtype=np.int32):
    return Case(name, lambda rng: (rng.integers(low, high, ids).astype(dtype), rng.standard_normal(table)))


compose(
    "embedding",
    family="embedding",
    category=OpCategory.EMBEDDING,
    public=embedding,
    cases=(
        _case("sentences", (3, 7), (11, 5), 0, 11),
        _case("some out of range", (9,), (6, 4), -3, 8, np.int8),
        _case("rows of two dimensions", (2, 5), (200, 2, 3), 0, 120, np.uint8),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "weight"),
    made_of=("segment_take",),
    differentiable=("weight",),
    constant={"x": "ids are integers"},
)
