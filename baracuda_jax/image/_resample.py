"""Axes by their taps: each output element gathers, and so does each element of the gradient, by the transposed taps."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.linear import linear

MOST = 16  # taps that are terms of one expression; more are added up in a loop


def resample(x, taps):
    """x, with its last axes by `taps`, one for each; those that shrink first."""
    axes = range(-len(taps), 0)
    for axis, table in sorted(zip(axes, taps, strict=True), key=lambda each: len(each[1].index) / each[1].size):
        if not table.is_identity:
            x = _resample(x, taps=table, axis=axis)
    return x


def _along(x, *, taps, axis):
    """y[o] = sum over t of weight[o, t] x[index[o, t]] along an axis that is counted from the end. Of what has weight 0
    nothing comes, also of NaN."""
    count = taps.index.shape[1]
    index = taps.index.T
    weight = taps.weight.T.astype(x.dtype).reshape(count, *(1,) * (x.ndim + axis), -1, *(1,) * (-axis - 1))
    if count <= MOST:
        return sum((_term(x, i, w, axis, (w == 0).any()) for i, w in zip(index[1:], weight[1:], strict=True)),
                   _term(x, index[0], weight[0], axis, (weight[0] == 0).any()))  # fmt: skip
    index, weight, has_zeros = jnp.asarray(index), jnp.asarray(weight), (taps.weight == 0).any()
    add = lambda t, y: y + _term(x, index[t], weight[t], axis, has_zeros)
    return lax.fori_loop(1, count, add, _term(x, index[0], weight[0], axis, has_zeros))


def _term(x, index, weight, axis, has_zeros):
    taken = jnp.take(x, index, axis=axis, mode="clip")
    if isinstance(weight, np.ndarray) and (weight == 1).all():
        return taken
    return jnp.where(weight == 0, 0, weight * taken) if has_zeros else weight * taken


_resample = linear("resample", _along, lambda params: params | {"taps": params["taps"].transposed})
