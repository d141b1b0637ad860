"""Sorts of values, and of the positions of values."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from . import _kernels, _references
from ._arguments import DESCENDING, OPERAND, along, backward_arguments, document, keys
from ._family import AXIS, NO_DERIVATIVE, cases, whole_axis
from ._permutation import DERIVATIVES, TARGETS

_CASES = {
    "rows": ((5, 41), dict(axis=-1)),
    "columns": ((37, 6), dict(axis=0)),
    "middle descending": ((3, 17, 4), dict(axis=1, descending=True)),
    "vector": ((150,), {}),
}


def _arguments(op, x, axis, descending):
    x = keys(op, "x", x)
    return x, dict(axis=along(op, "x", x, axis), descending=checks.flag(op, "descending", descending))


@api
@document(
    "y = x[p], x[p_0] <= x[p_1] <= ..., with p_i < p_{i+1} where x[p_i] == x[p_{i+1}]; dx[p_i] = dy_i",
    args=OPERAND + DESCENDING,
    returns="Array of x's shape and dtype.",
    source="jax.numpy.sort; torch.sort",
)
def sort(x: ArrayLike, axis: int = -1, *, descending: bool = False, implementation: Implementation = None) -> Array:
    """Sort along an axis."""
    x, params = _arguments("sort", x, axis, descending)
    return _sort(x, **params, implementation=implementation)


@api
@document(
    "p with x[p_0] <= x[p_1] <= ..., and p_i < p_{i+1} where x[p_i] == x[p_{i+1}]",
    args=OPERAND + DESCENDING,
    returns="int32 array of x's shape.",
    source="jax.numpy.argsort; torch.argsort with stable=True",
)
def argsort(x: ArrayLike, axis: int = -1, *, descending: bool = False, implementation: Implementation = None) -> Array:
    """Indices that sort x along an axis."""
    x, params = _arguments("argsort", x, axis, descending)
    return _argsort(x, **params, implementation=implementation)


@api
@document(
    "that of `sort`",
    args="        x: array of rank 1 or more, of a float, integer or bool type.\n",
    returns="Array of x's shape and dtype.",
    source="torch.msort",
)
def msort(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Sort along the first axis, in ascending order."""
    x, params = _arguments("msort", x, 0, False)
    return _sort(x, **params, implementation=implementation)


@api
def sort_backward(indices: ArrayLike, dy: ArrayLike, axis: int = -1, *, implementation: Implementation = None) -> Array:
    """The gradient of `sort`: dx[p_i] = dy_i. It is the same for both directions.

    Args:
        indices: int32, p as `argsort` returns it: along the axis each position once.
        dy: floats of the same shape, the cotangent of the result.
        axis: as in `sort`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    indices, dy, axis = backward_arguments("sort_backward", indices, dy, axis)
    return _sort.vjp(indices, dy, axis=axis, descending=False, implementation=implementation)


def _native(x, *, save, **params):
    return _kernels.sort(x, **params, indices=save)


def _index_native(x, *, save, **params):
    return _kernels.sort(x, **params, indices=True)[1:]


_sort = declare(
    "sort",
    **AXIS,
    **DERIVATIVES,
    operands=("x",),
    differentiable=("x",),
    public=sort,
    dtypes=checks.REAL,
    cases=cases(_CASES),
    results=("y", "indices"),
    cut=whole_axis("x"),
    forward=Body(_references.sort, _native),
    kernels={"forward": ("sort",), **TARGETS},
    weak=True,
)
_argsort = declare(
    "argsort",
    **AXIS,
    operands=("x",),
    constant={"x": NO_DERIVATIVE},
    public=argsort,
    dtypes=checks.REAL,
    cases=cases(_CASES),
    results=("indices",),
    cut=whole_axis("x"),
    forward=Body(lambda x, **params: _references.sort(x, **params)[1:], _index_native),
    kernels={"forward": ("sort",)},
)
