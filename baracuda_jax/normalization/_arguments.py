"""The arguments of normalizations, and what normalizes slices and groups of channels."""

import math

import jax
import jax.numpy as jnp

from .._core import checks, explicit
from .._core.compiled import full
from .._core.wide import wide


def filled(value, number, x, axis):
    """A parameter of channels; of None that number, in x's dtype."""
    return full((x.shape[axis],), number, x.dtype) if value is None else value


def factors(weight, bias, x, axis):
    """The weight and the bias of channels, in one dtype; 1 and 0 of None."""
    weight, bias = filled(weight, 1, x, axis), filled(bias, 0, x, axis)
    return (weight, bias) if weight.dtype == bias.dtype else (wide(weight), wide(bias))


def slices(op, x, axis, name="x", **parameters):
    """x with its slices along the last axis, the parameters of a slice as vectors, and the way back of x.
    A parameter is (value, the number that None stands for)."""
    x = checks.floats(op, name, x)
    axes = checks.axes(op, name, x, axis)
    sizes, last = tuple(x.shape[i] for i in axes), tuple(range(x.ndim - len(axes), x.ndim))

    def of_slice(name, value, default):
        if value is None:
            return full((math.prod(sizes),), default, x.dtype)
        value = parameter(op, name, value, x, sizes, f"that of the normalized axes of x of shape {x.shape}")
        return explicit.reshape(value, math.prod(sizes))

    moved = jnp.moveaxis(x, axes, last)
    found = explicit.reshape(moved, *moved.shape[: x.ndim - len(axes)], math.prod(sizes))
    vectors = [of_slice(name, *of) for name, of in parameters.items()]
    return found, *vectors, lambda y: jnp.moveaxis(explicit.reshape(y, *moved.shape), last, axes)


def cotangent(op, x, dy, of="x", name="dy"):
    """The cotangent of a result that is like x, which is called `of`."""
    x, dy = checks.floats(op, of, x), checks.array(op, name, dy)
    checks.same_dtype(op, name, dy, of, x)
    checks.shape(op, name, dy, x.shape, f"that of {of}")
    return dy


def as_given(vector, parameter):
    """The gradient of a parameter of `slices` in the shape that it was given in; None was for a vector."""
    return vector if parameter is None else explicit.reshape(vector, *jnp.shape(parameter))


def channels(op, x, axis, **parameters):
    """x, its channel axis counted from the first, and the parameters, vectors with an element a channel or None."""
    x = checks.floats(op, "x", x)
    axis = checks.axis(op, "x", x, axis)
    because = f"one for each channel of x of shape {x.shape}"
    of = lambda name, value: None if value is None else parameter(op, name, value, x, x.shape[axis : axis + 1], because)
    return x, axis, *(of(name, value) for name, value in parameters.items())


def parameter(op, name, value, x, shape, because):
    """A weight, a bias, or a statistic: of x's dtype, or as it is computed."""
    value = checks.array(op, name, value)
    checks.dtype_or_wide(op, name, value, "x", x)
    checks.shape(op, name, value, shape, because)
    return value


def number(op, name, value, smallest=-math.inf, largest=math.inf):
    """A static number in a range."""
    if not checks.is_number(value) or not smallest <= value <= largest:
        limits = f" of at least {smallest}" if largest == math.inf else f" in [{smallest}, {largest}]"
        limits = "" if smallest == -math.inf else limits
        raise ValueError(f"{op}: {name} must be a static number{limits}, got {value!r}")
    return float(value)


def epsilon(op, eps):
    return number(op, "eps", eps, 0)


def moments(x, axes):
    """The differences from the mean, their mean square, which is never negative, and the mean. Nothing has mean 0."""
    count = max(math.prod(x.shape[i] for i in axes), 1)
    mean = x.sum(axes, keepdims=True) / count
    centered = x - mean
    return centered, jnp.square(centered).sum(axes, keepdims=True) / count, mean


def along(vector, axis, ndim):
    """A vector that broadcasts along one of `ndim` axes, in the dtype that is computed in."""
    return jnp.expand_dims(wide(vector), [i for i in range(ndim) if i != axis])


def scaled(y, weight, bias, axis):
    """The normalized y by weight and bias, which have an element for each index of an axis, or are None."""
    y = y if weight is None else y * along(weight, axis, y.ndim)
    return y if bias is None else y + along(bias, axis, y.ndim)


def groups_normalized(x, weight, bias, *, axis, num_groups, eps):
    """Each group of channels of each element of the batch, which is the first axis unless that has the channels."""
    y = wide(x)
    width = y.shape[axis] // max(num_groups, 1)
    split = explicit.reshape(y, *y.shape[:axis], num_groups, width, *y.shape[axis + 1 :])
    over = tuple(i for i in range(split.ndim) if i != axis and (i or not axis))
    centered, variance, _ = moments(split, over)
    normalized = explicit.reshape(centered * jax.lax.rsqrt(variance + eps), *y.shape)
    return scaled(normalized, weight, bias, axis).astype(x.dtype)
