"""The arguments of quantization: dtypes, ranges, scales and zero points, and their checks."""

import math
import numbers

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks
from ._granularity import TENSOR, TOKEN, Granularity

DTYPES = ("int8", "uint8", "int4", "uint4", "float8_e4m3fn", "float8_e5m2")
RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def wide_dtype(dtype):
    return jnp.dtype(jnp.float64 if jnp.dtype(dtype) == jnp.float64 else jnp.float32)


def is_float8(name):
    return name in LARGEST


def code_range(op, dtype, qmin, qmax):
    """{"code", "low", "high"}: the dtype of q, by name, and the range that q is clamped to."""
    try:
        name = jnp.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in DTYPES:
        raise TypeError(f"{op}: dtype must be one of {', '.join(DTYPES)}, got {name}")
    if is_float8(name):
        if qmin is not None or qmax is not None:
            raise ValueError(f"{op}: qmin and qmax must be left out with dtype {name}, got {qmin} and {qmax}")
        return {"code": name, "low": -LARGEST[name], "high": LARGEST[name]}
    smallest, largest = RANGES[name]
    low, high = check_range(op, smallest if qmin is None else qmin, largest if qmax is None else qmax)
    if low < smallest or high > largest:
        raise ValueError(
            f"{op}: qmin and qmax must be in the range of {name}, [{smallest}, {largest}], got [{low}, {high}]"
        )
    return {"code": name, "low": float(low), "high": float(high)}


def check_range(op, qmin, qmax):
    bounds = [checks.integer(op, name, value, -(2**24)) for name, value in (("qmin", qmin), ("qmax", qmax))]
    if bounds[0] > bounds[1]:
        raise ValueError(f"{op}: qmin must be at most qmax, got {bounds[0]} and {bounds[1]}")
    if bounds[1] > 2**24:
        raise ValueError(f"{op}: qmax must be at most 2**24, got {bounds[1]}")
    return bounds


def granularity(op, x, kind, axis=None, group_size=None):
    if kind == "tensor":
        return TENSOR
    if x.ndim < 1:
        raise ValueError(f"{op}: x must have at least one dimension, got a scalar")
    if kind == "token":
        return TOKEN
    if kind == "channel":
        axis = checks.integer(op, "axis", axis, -x.ndim)
        if axis >= x.ndim:
            raise ValueError(f"{op}: axis must be in [{-x.ndim}, {x.ndim - 1}] for x of shape {x.shape}, got {axis}")
        return Granularity("channel", axis=axis - x.ndim if axis >= 0 else axis)
    group_size = checks.integer(op, "group_size", group_size, 1)
    if x.shape[-1] % group_size:
        raise ValueError(
            f"{op}: group_size must divide x's last dimension, {x.shape[-1]}, got {group_size}; pad x first"
        )
    return Granularity("group", group_size=group_size)


def scales(op, x, dtype, by, scale, zero_point, low, high, code=None):
    """The scale, in the dtype that the op computes in, and the zero point, int32, both of the granularity's shape."""
    if isinstance(scale, numbers.Real) and not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"{op}: scale must be finite and above 0, got {scale}")
    scale = checks.array(op, "scale", scale)
    if not jnp.issubdtype(scale.dtype, jnp.floating):
        raise TypeError(f"{op}: scale must be of a float dtype, got {scale.dtype.name}")
    shape = by.scale_shape(x.shape)
    checks.shape(op, "scale", scale, shape, f"one per {by.kind} of an array of shape {tuple(x.shape)}")
    scale = scale.astype(wide_dtype(dtype))
    if zero_point is None:
        return scale, jnp.zeros(shape, jnp.int32)
    if code and is_float8(code):
        raise ValueError(f"{op}: zero_point must be None with dtype {code}")
    if isinstance(zero_point, numbers.Real | np.number) and not isinstance(zero_point, jax.Array):
        if zero_point != int(zero_point) or not low <= zero_point <= high:
            raise ValueError(f"{op}: zero_point must be an integer in [{low:g}, {high:g}], got {zero_point}")
        zero_point = int(zero_point)
    zero_point = checks.array(op, "zero_point", zero_point)
    checks.dtype(op, "zero_point", zero_point, checks.INTEGERS)
    checks.shape(op, "zero_point", zero_point, shape, "that of scale")
    return scale, zero_point.astype(jnp.int32)
