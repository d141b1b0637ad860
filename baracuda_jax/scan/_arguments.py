"""The arguments of scans: their documentation and their checks."""

from .._core import checks
from .._core.types import Decorator

_DOC = """

    Formula:
        {formula}

    Args:
        x: array of {dtypes}, of rank 1 or more.
        axis: static integer, the axis that is scanned; a negative one counts from the last.
        reverse: scan from the end of the axis: "before" is then what comes after.
        exclusive: an element sees what comes before it alone, and the first {nothing}.
{more}        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision} Results are the same bits every time.

    Source: {source}.
    """


def document(
    formula, nothing, source, more="", returns=None, precision=None, dtypes="a float or integer type"
) -> Decorator:
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(
            formula=formula,
            nothing=nothing,
            source=source,
            more=more,
            dtypes=dtypes,
            returns=returns or "Array of x's shape and dtype.",
            precision=precision or "float16 and bfloat16 accumulate in float32 and are rounded once; integers wrap.",
        )
        return fun

    return decorate


def arguments(op, x, axis, reverse, exclusive, dtypes):
    """x and the primitive's parameters."""
    x = checks.array(op, "x", x)
    checks.dtype(op, "x", x, dtypes)
    params = direction(op, "x", x, axis, reverse)
    return x, params | {"exclusive": checks.flag(op, "exclusive", exclusive)}


def direction(op, name, x, axis, reverse):
    """What is scanned, of an array and those shaped alike."""
    if x.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, which is scanned; got a scalar")
    return {"axis": checks.axis(op, name, x, axis), "reverse": checks.flag(op, "reverse", reverse)}


RESIDUALS = """\
        return_residuals: also return {residuals}, which the backward function reads. Floats only.
"""


def saving(op, name, x, return_residuals):
    """Whether residuals are asked for, which floats alone have."""
    save = checks.flag(op, "return_residuals", return_residuals)
    if save:
        checks.dtype(op, f"{name} (with return_residuals)", x, checks.INEXACT)
    return save


def backward_arguments(op, arrays, axis, reverse, exclusive, **dtypes):
    """Checks a backward function's arguments: floats, by name, all of the shape of the last, the cotangent, and of its dtype
    or that which `dtypes` makes of it."""
    arrays = {name: checks.array(op, name, x) for name, x in arrays.items()}
    *rest, (last, dy) = arrays.items()
    checks.dtype(op, last, dy, checks.FLOATS)
    for name, x in rest:
        if name in dtypes:
            checks.saved_dtype(op, name, x, dtypes[name](dy.dtype), last, dy)
        else:
            checks.same_dtype(op, name, x, last, dy)
        checks.shape(op, name, x, dy.shape, f"that of {last}")
    params = direction(op, last, dy, axis, reverse) | {"exclusive": checks.flag(op, "exclusive", exclusive)}
    return list(arrays.values()), params
