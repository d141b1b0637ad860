"""Ops on slices of which only some elements take part."""

import jax.numpy as jnp

from .._core import checks
from ..reduce._arguments import only


def among(op, bound, x, where, *, nothing, **params):
    """The result of the op, which is `bound`. Elements that do not take part are -infinity to it, and give `nothing`."""
    if where is None:
        return bound(x, **params)
    where = checks.mask(op, where, x)
    return only(bound(only(x, where, nothing=-jnp.inf), **params), where, nothing=nothing)
