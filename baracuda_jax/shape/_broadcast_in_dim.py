"""Broadcasting to a shape, with the dimensions of the result that are the operand's given by name.

Data flow: that of `repeat`, of an operand that has size 1 along the new dimensions. The gradient sums over these in a fixed
order. Pattern: tile.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ._family import OF_X, case, operand, sizes
from ._partition import whole_behind_batches
from ._repeat import MOST_AXES, axes_and_batches, copies, sum_of_copies


@api
def broadcast_in_dim(
    x: ArrayLike, shape: int | Integers, broadcast_dimensions: Integers, *, implementation: Implementation = None
) -> Array:
    """Broadcast to a shape, each dimension of x to a chosen dimension of the result.

    Formula:
        y[i_1, ..., i_k] = x[j_1, ..., j_m], where j_n is i at dimension broadcast_dimensions[n], or 0 where x has size 1;
        dx[j] = sum of dy over all elements that x[j] was copied to.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        shape: shape of the result, static integers.
        broadcast_dimensions: static integers, ascending, one for each dimension of x: the dimension of the result that it
            becomes. x has the result's size there, or size 1.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [*shape] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; ValueError for more than 8
            repeated dimensions that can't be merged with their neighbors.

    Precision: values are copied as they are. The gradient's sums are formed in float32 for float16 and bfloat16, in the
        dtype itself for others, in an order that depends on the shapes alone: the same bits every time.

    Source: jax.lax.broadcast_in_dim.
    """
    op = "broadcast_in_dim"
    x = operand(op, "x", x)
    params = _params(op, tuple(x.shape), sizes(op, shape), broadcast_dimensions)
    return _broadcast_in_dim(x, **params, implementation=implementation)


@api
def broadcast_in_dim_backward(
    dy: ArrayLike,
    broadcast_dimensions: Integers,
    shape: int | Integers | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `broadcast_in_dim`: the sum of dy over all elements that one of x was copied to.

    Args:
        dy: floats or complex, the cotangent of the result.
        broadcast_dimensions: as for `broadcast_in_dim`.
        shape: the shape of x; by default that of dy along broadcast_dimensions, which must be given where x has size 1.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "broadcast_in_dim_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    if shape is None:
        shape = tuple(dy.shape[i] for i in _dimensions(op, dy.ndim, broadcast_dimensions))
    params = _params(op, sizes(op, shape), tuple(dy.shape), broadcast_dimensions)
    return _broadcast_in_dim.vjp(dy, **params, implementation=implementation)


def _dimensions(op, rank, given):
    if not isinstance(given, tuple | list | np.ndarray):
        raise TypeError(f"{op}: broadcast_dimensions must be a tuple of integers, got {given!r}")
    found = tuple(checks.integer(op, f"broadcast_dimensions[{i}]", d, 0) for i, d in enumerate(given))
    if any(d >= rank for d in found) or any(a >= b for a, b in itertools.pairwise(found)):
        raise ValueError(
            f"{op}: broadcast_dimensions must ascend and be below {rank}, the rank of the result, got {found}"
        )
    return found


def _params(op, of_x, shape, broadcast_dimensions):
    dims = _dimensions(op, len(shape), broadcast_dimensions)
    if len(dims) != len(of_x):
        raise ValueError(
            f"{op}: broadcast_dimensions must have one number for each of {len(of_x)} dimensions, got {dims}"
        )
    for i, (n, d) in enumerate(zip(of_x, dims, strict=True)):
        if n not in (1, shape[d]):
            raise ValueError(
                f"{op}: x must have size 1 or {shape[d]} along dimension {i}, which becomes dimension {d} of {shape}, "
                f"got shape {of_x}"
            )
    params = {"of_x": of_x, "shape": shape, "dims": dims}
    count = len(axes_and_batches(**_tiled(**params))[1])
    if count > MOST_AXES:
        raise ValueError(
            f"{op}: x may be repeated along at most {MOST_AXES} dimensions, after merging neighbors, got {count}"
        )
    return params


def _widened(of_x, shape, dims):
    """x's shape, with 1 for the new dimensions."""
    return tuple(of_x[dims.index(i)] if i in dims else 1 for i in range(len(shape)))


def _reference(x, *, of_x, shape, dims):
    batch = x.shape[: x.ndim - len(dims)]
    new = [len(batch) + i for i in range(len(shape)) if i not in dims]
    return (jnp.broadcast_to(lax.expand_dims(x, new), (*batch, *shape)),)


def _backward_reference(dy, *, of_x, shape, dims):
    lead = dy.ndim - len(shape)
    summed = [lead + i for i, n in enumerate(_widened(of_x, shape, dims)) if n != shape[i] or i not in dims]
    new = [lead + i for i in range(len(shape)) if i not in dims]
    return (lax.squeeze(wide(dy).sum(summed, keepdims=True).astype(dy.dtype), new),)


def _tiled(of_x, shape, dims):
    full = _widened(of_x, shape, dims)
    return dict(shape=full, repeats=tuple(1 if n == m else m for n, m in zip(full, shape, strict=True)))


def _native(x, *, save=False, **params):
    tiled = _tiled(**params)
    batch = x.shape[: x.ndim - len(params["dims"])]
    return [copies(x.reshape(*batch, *tiled["shape"]), **tiled)]


def _backward_native(dy, **params):
    batch = dy.shape[: dy.ndim - len(params["shape"])]
    return [sum_of_copies(dy, **_tiled(**params)).reshape(*batch, *params["of_x"])]


def _case(name, shape, result, dims):
    return case(name, shape, shape=result, broadcast_dimensions=dims)


_broadcast_in_dim = declare(
    "broadcast_in_dim",
    **OF_X,
    public=broadcast_in_dim,
    cases=(
        _case("plane", (5,), (5, 7), (0,)),
        _case("last", (8,), (3, 8), (1,)),
        _case("space", (4,), (3, 4, 5), (1,)),
        _case("copies", (6,), (2, 3, 6), (2,)),
        _case("two dimensions", (3, 5), (3, 4, 5), (0, 2)),
        _case("size 1", (2, 1), (4, 2, 3), (1, 2)),
    ),
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    cut=whole_behind_batches(lambda params: (len(params["dims"]), len(params["shape"]))),
    kernels={"forward": ("repeat",), "backward": ("repeat_backward",)},
    default="xla",
)
