"""JAX's promotion of dtypes. A Python number is weakly typed: it takes the dtype of what it meets. So does what is made of
Python numbers alone."""

import jax

from . import compat


def common(values):
    """(dtype, whether it is weak) of arrays and Python numbers together."""
    return compat.common_type(*values)


def cast(x, dtype, is_weak=False):
    return compat.as_type(x, dtype, is_weak)


def is_weak(x):
    return jax.typeof(x).weak_type


def strong(x):
    return cast(x, x.dtype)


def follows(result, operands):
    """Whether a result is weakly typed: where it has operands of its dtype, and all of these are."""
    alike = [x.weak_type for x in operands if x.dtype == result.dtype]
    return bool(alike) and all(alike)
