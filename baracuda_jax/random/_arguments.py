"""The arguments of random ops: shapes, and parameters that are numbers or arrays.

A number is a constant of the compiled program, and is not sent to the device at each call; an array is an operand."""

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, explicit
from .._core import prefer as preference


def sizes(op, shape):
    """A static shape; one integer is a vector's."""
    if isinstance(shape, jax.Array) and shape.ndim:
        checks.no_array(op, "shape", shape, "a tuple")
    if isinstance(shape, tuple | list | np.ndarray):
        return tuple(checks.integer(op, f"shape[{i}]", n, 0) for i, n in enumerate(shape))
    return (checks.integer(op, "shape", shape, 0),)


def parameters(op, **values):
    """(arrays by name, numbers as pairs): those of the values that are floats or arrays of these."""
    arrays, numbers = {}, []
    for name, value in values.items():
        if checks.is_number(value):
            numbers.append((name, float(value)))
            continue
        arrays[name] = checks.floats(op, name, value)
    return arrays, tuple(numbers)


def in_range(op, numbers, low, high, strict=False):
    """Of numbers; what is in an array is not known."""
    for name, value in numbers:
        if not (low < value if strict else low <= value) or not value <= high:
            bound = f"greater than {low:g}" if strict else f"at least {low:g}"
            more = "" if high == float("inf") else f" and at most {high:g}"
            raise ValueError(f"{op}: {name} must be {bound}{more}, got {value:g}")


def broadcast(op, arrays, shape):
    """The shape that is drawn: the given one, to which each array must broadcast, or the arrays' common one."""
    if shape is None:
        try:
            return np.broadcast_shapes(*(x.shape for x in arrays.values()))
        except ValueError:
            listed = ", ".join(f"{tuple(x.shape)} of {name}" for name, x in arrays.items())
            raise ValueError(f"{op}: shapes must broadcast, got {listed}") from None
    shape = sizes(op, shape)
    for name, x in arrays.items():
        try:
            fits = np.broadcast_shapes(x.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{op}: {name} must broadcast to shape, {shape}, got {tuple(x.shape)}")
    return shape


def float_dtype(op, dtype, arrays):
    """The given one, or that of the arrays, or JAX's default."""
    if dtype is None:
        return jnp.result_type(*arrays.values()) if arrays else jax.dtypes.canonicalize_dtype(float)
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype.name not in checks.FLOATS:
        raise TypeError(f"{op}: dtype must be one of {', '.join(checks.FLOATS)}, got {dtype.name}")
    return dtype


def all_of(arrays, numbers):
    return arrays | dict(numbers)


def sharding(x, axes=()):
    """That of an array of x's shape except for these axes, whose size is 1; None where x is on no explicit axes."""
    if not explicit.is_sharded(x):
        return None
    spec = [None if i in axes else entry for i, entry in enumerate(jax.typeof(x).sharding.spec)]
    return jax.typeof(x).sharding.update(spec=jax.sharding.PartitionSpec(*spec))


def refuse_native(op, implementation, computed):
    """Raises where a call asks for a kernel and there are some, of other arguments."""
    if preference.demands_native(op, implementation):
        raise ValueError(
            f"{op}: implementation='native', but there are kernels for {computed} alone; xla computes the rest"
        )
