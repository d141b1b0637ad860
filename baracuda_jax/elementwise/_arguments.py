"""The arguments of elementwise ops: their documentation and their checks."""

import inspect
import math
import numbers

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, promote
from .._core.types import Decorator
from .._core.wide import wide, wide_dtype

_DOC = """

    Formula:
        {formula}

    Args:
        {args}
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic, which is plain JAX: XLA fuses it
            with what comes before and after.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision}

    Source: {source}
    """

BOOL = ("bool",)
PRECISION = "float16 and bfloat16 compute in float32. NaN propagates."


def document(formula, args, source, returns="An array of x's shape and dtype.", precision=PRECISION) -> Decorator:
    indent = lambda text, by: ("\n" + by * " ").join(line.strip() for line in text.strip().splitlines())

    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(
            formula=indent(formula, 8),
            args="\n        ".join(inspect.cleandoc(args).splitlines()),
            source=source,
            returns=returns,
            precision=precision,
        )
        return fun

    return decorate


def listed(dtypes):
    """For readers."""
    kinds = {checks.FLOATS: "floats", checks.INEXACT: "floats, complex64, complex128"}
    return kinds.get(tuple(dtypes)) or ", ".join(dtypes)


def floats(op, name, value, dtypes=checks.FLOATS):
    """An array of floats, or of another of the dtypes that carries derivatives."""
    x = checks.array(op, name, value)
    checks.dtype(op, name, x, derivable(dtypes))
    return x


def derivable(dtypes):
    return tuple(dtype for dtype in dtypes if dtype in checks.INEXACT)


def cotangent(op, dy, x, name="x"):
    """The cotangent of a result that has the shape and dtype of x."""
    dy = checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, name, x)
    checks.shape(op, "dy", dy, x.shape, f"that of {name}")
    return dy


def number(op, name, value):
    """A static number."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{op}: {name} must be a static number, got a traced value; under jit, pass it as a Python number or mark it in "
            "static_argnames"
        )
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.number):
        raise TypeError(f"{op}: {name} must be a static number, got {value!r}")
    value = float(value)
    if math.isnan(value):
        raise ValueError(f"{op}: {name} must be a number, got nan")
    return value


def weight(op, value, name, x):
    """A weight, of x's dtype, or float32 with half precision; a Python number gets the type that is computed in."""
    dtype = wide_dtype(x.dtype)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return promote.cast(jnp.asarray(value), dtype, is_weak=True)
    value = checks.array(op, "weight", value)
    if value.dtype not in (x.dtype, dtype):
        either = x.dtype.name if dtype == x.dtype else f"{x.dtype.name}, or float32"
        raise TypeError(f"{op}: weight must have the dtype of {name}, {either}, got {value.dtype.name}")
    return value


def widen(*arrays):
    return [wide(x) for x in arrays]


def broadcast(op, names, shapes):
    try:
        return jnp.broadcast_shapes(*shapes)
    except ValueError:
        some = f"{', '.join(names[:-1])} and {names[-1]}"
        raise ValueError(f"{op}: {some} must broadcast, got shapes {', '.join(map(str, shapes))}") from None


def aligned(x, rank):
    """x with dimensions of size 1 before its own."""
    return jax.lax.expand_dims(x, range(rank - x.ndim)) if x.ndim < rank else x


def broadcasting(op, names, arrays):
    """The arrays, of one rank, and the shapes that they had, which must broadcast."""
    shapes = [x.shape for x in arrays]
    rank = len(broadcast(op, names, shapes))
    return [aligned(x, rank) for x in arrays], shapes


def cotangent_of_result(op, dy, arrays, like, like_name, name="dy"):
    """The cotangent of a result that has the shape to which the arrays broadcast, and the dtype of one."""
    dy = checks.array(op, name, dy)
    checks.same_dtype(op, name, dy, like_name, like)
    checks.shape(op, name, dy, jnp.broadcast_shapes(*(x.shape for x in arrays)), "that of the result")
    return dy
