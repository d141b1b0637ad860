"""Where an array is not zero."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import array, document, fill, known_size
from ._compact import declare_positions, found, positions


@api
@document
def nonzero(
    x: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """Where an array is not zero.

    Formula:
        (i_k, j_k, ...) is the k-th position, row by row, with x[i_k, j_k, ...] != 0. NaN is not zero; -0 is.

    Args:
        x: array of a float or integer type or bool, of rank 1 or more.
        {size}
        fill_value: what follows the last place: a scalar, or a tuple of one for each dimension; by default 0.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Tuple of int32 arrays [size], one for each dimension of x.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact.

    Source: jax.numpy.nonzero; torch.nonzero.
    """
    op = "nonzero"
    x = array(op, "x", x)
    if x.ndim < 1:
        raise ValueError(f"{op}: x must have at least one dimension, got a scalar")
    elements = explicit.reshape(x, -1)
    checks.positions(op, "x", elements.shape[0])
    size = known_size(op, "x", x, size, lambda: found(nonzero_elements, elements, implementation, fill=-1))
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ValueError(f"{op}: fill_value must be a scalar or {x.ndim}, one for each dimension, got {fill_value!r}")
    if x.ndim == 1 and _is_number(fills[0]):  # a position is the coordinate
        return (positions(nonzero_elements, elements, size, implementation, fill=int(fills[0])),)
    position = positions(nonzero_elements, elements, size, implementation, fill=-1)
    if all(map(_is_number, fills)):
        return _filled_by(position, shape=x.shape, fills=tuple(map(int, fills)))
    return _filled(position, [fill(op, value, jnp.int32) for value in fills], shape=x.shape)


@compiled("shape")
def _filled(position, fills, *, shape):
    is_there = position >= 0
    return tuple(
        jnp.where(is_there, along, value) for along, value in zip(_coordinates(position, shape), fills, strict=True)
    )


@compiled("shape", "fills")
def _filled_by(position, *, shape, fills):
    return _filled(position, [jnp.int32(value) for value in fills], shape=shape)


def _is_number(value):
    return isinstance(value, int | np.integer) and -(2**31) <= value < 2**31


def _coordinates(position, shape):
    """Of positions in the flat array."""
    for i, size in enumerate(shape):
        stride = math.prod(shape[i + 1 :])
        along = lax.div(position, jnp.int32(stride)) if stride > 1 else position
        yield lax.rem(along, jnp.int32(size)) if i and size else along


def _half(rng, *shape):
    return np.maximum(rng.standard_normal(shape), 0)


nonzero_elements = declare_positions(
    "nonzero",
    "nonzero",
    lambda row: row.astype(bool),
    category=OpCategory.INDEXING,
    public=nonzero,
    operands=("x",),
    constant={"x": "positions do not move with it, but jump"},
    cases=(
        Case("vector", lambda r: (_half(r, 100),), dict(size=30)),
        Case("image", lambda r: (_half(r, 7, 12),), dict(size=90, fill_value=-1)),
        Case("cube", lambda r: (_half(r, 3, 4, 5),), dict(size=33, fill_value=(9, 8, 7))),
    ),
    kernels={"forward": ("nonzero",)},
)
