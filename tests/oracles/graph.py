"""Aggregation along edges, edge by edge."""

import numpy as np

from oracles.segment import ids_of


def _edges(x, senders, receivers, num_segments):
    """(edge, sender, receiver) of those that are not dropped."""
    for e, (r, s) in enumerate(zip(map(int, senders), map(int, receivers), strict=True)):
        if 0 <= r < len(x) and 0 <= s < num_segments:
            yield e, r, s


def aggregate_sum(x, senders, receivers, num_segments=None, **_):
    (senders, _), (receivers, segments) = (
        ids_of(senders),
        ids_of(receivers, len(x) if num_segments is None else num_segments),
    )
    y = np.zeros((segments, *x.shape[1:]), x.dtype)
    with np.errstate(over="ignore"):
        for _, r, s in _edges(x, senders, receivers, segments):
            y[s] += x[r]
    return y


def aggregate_mean(x, senders, receivers, num_segments=None, **options):
    y = aggregate_sum(x, senders, receivers, num_segments)
    counts = aggregate_sum(np.ones(len(x)), senders, receivers, num_segments)
    return y / np.maximum(counts, 1).reshape(-1, *(1,) * (y.ndim - 1))


def aggregate_weighted_sum(x, senders, receivers, weights, num_segments=None, **_):
    (senders, _), (receivers, segments) = (
        ids_of(senders),
        ids_of(receivers, len(x) if num_segments is None else num_segments),
    )
    y = np.zeros((segments, *x.shape[1:]))
    for e, r, s in _edges(x, senders, receivers, segments):
        w = np.asarray(weights[e])
        y[s] += w.reshape(w.shape + (1,) * (x.ndim - 1 - w.ndim)) * x[r]
    return y


def _extremum(of):
    def aggregate(x, senders, receivers, num_segments=None, **_):
        (senders, _), (receivers, segments) = (
            ids_of(senders),
            ids_of(receivers, len(x) if num_segments is None else num_segments),
        )
        y, seen = np.zeros((segments, *x.shape[1:]), x.dtype), set()
        for _, r, s in _edges(x, senders, receivers, segments):
            y[s] = of(y[s], x[r]) if s in seen else x[r]
            seen.add(s)
        return y

    return aggregate


aggregate_max, aggregate_min = _extremum(np.maximum), _extremum(np.minimum)


def sampled_dot(x, y, senders, receivers):
    (senders, _), (receivers, _) = ids_of(senders), ids_of(receivers)
    d = np.zeros((len(senders), *x.shape[1:-1]))
    for e, r, s in _edges(x, senders, receivers, len(y)):
        d[e] = (x[r] * y[s]).sum(-1)
    return d
