"""Checks of arguments at trace time. Every error names the op, the argument, what was expected and what came."""

import operator

import jax
import jax.numpy as jnp
import numpy as np

from .wide import wide_dtype

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
COMPLEX = ("complex64", "complex128")
INEXACT = (*FLOATS, *COMPLEX)
REAL = (*NUMBERS, "bool")
EVERY = (*REAL, *COMPLEX)
MOST_POSITIONS = 2**31 - 1


def array(op, name, value):
    """`value` as an array, or a TypeError."""
    if isinstance(value, jax.Array):
        return value  # under grad `jnp.asarray` would be a program of its own, and its transpose another
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:  # a ValueError for lists of different lengths
        raise TypeError(f"{op}: {name} must be an array, got {type(value).__name__}") from error


def dtype(op, name, x, allowed):
    if x.dtype.name not in allowed:
        raise TypeError(f"{op}: {name} must have one of the dtypes {', '.join(allowed)}, got {x.dtype.name}")


def floats(op, name, value):
    """`value` as an array of floats."""
    x = array(op, name, value)
    dtype(op, name, x, FLOATS)
    return x


def no_array(op, name, value, instead):
    """A static argument; `instead` takes arrays."""
    if isinstance(value, jax.Array) and value.ndim:
        raise TypeError(
            f"{op}: {name} must be static, got an array of {value.dtype.name} of shape {value.shape}; {instead} takes arrays"
        )


def integer(op, name, value, smallest):
    """A static integer of at least `smallest`."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{op}: {name} must be a static integer, got a traced value; under jit, pass it as a Python int or mark it in "
            "static_argnames"
        )
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{op}: {name} must be an integer, got {value!r}")
    if isinstance(value, jax.Array | np.ndarray) and value.ndim:
        raise TypeError(f"{op}: {name} must be an integer, got an array of {value.dtype.name} of shape {value.shape}")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{op}: {name} must be an integer, got {value!r}") from None
    if value < smallest:
        raise ValueError(f"{op}: {name} must be at least {smallest}, got {value}")
    return value


def integers(op, name, value, count, smallest):
    """`count` static integers; one integer stands for all."""
    if isinstance(value, tuple | list | np.ndarray):
        if len(value) != count:
            raise ValueError(f"{op}: {name} must be an integer or {count} integers, got {tuple(value)}")
        return tuple(integer(op, f"{name}[{i}]", v, smallest) for i, v in enumerate(value))
    return (integer(op, name, value, smallest),) * count


def choice(op, name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{op}: {name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def is_number(value):
    """Whether it is a static real number, and no bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def flag(op, name, value):
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{op}: {name} must be True or False, got {value!r}")
    return bool(value)


def shape(op, name, x, expected, because):
    if tuple(x.shape) != tuple(expected):
        raise ValueError(f"{op}: {name} must have shape {tuple(expected)}, {because}, got {tuple(x.shape)}")


def broadcasts(op, name, x, expected, other_name):
    """x must broadcast to a shape, which stays as it is."""
    sizes = zip(reversed(x.shape), reversed(expected), strict=False)
    if x.ndim > len(expected) or any(n not in (1, size) for n, size in sizes):
        raise ValueError(f"{op}: {name} must broadcast to {other_name} {tuple(expected)}, got {tuple(x.shape)}")


def mask(op, where, x, x_name="x"):
    """`where`, a bool array that broadcasts to x's shape."""
    where = array(op, "where", where)
    dtype(op, "where", where, ("bool",))
    broadcasts(op, "where", where, x.shape, f"{x_name}'s shape")
    return where


def same_dtype(op, name, x, other_name, other):
    if x.dtype != other.dtype:
        raise TypeError(f"{op}: {name} must have the dtype of {other_name}, {other.dtype.name}, got {x.dtype.name}")


def dtype_or_wide(op, name, x, other_name, other):
    """x must have the dtype of other, or the one that this is computed in."""
    if x.dtype != wide_dtype(other.dtype):
        same_dtype(op, name, x, other_name, other)


def saved_dtype(op, name, y, expected, other_name, other):
    """Of a result that is saved for the gradient as it was computed."""
    if y.dtype != expected:
        raise TypeError(
            f"{op}: {name} must have dtype {expected.name}, as return_residuals gives it for {other_name} of "
            f"{other.dtype.name}, got {y.dtype.name}"
        )


def axis(op, name, x, value, argument="axis"):
    """An axis of the array `name`, counted from the first."""
    value = integer(op, argument, value, -x.ndim)
    if value >= x.ndim:
        raise ValueError(
            f"{op}: {argument} must be in [{-x.ndim}, {x.ndim - 1}] for {name} of shape {x.shape}, got {value}"
        )
    return value % x.ndim


def axes(op, name, x, value):
    """One axis or several different ones of the array `name`, counted from the first, ascending."""
    found = tuple(sorted(axis(op, name, x, a) for a in (value if isinstance(value, tuple | list) else (value,))))
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{op}: axis must be one axis or several different ones, got {value!r}")
    return found


def positions(op, name, count, what="elements"):
    """Positions are int32."""
    if isinstance(count, int) and count > MOST_POSITIONS:
        raise ValueError(f"{op}: {name} may have at most {MOST_POSITIONS} {what}, got {count}")
