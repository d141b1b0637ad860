"""The largest or smallest few elements along an axis."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from . import _kernels, _references
from ._arguments import OPERAND, along, backward_arguments, document, keys, rank
from ._family import AXIS, cases, whole_axis
from ._permutation import DERIVATIVES, TARGETS

_K = """\
        k: static integer, how many; from 0 to the length of the axis.
"""
_LARGEST = """\
        largest: the largest elements, in descending order; with False the smallest, in ascending order.
"""


@api
@document(
    "the first k of sort(x, descending=largest), and of argsort; dx[p_i] = dy_i, 0 elsewhere",
    args=OPERAND.replace("        axis:", f"{_K}        axis:") + _LARGEST,
    returns="(values, indices): arrays with k along the axis, of x's dtype and int32. Of elements that tie the one "
    "with the lower index comes first.",
    source="torch.topk; jax.lax.top_k",
)
def topk(
    x: ArrayLike, k: int, axis: int = -1, *, largest: bool = True, implementation: Implementation = None
) -> tuple[Array, Array]:
    """Largest k elements along an axis, in order, and their indices."""
    x = keys("topk", "x", x)
    axis = along("topk", "x", x, axis)
    count = x.shape[axis]
    k = rank("topk", "k", k, 0, count, "the length of x along axis")
    params = dict(axis=axis, k=k, descending=checks.flag("topk", "largest", largest), count=count)
    return tuple(_topk(x, **params, save=True, implementation=implementation))


top_k = topk


@api
def topk_backward(
    indices: ArrayLike, dy: ArrayLike, count: int, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """The gradient of `topk`: dx[p_i] = dy_i, 0 elsewhere.

    Args:
        indices: int32, p as `topk` returns it: along the axis no position twice.
        dy: floats of the same shape, the cotangent of the values.
        count: static integer, the length of x along the axis.
        axis: as in `topk`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    indices, dy, axis = backward_arguments("topk_backward", indices, dy, axis)
    k = dy.shape[axis]
    count = checks.integer("topk_backward", "count", count, k)
    return _topk.vjp(indices, dy, axis=axis, k=k, descending=True, count=count, implementation=implementation)


def _reference(x, *, count, **params):
    return _references.sort(x, **params)


def _native(x, *, save, count, **params):
    return _kernels.sort(x, **params, indices=save)


_topk = declare(
    "topk",
    **AXIS,
    **DERIVATIVES,
    operands=("x",),
    differentiable=("x",),
    public=topk,
    dtypes=checks.REAL,
    cases=cases(
        {
            "rows": ((5, 41), dict(k=3)),
            "columns": ((37, 6), dict(k=5, axis=0)),
            "smallest": ((3, 17, 4), dict(k=6, axis=1, largest=False)),
            "long": ((2, 300), dict(k=7)),
        }
    ),
    results=("y", "indices"),
    cut=whole_axis("x"),
    forward=Body(_reference, _native),
    kernels={"forward": ("sort",), **TARGETS},
    weak=True,
)
