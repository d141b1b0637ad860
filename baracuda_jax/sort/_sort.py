"""Sorts of values, and of the places of values."""

from .._core import checks
from .._core.op import Body, declare
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


def _arguments(op, operand, axis, descending):
    operand = keys(op, "operand", operand)
    return operand, dict(axis=along(op, "operand", operand, axis), descending=checks.flag(op, "descending", descending))


@document(
    "y = x[p], x[p_0] <= x[p_1] <= ..., with p_i < p_{i+1} where x[p_i] == x[p_{i+1}]; dx[p_i] = dy_i",
    args=OPERAND + DESCENDING,
    returns="Array of operand's shape and dtype.",
    source="jax.numpy.sort; torch.sort",
)
def sort(operand, axis=-1, *, descending=False, implementation=None):
    """The elements along an axis, in order."""
    operand, params = _arguments("sort", operand, axis, descending)
    return _sort(operand, **params, implementation=implementation)


@document(
    "p with x[p_0] <= x[p_1] <= ..., and p_i < p_{i+1} where x[p_i] == x[p_{i+1}]",
    args=OPERAND + DESCENDING,
    returns="int32 array of operand's shape.",
    source="jax.numpy.argsort; torch.argsort with stable=True",
)
def argsort(operand, axis=-1, *, descending=False, implementation=None):
    """Where along an axis the elements are, in their order."""
    operand, params = _arguments("argsort", operand, axis, descending)
    return _argsort(operand, **params, implementation=implementation)


@document(
    "that of `sort`",
    args="        operand: array of rank 1 or more, of a float, integer or bool type.\n",
    returns="Array of operand's shape and dtype.",
    source="torch.msort",
)
def msort(operand, *, implementation=None):
    """The elements along the first axis, in ascending order."""
    operand, params = _arguments("msort", operand, 0, False)
    return _sort(operand, **params, implementation=implementation)


def sort_backward(indices, dy, axis=-1, *, implementation=None):
    """The gradient of `sort`: dx[p_i] = dy_i. It is the same for both directions.

    Args:
        indices: int32, p as `argsort` returns it: along the axis each place once.
        dy: floats of the same shape, the cotangent of the result.
        axis: as in `sort`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of operand.
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
    operands=("operand",),
    differentiable=("operand",),
    public=sort,
    dtypes=checks.REAL,
    cases=cases(_CASES),
    results=("y", "indices"),
    cut=whole_axis("operand"),
    forward=Body(_references.sort, _native),
    kernels={"forward": ("sort",), **TARGETS},
    weak=True,
)
_argsort = declare(
    "argsort",
    **AXIS,
    operands=("operand",),
    constant={"operand": NO_DERIVATIVE},
    public=argsort,
    dtypes=checks.REAL,
    cases=cases(_CASES),
    results=("indices",),
    cut=whole_axis("operand"),
    forward=Body(lambda x, **params: _references.sort(x, **params)[1:], _index_native),
    kernels={"forward": ("sort",)},
)
