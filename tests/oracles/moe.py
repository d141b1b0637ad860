"""Routing, token by token and slot by slot."""

import numpy as np

from . import packed


def _softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def _largest(x, k):
    return np.argsort(-x, kind="stable")[:k]


def _route(x, k, score, softmax_after, bias, num_groups, topk_groups, group_score, renormalize, scale):
    s = x if softmax_after else {"softmax": _softmax, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}[score](x)
    ranks = s if bias is None else s + bias
    if num_groups is not None:
        groups = ranks.reshape(num_groups, -1)
        best = np.sort(groups, 1)[:, -(2 if group_score == "top2" else 1) :].sum(1)
        outside = np.setdiff1d(np.arange(num_groups), _largest(best, topk_groups))
        groups = groups.copy()
        groups[outside] = -np.inf
        ranks = groups.ravel()
    experts = _largest(ranks, k)
    w = _softmax(s[experts]) if softmax_after else s[experts]
    return scale * (w / w.sum() if renormalize else w), experts


def moe_gating_topk(
    logits, k, score="softmax", softmax_after=False, bias=None, num_groups=None, topk_groups=None, group_score="top2",
    renormalize=False, scale=1.0,
):  # fmt: skip
    routes = [
        _route(x, k, score, softmax_after, bias, num_groups, topk_groups, group_score, renormalize, scale)
        for x in logits.reshape(-1, logits.shape[-1])
    ]
    weights, experts = (np.array(y).reshape(*logits.shape[:-1], k) for y in zip(*routes, strict=True))
    return weights, experts.astype(np.int32)


def moe_permute(x, experts, num_experts, capacity=None):
    by_expert = [[] for _ in range(num_experts)]
    for slot in np.ndindex(*experts.shape):
        e = int(experts[slot])
        if 0 <= e < num_experts and (capacity is None or len(by_expert[e]) < capacity):
            by_expert[e].append(slot)
    y = np.zeros((experts.size if capacity is None else num_experts * capacity, *x.shape[1:]), x.dtype)
    row_map, row = np.full(experts.shape, -1, np.int32), 0
    for e, slots in enumerate(by_expert):
        row = row if capacity is None else e * capacity
        for slot in slots:
            y[row], row_map[slot], row = x[slot[0]], row, row + 1
    return y, np.array([len(slots) for slots in by_expert], np.int32), row_map


def moe_combine(x, row_map, weights=None):
    y = np.zeros((len(row_map), *x.shape[1:]))
    for t, j in np.ndindex(*row_map.shape):
        if 0 <= row_map[t, j] < len(x):
            y[t] += (1 if weights is None else weights[t, j]) * x[row_map[t, j]]
    return y


def _experts(sizes, rows):
    return np.append(np.repeat(np.arange(len(sizes)), sizes), np.full(rows - np.sum(sizes), -1))


def moe_wmma(x, w, group_sizes):
    return packed.by_expert(x, w, _experts(group_sizes, len(x)))


def moe_scalar_gguf(x, data, group_sizes, format):
    return packed.by_expert(x, packed.gguf_weights(data, format), _experts(group_sizes, len(x)))
