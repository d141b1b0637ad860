"""Values in the order of keys."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from . import _kernels, _references
from ._arguments import DESCENDING, along, backward_arguments, document, keys
from ._family import AXIS, cases, whole_axis
from ._permutation import DERIVATIVES, TARGETS
from ._sort import _sort

_ARGUMENTS = """\
        keys: array of rank 1 or more, of a float, integer or bool type.
        values: array of keys' shape, of such a type or complex; or a tuple or list of several.
        axis: static integer, the axis; a negative one counts from the last.
"""


@api
@document(
    "(k[p], v[p]) with p = argsort(k); dk[p_i] = dy_i for the keys' cotangent, dv[p_i] = dy_i for each value's",
    args=_ARGUMENTS + DESCENDING,
    returns="The sorted keys, and the values, moved alike: an array, or a tuple of arrays, as they were given.",
    source="jax.lax.sort_key_val; torch.sort and torch.gather",
)
def sort_key_val(
    keys: ArrayLike,
    values: ArrayLike,
    axis: int = -1,
    *,
    descending: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Sort keys along an axis, and values by their keys."""
    keys, several, params = _arguments("sort_key_val", keys, values, axis, descending)
    # One sort serves all: equal calls of a compiled program are one.
    moved = [_values(keys, x, **params, implementation=implementation) for x in several]
    ordered, _ = _sort(keys, **params, save=True, implementation=implementation)
    return ordered, tuple(moved) if isinstance(values, tuple | list) else moved[0]


@api
def sort_key_val_backward(
    indices: ArrayLike, dy: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """The gradient of `sort_key_val` in a value: dv[p_i] = dy_i.

    Args:
        indices: int32, p as `argsort` of the keys returns it: along the axis each position once.
        dy: floats of the same shape, the cotangent of the moved value.
        axis: as in `sort_key_val`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of the value.
    """
    indices, dy, axis = backward_arguments("sort_key_val_backward", indices, dy, axis)
    return _values.vjp(indices, dy, axis=axis, descending=False, implementation=implementation)


def _arguments(op, keys_, values, axis, descending):
    keys_ = keys(op, "keys", keys_)
    several = values if isinstance(values, tuple | list) else (values,)
    names = [f"values[{i}]" for i in range(len(several))] if isinstance(values, tuple | list) else ["values"]
    several = [checks.array(op, name, x) for name, x in zip(names, several, strict=True)]
    for name, x in zip(names, several, strict=True):
        checks.dtype(op, name, x, checks.EVERY)
        checks.shape(op, name, x, keys_.shape, "that of keys")
    axis, descending = along(op, "keys", keys_, axis), checks.flag(op, "descending", descending)
    return keys_, several, dict(axis=axis, descending=descending)


def _reference(keys, values, *, axis, descending):
    _, index = _references.sort(keys, axis=axis, descending=descending)
    return _references.take(values, index, axis), index


def _native(keys, values, *, save, axis, descending):
    _, index = _kernels.sort(keys, axis=axis, descending=descending, indices=True)
    return (_kernels.take(values, index, axis), index)[: 2 if save else 1]


_values = declare(
    "sort_key_val",
    **AXIS,
    **DERIVATIVES,
    operands=("keys", "values"),
    differentiable=("values",),
    constant={"keys": "the order of values does not move with keys"},
    public=sort_key_val,
    output=1,
    dtypes=checks.REAL,
    cases=cases(
        {
            "rows": ((5, 41), dict(axis=-1)),
            "columns": ((37, 6), dict(axis=0)),
            "middle descending": ((3, 17, 4), dict(axis=1, descending=True)),
        },
        arrays=2,
    ),
    results=("y", "indices"),
    cut=whole_axis("keys", "values"),
    weak=True,
    forward=Body(_reference, _native),
    kernels={"forward": ("sort", "take_along"), **TARGETS},
)
