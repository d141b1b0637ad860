"""The arguments of sorts: their documentation and their checks."""

from .._core import checks
from .._core.types import Decorator

_DOC = """

    Formula:
        {formula}

    Args:
{args}        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision} Results are the same bits every time.

    Source: {source}.
    """
OPERAND = """\
        x: array of rank 1 or more, of a float, integer or bool type.
        axis: static integer, the axis; a negative one counts from the last.
"""
DESCENDING = """\
        descending: from the largest to the smallest; NaN, the largest number, comes first, and ties stay in their order.
"""
EXACT = "exact: elements keep their bits. NaN is the largest number, -0 equals 0."


def document(formula, source, args, returns, precision=EXACT) -> Decorator:
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(
            formula=formula, source=source, args=args, returns=returns, precision=precision
        )
        return fun

    return decorate


def keys(op, name, x, dtypes=checks.REAL):
    """An array of rank 1 or more whose elements have an order."""
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, dtypes)
    if x.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension; got a scalar")
    return x


def along(op, name, x, axis):
    """The axis, counted from the first."""
    axis = checks.axis(op, name, x, axis)
    checks.positions(op, name, x.shape[axis], "elements along axis")
    return axis


def rank(op, name, value, smallest, most, because):
    """A static integer in [smallest, most]."""
    value = checks.integer(op, name, value, smallest)
    if value > most:
        raise ValueError(f"{op}: {name} must be at most {most}, {because}, got {value}")
    return value


def backward_arguments(op, indices, dy, axis):
    """Checks indices and the cotangent, floats of one shape."""
    dy, indices = keys(op, "dy", dy, checks.FLOATS), checks.array(op, "indices", indices)
    checks.dtype(op, "indices", indices, ("int32",))
    checks.shape(op, "indices", indices, dy.shape, "that of dy")
    return indices, dy, along(op, "dy", dy, axis)
