"""What all reductions share in their declarations."""

import math

import jax.numpy as jnp
import numpy as np

from .._core.case import Case
from .._core.op import Body
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.wide import wide
from . import _kernels

FAMILY = dict(family="reduce", category=OpCategory.REDUCTION, regime=along_axes, default="xla")
AXES = FAMILY | dict(batched=lambda params: {**params, "axes": tuple(i + 1 for i in params["axes"])})
SHAPES = {
    "rows": ((5, 41), dict(axis=-1)),
    "columns": ((37, 6), dict(axis=0, keepdims=True)),
    "middle": ((3, 17, 40), dict(axis=1)),
    "apart": ((4, 5, 6), dict(axis=(0, 2))),
    "all": ((7, 19), {}),
    "three groups": ((3, 4, 5, 2, 3), dict(axis=(0, 2, 4))),
}


def spaced(rng, *shape):
    """Random values, no two alike, so that finite differences meet no tie; none is 0."""
    return (rng.permutation(np.linspace(-2, 2.1, math.prod(shape))).reshape(shape),)


def cases(draw=spaced, **kwargs):
    """The shapes that every reduction is tried on; `draw` gives the arrays of one shape."""
    return tuple(
        Case(name, lambda rng, shape=shape: draw(rng, *shape), of_shape | kwargs)
        for name, (shape, of_shape) in SHAPES.items()
    )


def slices(y, axes):
    """What each slice has, expanded to its elements."""
    return jnp.expand_dims(y, axes)


def derivatives(slope, backward):
    """The tangent and the backward Body of a reduction of one array.

    `slope(x, *residuals, **params)` is the derivative of a slice's result by each of its elements, in plain JAX and in the
    wide dtype; `backward(x, *residuals, dy, **params)` calls the kernel that multiplies it by a cotangent. Tangents are sums
    of what that gives for the cotangent 1."""

    def tangent_reference(x, *rest, axes, **params):
        *residuals, t = rest
        total = slope(wide(x), *map(wide, residuals), axes=axes, **params) * wide(t)
        return (total.sum(axes).astype(t.dtype),)

    def tangent_native(x, *rest, axes, **params):
        *residuals, t = rest
        one = jnp.ones(_kernels.kept_of(x.shape, axes), wide(t).dtype)
        by_element = backward(wide(x), *map(wide, residuals), one, axes=axes, **params)
        (y,) = _kernels.reduce("reduce_sum", by_element * wide(t), axes, [one.dtype], divisor=1.0)
        return (y.astype(t.dtype),)

    def backward_reference(x, *rest, axes, **params):
        *residuals, dy = rest
        by_element = slope(wide(x), *map(wide, residuals), axes=axes, **params)
        return ((by_element * slices(wide(dy), axes)).astype(x.dtype),)

    def backward_native(*arrays, **params):
        return (backward(*arrays, **params),)

    return {
        "tangent": Body(tangent_reference, tangent_native),
        "backward": Body(backward_reference, backward_native),
    }
