"""The gradients of bags of embeddings, as functions."""

import jax
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core import prefer as preference
from .._core.api import api
from .._core.compiled import compiled
from .._core.types import Implementation
from ._arguments import ids_of, table_of
from ._bag import embedding_bag


def _gradient(op, mode, x, weight, dy, offsets, implementation, **options):
    """One program: of the forward pass remains what the gradient reads."""
    x, weight, dy = ids_of(op, x), table_of(op, weight), checks.floats(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "weight", weight)
    if dy.ndim < 1 or dy.shape[1:] != weight.shape[1:]:
        raise ValueError(f"{op}: dy must be [B, *{tuple(weight.shape[1:])}], a row for each bag, got {tuple(dy.shape)}")
    implementation = preference.resolve(op, implementation)
    return _pulled(x, weight, dy, offsets, mode=mode, implementation=implementation, **options)


@compiled("mode", "padding_idx", "include_last_offset", "implementation")
def _pulled(x, weight, dy, offsets, *, lengths, **options):
    return jax.vjp(lambda w: embedding_bag(x, w, offsets, lengths=lengths, **options), weight)[1](dy)[0]


@api
def embedding_bag_sum_backward(
    x: ArrayLike,
    weight: ArrayLike,
    dy: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    padding_idx: int | None = None,
    include_last_offset: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `embedding_bag` with mode="sum": dweight[v] = sum of dy[b(n)] over the entries n with x[n] == v.

    Args:
        x, weight, offsets, lengths, padding_idx, include_last_offset: as in `embedding_bag`.
        dy: floats [B, ...] of weight's dtype, the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of weight, [V, ...].
    """
    options = dict(lengths=lengths, padding_idx=padding_idx, include_last_offset=include_last_offset)
    return _gradient("embedding_bag_sum_backward", "sum", x, weight, dy, offsets, implementation, **options)


@api
def embedding_bag_mean_backward(
    x: ArrayLike,
    weight: ArrayLike,
    dy: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    padding_idx: int | None = None,
    include_last_offset: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `embedding_bag` with mode="mean": dweight[v] = sum of dy[b(n)] / count[b(n)] over the entries n with
    x[n] == v. The arguments are those of `embedding_bag_sum_backward`."""
    options = dict(lengths=lengths, padding_idx=padding_idx, include_last_offset=include_last_offset)
    return _gradient("embedding_bag_mean_backward", "mean", x, weight, dy, offsets, implementation, **options)


@api
def embedding_bag_max_backward(
    x: ArrayLike,
    weight: ArrayLike,
    dy: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    padding_idx: int | None = None,
    include_last_offset: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `embedding_bag` with mode="max": dweight[v] = sum of dy[b(n)] over the entries n with x[n] == v that
    have the maximum of their bag, the first of those that tie. The arguments are those of `embedding_bag_sum_backward`."""
    options = dict(lengths=lengths, padding_idx=padding_idx, include_last_offset=include_last_offset)
    return _gradient("embedding_bag_max_backward", "max", x, weight, dy, offsets, implementation, **options)
