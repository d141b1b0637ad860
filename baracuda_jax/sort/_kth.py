"""The k-th smallest element along an axis."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import full
from .._core.types import Implementation
from ._arguments import OPERAND, along, backward_arguments, document, keys, rank
from ._family import cases
from ._statistics import statistics

_K = """\
        k: static integer, from 1, the smallest element, to the length of the axis.
"""
_KEEP = """\
        keepdims: keep the axis, with length 1.
"""


@api
@document(
    "y = sort(x)_{k-1}, at the position argsort(x)_{k-1}; dx is dy there, 0 elsewhere",
    args=OPERAND.replace("        axis:", f"{_K}        axis:") + _KEEP,
    returns="(values, indices): arrays without the axis, of x's dtype and int32.",
    source="torch.kthvalue",
)
def kthvalue(
    x: ArrayLike, k: int, axis: int = -1, *, keepdims: bool = False, implementation: Implementation = None
) -> tuple[Array, Array]:
    """The k-th smallest element along an axis, and its index."""
    x = keys("kthvalue", "x", x)
    axis = along("kthvalue", "x", x, axis)
    count = x.shape[axis]
    k = rank("kthvalue", "k", k, 1, count, "the length of x along axis")
    keep = checks.flag("kthvalue", "keepdims", keepdims)
    rows, ranks = jnp.moveaxis(x, axis, -1), full(1, k - 1, jnp.int32)
    found = _kthvalue(rows, ranks, count=count, save=True, implementation=implementation)
    return tuple(jnp.moveaxis(y, -1, axis) if keep else y[..., 0] for y in found)


@api
def kthvalue_backward(indices: ArrayLike, dy: ArrayLike, count: int, *, implementation: Implementation = None) -> Array:
    """The gradient of elements of each row, such as those of `kthvalue`, `median` and `quantile`: dx[p_j] is the sum of dy_j
    over the j with that p_j, 0 elsewhere.

    Args:
        indices: int32 [..., m], p: where in its row of `count` elements each is.
        dy: floats of the same shape, the cotangent of the elements.
        count: static integer, the length of a row.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of the rows, [..., count].
    """
    indices, dy, _ = backward_arguments("kthvalue_backward", indices, dy, -1)
    count = checks.integer("kthvalue_backward", "count", count, 1)
    return _kthvalue.vjp(indices, dy, count=count, implementation=implementation)


_kthvalue = statistics(
    "kthvalue",
    "x",
    public=kthvalue,
    dtypes=checks.REAL,
    cases=cases(
        {
            "rows": ((5, 41), dict(k=7)),
            "columns": ((37, 6), dict(k=37, axis=0)),
            "middle": ((3, 17, 4), dict(k=1, axis=1, keepdims=True)),
            "long": ((2, 1100), dict(k=400)),
        }
    ),
)
