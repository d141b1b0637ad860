"""The product of a layer's arrays on one device. Both are made to vary over the same axes first, so that each gradient is
summed once over those along which its array is the same."""

import jax.numpy as jnp

from .._core import mesh_axis
from .._core.wide import wide
from ..gemm._product import dimensions, product


def multiplied(x, kernel, axis_name, precision):
    """x kernel, as it was accumulated."""
    x, kernel = mesh_axis.alike(mesh_axis.varying(x, axis_name), kernel)
    return product(x, kernel, dimensions(x.ndim, 2), precision)


def plus(y, bias):
    return y if bias is None else y + jnp.expand_dims(wide(bias), range(y.ndim - 1))
