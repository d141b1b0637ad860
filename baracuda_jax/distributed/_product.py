"""The product of a layer's arrays on one device. Both are made to vary over the same axes first, so that each gradient is
summed once over those along which its array is the same."""

import jax.numpy as jnp

from .._core import mesh_axis
from .._core.wide import wide
from ..gemm._product import dimensions, product


def multiplied(x, kernel, axis_name, precision, rounds):
    """x kernel, as it was accumulated, or rounded to x's dtype."""
    x, kernel = mesh_axis.alike(mesh_axis.varying(x, axis_name), kernel)
    return product(x, kernel, dimensions(x.ndim, 2), precision, rounds)


def rounds_first(x, bias):
    """Whether the product is rounded before the bias is added: not where this is wider."""
    return bias is None or bias.dtype == x.dtype


def plus(y, bias):
    """In y's dtype; the gradient of bias is summed in float32 or wider."""
    if bias is None:
        return y
    return y + jnp.broadcast_to(jnp.expand_dims(wide(bias), range(y.ndim - 1)), y.shape).astype(y.dtype)
