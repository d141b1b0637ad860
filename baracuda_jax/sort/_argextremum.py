"""Where along an axis the largest and the smallest element are."""

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from . import _kernels
from ._arguments import along, document, keys
from ._family import AXIS, NO_DERIVATIVE, cases, whole_axis

_DOC = dict(
    args="""\
        x: array of rank 1 or more, of a float, integer or bool type.
        axis: static integer, the axis; a negative one counts from the last; None for all, as one vector.
        keepdims: keep the axis, with length 1.
""",
    returns="int32 array without the axis.",
    precision="exact. The first of the elements that tie; a NaN beats every number, and the first NaN stays.",
)


@api
@document("the smallest i with x_i = max(x)", source="jax.numpy.argmax; torch.argmax", **_DOC)
def argmax(
    x: ArrayLike, axis: int | None = None, *, keepdims: bool = False, implementation: Implementation = None
) -> Array:
    """Index of the largest element along an axis."""
    return _arg("argmax", _max, x, axis, keepdims, implementation)


@api
@document("the smallest i with x_i = min(x)", source="jax.numpy.argmin; torch.argmin", **_DOC)
def argmin(
    x: ArrayLike, axis: int | None = None, *, keepdims: bool = False, implementation: Implementation = None
) -> Array:
    """Index of the smallest element along an axis."""
    return _arg("argmin", _min, x, axis, keepdims, implementation)


def _arg(op, which, x, axis, keepdims, implementation):
    x = keys(op, "x", x)
    keepdims = checks.flag(op, "keepdims", keepdims)
    removed = tuple(range(x.ndim))
    if axis is None:
        x, axis = explicit.reshape(x, -1), 0
        along(op, "x", x, axis)
    else:
        axis = along(op, "x", x, axis)
        removed = (axis,)
    if not x.shape[axis]:
        raise ValueError(f"{op}: x must have at least one element along axis, got shape {x.shape}")
    index = which(x, axis=axis, implementation=implementation)
    return jnp.expand_dims(index, removed) if keepdims else index


def _first(plain, x, axis):
    """Which of several NaNs XLA finds is up to how it divides a reduction on a GPU."""
    index = plain(x, axis, jnp.int32)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return index
    missing = jnp.isnan(x)
    return jnp.where(missing.any(axis), lax.argmax(missing, axis, jnp.int32), index)


def _declare(name, public, plain):
    return declare(
        name,
        **AXIS,
        operands=("x",),
        constant={"x": NO_DERIVATIVE},
        public=public,
        dtypes=checks.REAL,
        cases=cases(
            {
                "rows": ((5, 41), dict(axis=-1)),
                "columns": ((37, 6), dict(axis=0, keepdims=True)),
                "middle": ((3, 17, 70), dict(axis=1)),
                "all": ((13, 11), {}),
            }
        ),
        results=("indices",),
        cut=whole_axis("x", reduces=True),
        forward=Body(
            lambda x, *, axis: (_first(plain, x, axis),),
            lambda x, *, save, axis: (_kernels.argextremum(x, axis=axis, is_max=name == "argmax"),),
        ),
        kernels={"forward": ("argextremum",)},
    )


_max = _declare("argmax", argmax, lax.argmax)
_min = _declare("argmin", argmin, lax.argmin)
