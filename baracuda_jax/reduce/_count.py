"""How many cells are not zero, whether any is, and whether all are."""

import jax.numpy as jnp

from .._core import checks
from .._core.op import Body, declare
from ._arguments import array, axes_of, document, masked, promoted, with_axes
from ._family import AXES, cases
from ._kernels import reduce
from ._partition import count_by_lines

_DOC = dict(dtypes="any number type or bool; NaN is not zero", precision="exact.")
_WHETHER = _DOC | dict(returns="bool array without the axes.")


@document("y = number of cells x_i of a line with x_i != 0", "jax.numpy.count_nonzero; torch.count_nonzero", **_DOC,
          returns="Array without the axes, of int64 where JAX has 64 bits, else of int32.")  # fmt: skip
def count_nonzero(a, axis=None, *, keepdims=False, implementation=None):
    """Number of the cells along axes that are not zero."""
    return _count("count_nonzero", "count", a, axis, keepdims, None, True, implementation)


@document("y = whether x_i != 0 for any cell of a line", "jax.numpy.any; torch.any", "where", **_WHETHER)
def any(a, axis=None, *, keepdims=False, where=None, implementation=None):
    """Whether any of the cells along axes is not zero; of none, False."""
    return _count("any", "any", a, axis, keepdims, where, False, implementation)


@document("y = whether x_i != 0 for all cells of a line", "jax.numpy.all; torch.all", "where", **_WHETHER)
def all(a, axis=None, *, keepdims=False, where=None, implementation=None):
    """Whether all of the cells along axes are not zero; of none, True."""
    return _count("all", "all", a, axis, keepdims, where, True, implementation)


def _count(op, what, a, axis, keepdims, where, nothing, implementation):
    a = array(op, "a", a, checks.EVERY)
    axes = axes_of(op, "a", a, axis)
    a = masked(op, "a", a, where, nothing)
    dtype = promoted(jnp.dtype(bool)) if what == "count" else jnp.dtype(bool)
    return with_axes(op, counted(what, a, axes, dtype, implementation), axes, keepdims)


def counted(what, a, axes, dtype, implementation):
    return _OPS[what](a, axes=axes, dtype=dtype, implementation=implementation)


def _declare(public, what):
    def reference(a, *, axes, dtype):
        if what == "count":
            return ((a != 0).sum(axes, dtype=dtype),)
        return ((a != 0).any(axes) if what == "any" else (a != 0).all(axes),)

    def native(a, *, axes, dtype, save):
        a = a != 0 if jnp.iscomplexobj(a) else a
        return reduce("reduce_count", a, axes, [dtype], what=what)

    return declare(
        public.__name__,
        **AXES,
        operands=("a",),
        constant={"a": "the result is made of counts"},
        public=public,
        dtypes=checks.EVERY,
        cases=cases(),
        cut=count_by_lines(what),
        forward=Body(reference, native),
        kernels={"forward": ("reduce_count",)},
    )


_OPS = {"count": _declare(count_nonzero, "count"), "any": _declare(any, "any"), "all": _declare(all, "all")}
