"""What each row's segment has: the transpose of the sum."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bytes
from .._core.body import Body
from .._core.case import Case
from .._core.types import Implementation
from ._arguments import arguments, ids_and_index, segments_of, sorted_of
from ._family import FAMILY, declare_with_index, spaced
from ._kernels import gathered, reduce
from ._partition import taken_by_rows
from ._references import reduce_by, take


@api
def segment_take(
    x: ArrayLike, segment_ids: ArrayLike, *, indices_are_sorted: bool = False, implementation: Implementation = None
) -> Array:
    """Each row's element of an array that has one for each segment.

    Formula:
        y[n] = x[segment_ids[n]]; dx[s] = sum of dy[n] over the rows n with segment_ids[n] == s.

    Args:
        x: array [S, ...] of any dtype, or with batches [*batch, S, ...] when segment_ids is [*batch, N].
        segment_ids: integers [N]. Rows whose id is outside [0, S), negative ids too, are 0. In any order.
        indices_are_sorted: promise that segment_ids is sorted, which saves the gradient's sort. The result is the same.
            If the promise is broken, that is unspecified.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [N, ...] (with the batches, if any), of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. The gradient of float16 and bfloat16 accumulates in float32, and rows are added in order: it has the
    same bits every time, unlike that of x[segment_ids] on a GPU.

    Source: x[segment_ids]; dgl.broadcast_nodes; torch.nn.functional.embedding.
    """
    op = "segment_take"
    x, (ids, index) = checks.array(op, "x", x), ids_and_index(op, segment_ids)
    if x.ndim < ids.ndim or x.shape[: ids.ndim - 1] != ids.shape[:-1]:
        raise ValueError(
            f"{op}: x must be [*batch, S, ...] with the batches of segment_ids, {tuple(ids.shape[:-1])}, got "
            f"{tuple(x.shape)}"
        )
    axis = ids.ndim - 1
    is_sorted = sorted_of(op, index, indices_are_sorted)
    params = dict(axis=axis, num_segments=segments_of(op, segment_ids, index, x.shape[axis], "x"), sorted=is_sorted)
    return take_or_zero(x, ids, *index, **params, implementation=implementation)


@api
def segment_take_backward(
    segment_ids: ArrayLike,
    dy: ArrayLike,
    num_segments: int,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_take`: dx[s] = sum of dy[n] over the rows n with segment_ids[n] == s.

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        dy: floats or complex numbers [N, ...], the cotangent of the result.
        num_segments: static integer, the number of rows of x.
        indices_are_sorted: as in `segment_take`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [num_segments, ...].
    """
    op = "segment_take_backward"
    dy, ids, index, params = arguments(op, dy, segment_ids, num_segments, indices_are_sorted, checks.INEXACT, name="dy")
    zero = bytes(dy.dtype.itemsize)
    return take_rows.vjp(ids, *index, dy, **params, fill=zero, implementation=implementation)


def take_or_zero(x, *ids, **params):
    """The rows that ids name, 0 for those that there are not."""
    return take_rows(x, *ids, **params, fill=bytes(x.dtype.itemsize))


def _reference(x, ids, *, axis, fill, **_):
    return (take(x, ids, axis=axis, fill=from_bytes(fill, x.dtype)),)


def _native(x, ids, *, save=False, **params):
    return (gathered(x, ids, axis=params["axis"], fill=params["fill"]),)


def _backward_reference(ids, dy, **params):
    add = lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"])
    return (reduce_by(add, 0, dy, ids, **params, empty_bits=0),)


def _backward_native(ids, dy, *, fill, **params):
    if not jnp.iscomplexobj(dy):
        return reduce("segment_sum", dy, ids, [dy.dtype], empty_bits=0, **params)
    (parts,) = reduce("segment_sum", jnp.stack([dy.real, dy.imag], -1), ids, [dy.real.dtype], empty_bits=0, **params)
    return (jax.lax.complex(parts[..., 0], parts[..., 1]),)


def _case(name, shape, ids, low, high, dtype=np.int32, is_sorted=False):
    def draw(rng):
        index = rng.integers(low, high, ids).astype(dtype)
        return spaced(rng, *shape), np.sort(index) if is_sorted else index

    return Case(name, draw, dict(indices_are_sorted=is_sorted))


take_rows = declare_with_index(
    "segment_take",
    **{**FAMILY, "operands": ("x", "segment_ids"), "differentiable": ("x",)},
    public=segment_take,
    dtypes=checks.EVERY,
    cases=(
        _case("rows", (9, 6), 37, 0, 9),
        _case("vector", (200,), 50, 0, 7, np.int8),
        _case("dropped", (6, 3), 23, -3, 9),
        _case("sorted", (11, 5), 29, -1, 12, is_sorted=True),
        _case("batched", (2, 4, 2, 2), (2, 13), 0, 4),
    ),
    results=("rows",),
    outputs=("rows",),
    residuals=("segment_ids",),
    linear=lambda params: {**params, "fill": bytes(len(params["fill"]))},
    cut=taken_by_rows,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    kernels={"forward": ("take_rows",), "backward": ("segment_sum",)},
)
