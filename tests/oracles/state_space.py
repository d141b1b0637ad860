"""Layers of state-space models, element by element."""

import numpy as np


def silu(z):
    return z / (1 + np.exp(-z))


def _begins(ids, length):
    """The first position of each element's segment; -infinity of the first segment's, which has the state."""
    first = np.full(length, -np.inf)
    for l in range(1, length if ids is not None else 0):
        first[l] = l if ids[l] != ids[l - 1] else first[l - 1]
    return first


def causal_conv1d(
    x, weight, bias=None, initial_state=None, segment_ids=None, activation=None, data_format="NCL", with_state=False
):
    if x.ndim == 2:
        one = lambda a: None if a is None else a[None]
        y, state = causal_conv1d(
            x[None], weight, bias, one(initial_state), one(segment_ids), activation, data_format, with_state=True
        )
        return (y[0], state[0]) if with_state else y[0]
    x = np.swapaxes(x, 1, 2) if data_format == "NLC" else x
    (batch, channels, length), width = x.shape, weight.shape[1]
    y, final = np.zeros(x.shape), np.zeros((batch, channels, width - 1))
    state = np.zeros(final.shape) if initial_state is None else initial_state
    for b in range(batch):
        first = _begins(None if segment_ids is None else segment_ids[b], length)
        at = lambda d, l: x[b, d, l] if l >= 0 else state[b, d, l]
        for d in range(channels):
            for l in range(length):
                z = 0.0 if bias is None else bias[d]
                for j in range(width):
                    if l - j >= first[l]:
                        z += weight[d, width - 1 - j] * at(d, l - j)
                y[b, d, l] = silu(z) if activation == "silu" else z
            for l in range(length - width + 1, length):
                if not length or l >= first[-1]:
                    final[b, d, l - length] = at(d, l)
    y = np.swapaxes(y, 1, 2) if data_format == "NLC" else y
    return (y, final) if with_state else y


def causal_conv1d_update(x, state, weight, bias=None, activation=None):
    rows, width = state.reshape(-1, *state.shape[-2:]), weight.shape[1]
    steps = x.reshape(-1, x.shape[-1], 1)
    y = causal_conv1d(steps, weight, bias, rows[..., rows.shape[-1] - width + 1 :], activation=activation)
    return y.reshape(x.shape), np.concatenate([state[..., 1:], x[..., None]], -1)
