"""The arguments of reductions: their documentation and their checks."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks
from .._core.compiled import compiled
from .._core.types import Decorator
from ._kernels import kept_of

_DOC = """

    Formula:
        {formula}

    Args:
        {name}: array of {dtypes}.
{before}        axis: static integer or tuple of integers, the axes that are reduced; negative ones count from the last; None
            for all, () for none.
        keepdims: keep the axes, with size 1.
{more}        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision} The order of the elements is decided by the shapes alone: results are the same bits every time.

    Source: {source}.
    """

ROUNDING = "float16 and bfloat16 are computed in float32 and rounded once."
ARGUMENTS = {
    "dtype": "        dtype: the dtype that {name} is cast to before.\n",
    "initial": "        initial: a number that is one more element of each slice.\n",
    "where": "        where: bool array that broadcasts to {name}'s shape, the elements that count; None for all.\n",
    "ddof": "        ddof: static number, what is taken from the number of elements; where none is left the result is NaN.\n"
    "        correction: another name for ddof.\n",
    "return_residuals": "        return_residuals: also return {residuals}, which the backward function reads.\n",
}


def document(
    formula, source, *arguments, before="", dtypes="a float type", returns=None, name="x", **text
) -> Decorator:
    def decorate(fun):
        more = "".join(ARGUMENTS[key].format(name=name, **text) for key in arguments)
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(
            formula=formula,
            source=source,
            before=before,
            dtypes=dtypes,
            name=name,
            more=more,
            returns=returns or f"Array of {name}'s dtype, without the axes.",
            precision=text.get("precision", ROUNDING),
        )
        return fun

    return decorate


def array(op, name, x, dtypes, to_float=False):
    """An array of one of the dtypes; with to_float, integers and bool become floats of as many bits, at least
    32."""
    x = checks.array(op, name, x)
    if to_float and not jnp.issubdtype(x.dtype, jnp.inexact):
        x = x.astype(jnp.float64 if x.dtype.itemsize == 8 else jnp.float32)
    checks.dtype(op, name, x, dtypes)
    return x


def axes_of(op, name, x, axis, argument="axis"):
    """The axes, ascending."""
    if axis is None:
        return tuple(range(x.ndim))
    if not isinstance(axis, tuple | list):
        return (checks.axis(op, name, x, axis, argument),)
    axes = [checks.axis(op, name, x, a, f"{argument}[{i}]") for i, a in enumerate(axis)]
    if len(set(axes)) < len(axes):
        raise ValueError(f"{op}: {argument} must name each axis once, got {tuple(axis)}")
    return tuple(sorted(axes))


def elements_of(x, axes):
    """How many elements a slice has."""
    return math.prod(x.shape[i] for i in axes)


def cast(op, x, dtype):
    if dtype is None:
        return x
    try:
        x = x.astype(dtype)
    except TypeError as error:
        raise TypeError(f"{op}: dtype must be a dtype, got {dtype!r}") from error
    if x.dtype == bool:
        raise TypeError(f"{op}: dtype must be a number's, got bool")
    return x


def masked(op, name, x, where, nothing):
    """x, with the number `nothing` in the elements that don't count."""
    return x if where is None else only(x, mask_of(op, name, x, where), nothing=nothing)


@compiled("nothing")
def only(x, mask, *, nothing):
    return jnp.where(mask, x, jnp.asarray(nothing, x.dtype))


def mask_of(op, name, x, where):
    return jnp.broadcast_to(checks.mask(op, where, x, name), x.shape)


def with_initial(op, y, initial, combine):
    """The result with one more element, a number."""
    if initial is None:
        return y
    initial = checks.array(op, "initial", initial)
    if initial.ndim:
        raise ValueError(f"{op}: initial must be a number, got shape {initial.shape}")
    return combine(y, initial.astype(y.dtype))


def with_axes(op, y, axes, keepdims):
    return jnp.expand_dims(y, axes) if checks.flag(op, "keepdims", keepdims) else y


def with_residuals(op, out, axes, keepdims, return_residuals):
    """The result, or all of them."""
    if not return_residuals:
        return with_axes(op, out, axes, keepdims)
    return tuple(with_axes(op, y, axes, keepdims) for y in out)


def promoted(dtype):
    """What sums and products of a dtype have: of integers and bool, the widest there is."""
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.dtype(dtype)
    return jax.dtypes.canonicalize_dtype(np.uint64 if jnp.issubdtype(dtype, jnp.unsignedinteger) else np.int64)


def static_shape(op, shape):
    if not isinstance(shape, tuple | list):
        raise TypeError(f"{op}: shape must be a tuple of integers, got {shape!r}")
    return tuple(checks.integer(op, f"shape[{i}]", n, 0) for i, n in enumerate(shape))


def per_slice(op, x_name, x, axes, keepdims, arrays, **dtypes):
    """Arrays of which each slice has an element, by name, without the axes. They have x's dtype where `dtypes` has no
    other."""
    kept = checks.flag(op, "keepdims", keepdims)
    want = [1 if i in axes else n for i, n in enumerate(x.shape) if kept or i not in axes]
    found = []
    for name, y in arrays.items():
        y = checks.array(op, name, y)
        checks.shape(op, name, y, want, f"that of {x_name} reduced")
        found.append(y.reshape(kept_of(x.shape, axes)))
    for name, y in zip(arrays, found, strict=True):
        if name in dtypes:
            checks.saved_dtype(op, name, y, jnp.dtype(dtypes[name]), x_name, x)
        else:
            checks.same_dtype(op, name, y, x_name, x)
    return found
