"""Splines as scipy.ndimage has them: the elements around a coordinate along an axis, and the coefficients of cubic ones.

An axis of n elements goes on outside by its mode:

    constant, grid-constant   a fill value: for all that is outside; or for each element that there is not
    nearest                   the outermost element
    mirror, reflect           turned back at the outermost elements' centers, or at their edges
    wrap, grid-wrap           from the beginning, whose first element is the last one; or comes after it

Coefficients are x by a filter of two sides, whose weights fall by 3.7 from element to element, so that few are left: it is a
table of taps. Where the result must not depend on an axis' end but on the fill value or the outermost element, the axis is
longer by SciPy's 12 elements at both ends."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import explicit
from ._interpolate import INTERPOLATE
from ._taps import Taps

MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "wrap", "grid-wrap")
POLE = math.sqrt(3) - 2
LONGER = 12


def along(at, n, order, mode):
    """(index, weight, whether there is such an element) of each element around `at`."""
    at = _inside(at, n, mode)
    if order == 0:
        return [_tap(jnp.floor(lax.stop_gradient(at) + 0.5), None, n, mode)]
    first = lax.stop_gradient(jnp.floor(at))
    after = at - first
    if order == 1:
        return [_tap(first, 1 - after, n, mode), _tap(first + 1, after, n, mode)]
    before = 1 - after
    weights = _far(before), _near(after), _near(before), _far(after)
    return [_tap(first + k, weight, n, mode) for k, weight in zip((-1, 0, 1, 2), weights, strict=True)]


def around(at, n, order, mode):
    """Where `at` is in an axis that goes on outside: (coordinate, the element before it, whether it reads any). Of order 0
    it is the element itself."""
    is_in = ~is_outside(at, n) if mode == "constant" else True
    if order == 0:
        ((index, _, inside),) = along(at, n, order, mode)
        return at, index, inside & is_in
    at = _inside(at, n, mode)
    before = jnp.floor(at)
    inside = (before >= -4) & (before < n + 4) & is_in
    return at, jnp.where(inside, before, 0).astype(jnp.int32), inside


def is_outside(at, n):
    """Of mode "constant"."""
    return (at < 0) | (at > n - 1)


def _near(d):
    return (4 + d * d * (3 * d - 6)) / 6


def _far(left):
    return left * left * left / 6


def _inside(at, n, mode):
    """The coordinate in the image, or next to it."""
    if mode == "nearest":
        return jnp.where(at < 0, 0, jnp.where(at > n - 1, n - 1, at))
    if mode in ("mirror", "reflect"):
        return _turned(at, n, *((0.0, n - 1) if mode == "mirror" else (-0.5, n)))
    if mode == "wrap":
        if n == 1:
            return jnp.zeros_like(at)
        turns = lambda c: jnp.trunc(lax.stop_gradient(c) / (n - 1))
        return jnp.where(
            at < 0, at + (n - 1) * (turns(-at) + 1), jnp.where(at > n - 1, at - (n - 1) * turns(at), at)
        )  # fmt: skip
    if mode == "grid-wrap":
        return jnp.where((at < 0) | (at > n - 1), at - n * jnp.floor(lax.stop_gradient(at) / n), at)
    return at


def _turned(at, n, low, span):
    """Turned back at `low` and at `low + span`."""
    if n == 1:
        return jnp.zeros_like(at)
    distance, period = at - low, 2 * span
    rest = distance - period * jnp.floor(lax.stop_gradient(distance) / period)
    turned = jnp.where(rest < span, rest + low, period - rest + low)
    return jnp.where((distance >= 0) & (distance <= span), at, turned)


def _tap(at, weight, n, mode):
    """Of the element at an integer, which may be outside by a few."""
    exists = (at >= 0) & (at <= n - 1)
    is_near = (at >= -4) & (at < n + 4)  # and no NaN
    index = jnp.where(is_near, at, 0).astype(jnp.int32)
    index = jnp.where(exists, index, other(index, n, mode))
    return index, weight, exists if mode == "grid-constant" else is_near


def other(index, n, mode):
    """The element that stands for one outside, by its index, of JAX or NumPy."""
    if mode == "nearest":
        return index.clip(0, n - 1)
    if mode == "grid-wrap":
        return index % n
    if mode == "reflect":
        index = index % (2 * n)
        return _smaller(index, 2 * n - 1 - index)
    if n == 1:
        return index * 0
    index = index % (2 * n - 2)
    return _smaller(index, 2 * n - 2 - index)


def _smaller(a, b):
    return (np if isinstance(a, np.ndarray) else jnp).minimum(a, b)


# ---------------------------------------------------------------------------------------------------------------------
# Coefficients of cubic splines


def coefficients(x, axes, mode, fill, implementation):
    """Those of x along its last `axes` axes, and by how many elements these are longer at both ends."""
    longer = LONGER if mode in ("nearest", "grid-constant") else 0
    if longer:
        ends = [(0, 0)] * (x.ndim - axes) + [(longer, longer)] * axes
        x = jnp.pad(x, ends, "edge") if mode == "nearest" else jnp.pad(x, ends, constant_values=fill)
    for axis in range(x.ndim - axes, x.ndim):
        x = _filtered(x, axis, "grid-wrap" if mode == "grid-wrap" else "reflect" if mode == "reflect" else "mirror",
                      implementation)  # fmt: skip
    return x, longer


def _filtered(x, axis, mode, implementation):
    """x, a filter of two sides, along an axis."""
    n, shape = x.shape[axis], x.shape
    if n < 2:
        return x
    reach = _reach(x.dtype.name)
    # Taps of one element are next to each other, also where the axis is a ring.
    around = reach if mode == "grid-wrap" and n > 2 * reach else 0
    flat = explicit.reshape(x, math.prod(shape[:axis]), n, math.prod(shape[axis + 1 :]))
    if around:
        flat = jnp.concatenate([flat[:, -around:], flat, flat[:, :around]], 1)
    table = _table(n, around, reach, mode)
    y = INTERPOLATE(flat, tables=(table,), channels_last=True, implementation=implementation)
    return explicit.reshape(y, *shape)


def _reach(dtype):
    """How far weights count."""
    return math.ceil(math.log(np.finfo(dtype).eps / 8) / math.log(-POLE))


@functools.cache
def _table(n, around, reach, mode):
    at = np.arange(-reach, reach + 1)
    weight = -6 * POLE / (1 - POLE**2) * POLE ** np.abs(at)
    index = np.arange(n)[:, None] + at
    index = index + around if around else other(index, n, mode)
    return Taps(index.astype(np.int32), np.broadcast_to(weight, index.shape).copy(), n + 2 * around)
