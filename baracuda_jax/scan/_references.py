"""The parts of plain JAX that the references are made of."""

import jax
import jax.numpy as jnp
from jax import lax

from .._core.wide import wide


def prefixes(scan, x, nothing, *, axis, reverse, exclusive):
    """A scan that begins with `nothing`, of which each element sees what is up to it, or before it: its results, in the
    dtype that is computed in."""
    n, rows = x.shape[axis], wide(x)
    start = jnp.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), nothing, rows.dtype)
    y = scan(lax.concatenate([rows, start] if reverse else [start, rows], axis), axis=axis, reverse=reverse)
    first = int(reverse == exclusive)
    return jax.tree.map(lambda y: lax.slice_in_dim(y, first, first + n, axis=axis), y)


def linear_scan(a, b, *, axis, reverse):
    """h_i = a_i h_{i-1} + b_i. A chunk is such a step too."""

    def combine(step, later):
        return later[0] * step[0], later[0] * step[1] + later[1]

    return lax.associative_scan(combine, (a, b), reverse=reverse, axis=axis)[1]


def adjoint(a, dh, *, axis, reverse):
    """Its transpose in b: s_i = dh_i + a_{i+1} s_{i+1}."""
    return linear_scan(after(a, 0, axis=axis, reverse=reverse), dh, axis=axis, reverse=not reverse)


def before(x, start, *, axis, reverse, **_):
    """For each element the one before it, in the direction of the scan; for the first `start`."""
    ends = (-1, 1, 0) if reverse else (1, -1, 0)
    padding = [ends if i == axis else (0, 0, 0) for i in range(x.ndim)]
    return lax.pad(x, jnp.asarray(start, x.dtype), padding)


def after(x, end, *, axis, reverse, **_):
    """For each element the one after it; for the last `end`."""
    return before(x, end, axis=axis, reverse=not reverse)


def last(x, *, axis, reverse, **_):
    """The last element of the scan; of none, none."""
    n = x.shape[axis]
    return lax.slice_in_dim(x, 0, min(n, 1), axis=axis) if reverse else lax.slice_in_dim(x, max(n - 1, 0), n, axis=axis)
