"""How many elements are not zero, whether any is, and whether all are."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Axes, Implementation
from ._arguments import array, axes_of, document, masked, promoted, with_axes
from ._family import AXES, cases
from ._kernels import reduce
from ._partition import count_by_slices

_DOC = dict(dtypes="any number type or bool; NaN is not zero", precision="exact.")
_WHETHER = _DOC | dict(returns="bool array without the axes.")


@api
@document("y = number of elements x_i of a slice with x_i != 0", "jax.numpy.count_nonzero; torch.count_nonzero", **_DOC,
          returns="Array without the axes, of int64 where JAX has 64 bits, else of int32.")  # fmt: skip
def count_nonzero(
    x: ArrayLike, axis: Axes = None, *, keepdims: bool = False, implementation: Implementation = None
) -> Array:
    """Number of the elements along axes that are not zero."""
    return _count("count_nonzero", "count", x, axis, keepdims, None, True, implementation)


@api
@document("y = whether x_i != 0 for any element of a slice", "jax.numpy.any; torch.any", "where", **_WHETHER)
def any(
    x: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Whether any of the elements along axes is not zero; of none, False."""
    return _count("any", "any", x, axis, keepdims, where, False, implementation)


@api
@document("y = whether x_i != 0 for all elements of a slice", "jax.numpy.all; torch.all", "where", **_WHETHER)
def all(
    x: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Whether all of the elements along axes are not zero; of none, True."""
    return _count("all", "all", x, axis, keepdims, where, True, implementation)


def _count(op, what, x, axis, keepdims, where, nothing, implementation):
    x = array(op, "x", x, checks.EVERY)
    axes = axes_of(op, "x", x, axis)
    x = masked(op, "x", x, where, nothing)
    dtype = promoted(jnp.dtype(bool)) if what == "count" else jnp.dtype(bool)
    return with_axes(op, counted(what, x, axes, dtype, implementation), axes, keepdims)


def counted(what, x, axes, dtype, implementation):
    return _OPS[what](x, axes=axes, dtype=dtype, implementation=implementation)


def _declare(public, what):
    def reference(x, *, axes, dtype):
        counted = x if x.dtype == bool else x != 0
        if what == "count":
            return (counted.sum(axes, dtype=dtype),)
        return (counted.any(axes) if what == "any" else counted.all(axes),)

    def native(x, *, axes, dtype, save):
        x = x != 0 if jnp.iscomplexobj(x) else x
        return reduce("reduce_count", x, axes, [dtype], what=what)

    return declare(
        public.__name__,
        **AXES,
        operands=("x",),
        constant={"x": "the result is made of counts"},
        public=public,
        dtypes=checks.EVERY,
        cases=cases(),
        cut=count_by_slices(what),
        forward=Body(reference, native),
        kernels={"forward": ("reduce_count",)},
    )


_OPS = {"count": _declare(count_nonzero, "count"), "any": _declare(any, "any"), "all": _declare(all, "all")}
