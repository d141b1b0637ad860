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


def _step(raw, softplus):
    return np.log1p(np.exp(-abs(raw))) + max(raw, 0) if softplus else raw


def selective_scan(
    u, dt, A, B, C, D=None, z=None, dt_bias=None, initial_state=None, segment_ids=None, dt_softplus=False,
    return_final_state=False,
):  # fmt: skip
    (batch, channels, length), states = u.shape, A.shape[1]
    B, C = (x[:, None] if x.ndim == 3 else x for x in (B, C))
    y, h = np.zeros(u.shape), np.zeros((batch, channels, states))
    for b in range(batch):
        first = _begins(None if segment_ids is None else segment_ids[b], length)
        for d in range(channels):
            group = d * B.shape[1] // channels
            if initial_state is not None:
                h[b, d] = initial_state[b, d]
            for l in range(length):
                if first[l] == l:
                    h[b, d] = 0
                step = _step(dt[b, d, l] + (0 if dt_bias is None else dt_bias[d]), dt_softplus)
                h[b, d] = np.exp(step * A[d]) * h[b, d] + step * u[b, d, l] * B[b, group, :, l]
                value = C[b, group, :, l] @ h[b, d] + (0 if D is None else D[d] * u[b, d, l])
                y[b, d, l] = value if z is None else value * silu(z[b, d, l])
    return (y, h) if return_final_state else y


def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False):
    last = lambda a: None if a is None else a[..., None]
    y, state = selective_scan(
        last(x), last(dt), A, last(B), last(C), D, last(z), dt_bias, state, None, dt_softplus, return_final_state=True
    )
    return y[..., 0], state


def ssd_chunk_scan(
    x, dt, A, B, C, D=None, z=None, dt_bias=None, initial_state=None, segment_ids=None, dt_softplus=False,
    return_final_state=False, chunk_size=None,
):  # fmt: skip
    """Position by position: there are no chunks."""
    (batch, length, heads, rows), states = x.shape, B.shape[3]
    y, h = np.zeros(x.shape), np.zeros((batch, heads, rows, states))
    for b in range(batch):
        first = _begins(None if segment_ids is None else segment_ids[b], length)
        for k in range(heads):
            group = k * B.shape[2] // heads
            if initial_state is not None:
                h[b, k] = initial_state[b, k]
            for l in range(length):
                if first[l] == l:
                    h[b, k] = 0
                step = _step(dt[b, l, k] + (0 if dt_bias is None else dt_bias[k]), dt_softplus)
                h[b, k] = np.exp(step * A[k]) * h[b, k] + step * np.outer(x[b, l, k], B[b, l, group])
                value = h[b, k] @ C[b, l, group] + (0 if D is None else D[k] * x[b, l, k])
                y[b, l, k] = value if z is None else value * silu(z[b, l, k])
    return (y, h) if return_final_state else y
