"""The sum of the rows that entries name, times the entries' weights. It is linear in the rows and in the weights, and so are
its derivatives: each is this sum, with senders and receivers exchanged or not, or a dot product for each entry."""

import numpy as np

from .._core import checks
from .._core.body import Body
from .._core.case import Case
from ..segment._family import declare_with_index
from ..segment._references import take
from ._family import FAMILY, by_receiver, by_sender, draws
from ._kernels import dots, weighted
from ._partition import weighted_partition
from ._references import add_up, receivers_of, scaled


def _reference(x, senders, receivers, weights, *, axis, num_segments, **_):
    receivers = receivers_of(senders, receivers, x.shape[axis], num_segments)
    messages = scaled(take(x, senders, axis=axis), weights)
    return (add_up(messages, receivers, axis=axis, num_segments=num_segments).astype(x.dtype),)


def _native(x, senders, receivers, weights, *, save=False, axis, num_segments, sorted, index, length=0):
    segments = dict(num_segments=num_segments, sorted=sorted, index=by_receiver(index), length=length)
    return (weighted(x, weights, senders, receivers, axis=axis, **segments),)


def _tangent(by):
    def tangent(x, senders, receivers, weights, t, u, **params):
        of = lambda x, weights: by(x, senders, receivers, weights, **params)[0]
        return (of(t, weights) + of(x, u),)

    return tangent


def _backward_reference(x, senders, receivers, weights, dy, *, axis, num_segments, **_):
    back = receivers_of(receivers, senders, num_segments, x.shape[axis])
    given = take(dy, receivers, axis=axis)
    dx = add_up(scaled(given, weights), back, axis=axis, num_segments=x.shape[axis]).astype(x.dtype)
    products = scaled(take(x, senders, axis=axis), given.astype(weights.dtype))
    return dx, products.sum(tuple(range(weights.ndim, x.ndim)))


def _backward_native(x, senders, receivers, weights, dy, *, axis, num_segments, sorted, index, length=0):
    rows = dict(num_segments=x.shape[axis], sorted=False, index=by_sender(index), repeats=length)
    dx = weighted(dy, weights, receivers, senders, axis=axis, **rows)
    return dx, dots(x, dy, senders, receivers, axis=axis, leading=weights.ndim - axis - 1)


def declare_weighted(public):
    return declare_with_index(
        "aggregate_weighted_sum",
        **FAMILY,
        public=public,
        dtypes=checks.FLOATS,
        cases=(
            Case("edges", draws(11, (6,), 41, 11, ())),
            Case("heads", draws(9, (2, 3), 35, 7, (2,), np.int16, outside=1), dict(num_segments=7)),
            Case("edge features", draws(8, (5,), 27, 8, (5,), np.int64)),
            Case("sorted", draws(9, (8,), 28, 6, (), is_sorted=True), dict(num_segments=6, indices_are_sorted=True)),
            Case("index", draws(9, (2, 4), 31, 7, (2,), outside=1, is_indexed=True)),
        ),
        operands=("x", "senders", "receivers", "weights"),
        differentiable=("x", "weights"),
        residuals=("x", "senders", "receivers", "weights"),
        multilinear=True,
        cut=weighted_partition,
        forward=Body(_reference, _native),
        tangent=Body(_tangent(_reference), _tangent(_native)),
        backward=Body(_backward_reference, _backward_native),
        kernels={
            "forward": ("segment_weighted_sum",),
            "tangent": ("segment_weighted_sum",),
            "backward": ("segment_weighted_sum", "sampled_dot"),
        },
    )
