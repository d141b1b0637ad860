"""The arguments of all ops of the family: their documentation and their checks."""

import jax

from .._core import checks
from .._core.types import F

SIZE = """\
size: static integer, how many there is room for; the first ones are kept. By default as many as there are, which is
            computed from the values and must therefore be given under jit.
"""


def document(fun: F) -> F:
    fun.__doc__ = fun.__doc__ and fun.__doc__.replace("{size}", SIZE.rstrip())
    return fun


def array(op, name, value):
    x = checks.array(op, name, value)
    checks.dtype(op, name, x, checks.REAL)
    return x.astype(x.dtype)  # values that are taken are no weaker than those of other ops


def known_size(op, name, x, size, found):
    """The size; `found()` counts where it is not given."""
    if size is None:
        if isinstance(x, jax.core.Tracer):
            raise ValueError(
                f"{op}: size must be given under jit and other transformations, where the values of {name} are not known: "
                "the result's shape depends on it"
            )
        size = int(found())
    size = checks.integer(op, "size", size, 0)
    checks.positions(op, "size", size, "positions")
    return size


def fill(op, value, dtype):
    """A scalar of the dtype."""
    value = checks.array(op, "fill_value", value)
    if value.ndim:
        raise ValueError(f"{op}: fill_value must be a scalar, got shape {tuple(value.shape)}")
    return value.astype(dtype)
