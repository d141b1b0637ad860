"""The adjoint of broadcasting."""

from typing import Literal

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation, Integers
from ._arguments import array, static_shape
from ._extremum import max as largest
from ._extremum import min as smallest
from ._extremum import weakest
from ._prod import prod
from ._sum import sum as total


@api
def unbroadcast(
    x: ArrayLike,
    shape: int | Integers,
    op: Literal["sum", "max", "min", "prod"] = "sum",
    *,
    implementation: Implementation = None,
) -> Array:
    """Reduces x to a shape that broadcasts to x's: over the dimensions along which broadcasting would repeat it.

    Formula:
        y[j] = sum (or max, min, product) of the elements of x to which broadcasting takes element j of an array of this
        shape.

    Args:
        x: array of any rank: any number type or bool; of real ones for "max" and "min".
        shape: tuple of static integers, which broadcasts to x's.
        op: "sum", "max", "min" or "prod".
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of this shape, of the dtype that the op gives. Of no elements: 0, the lowest value, the highest, 1.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: that of `sum`, `max`, `min` and `prod`; so are the derivatives.

    Source: torch.Tensor.sum_to_size; the transpose of jax.numpy.broadcast_to.
    """
    name = "unbroadcast"
    checks.choice(name, "op", op, tuple(_OPS))
    x = checks.array(name, "x", x)
    shape = static_shape(name, shape)
    before = x.ndim - len(shape)
    if before < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[before:], strict=True)):
        raise ValueError(f"{name}: shape must broadcast to x's shape {x.shape}, got {shape}")
    axes = tuple(i for i, n in enumerate(x.shape) if i < before or (shape[i - before] == 1 and n != 1))
    options = {}
    if op in ("max", "min"):
        array(name, "x", x, checks.REAL)
        if not all(x.shape[i] for i in axes):
            options = {"initial": np.asarray(weakest(x.dtype, op == "max"), x.dtype)}
    return _OPS[op](x, axes, **options, implementation=implementation).reshape(shape)


reduce_to = unbroadcast
_OPS = {"sum": total, "max": largest, "min": smallest, "prod": prod}
