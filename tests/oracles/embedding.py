"""Embeddings, id by id and bag by bag."""

import itertools

import numpy as np


def embedding(x, weight):
    y = np.zeros((*x.shape, *weight.shape[1:]), weight.dtype)
    for at in np.ndindex(*x.shape):
        if 0 <= x[at] < len(weight):
            y[at] = weight[x[at]]
    return y


def _bags(x, offsets, include_last_offset):
    if offsets is None:
        return list(x)
    ends = [*offsets] if include_last_offset else [*offsets, len(x)]
    return [x[a:b] for a, b in itertools.pairwise(ends)]


def _bag(reduce):
    def embedding_bag(x, weight, offsets=None, mode=None, padding_idx=None, include_last_offset=False):
        padding = None if padding_idx is None else padding_idx % len(weight)
        bags = _bags(x, offsets, include_last_offset)
        y = np.zeros((len(bags), *weight.shape[1:]), weight.dtype)
        for b, ids in enumerate(bags):
            rows = [weight[i] for i in map(int, ids) if 0 <= i < len(weight) and i != padding]
            if rows:
                y[b] = reduce(rows, axis=0)
        return y

    return embedding_bag


embedding_bag_sum, embedding_bag_mean, embedding_bag_max = map(_bag, (np.sum, np.mean, np.max))


def embedding_backward_rows(x, dy, num_rows, size=None, padding_idx=None):
    padding = None if padding_idx is None else padding_idx % num_rows
    size = min(x.size, num_rows) if size is None else size
    ids, rows = np.full(size, num_rows), np.zeros((size, *dy.shape[x.ndim :]), dy.dtype)
    flat, dy = x.ravel().astype(int), dy.reshape(x.size, *dy.shape[x.ndim :])
    for i, v in enumerate([v for v in sorted(set(flat)) if 0 <= v < num_rows and v != padding][:size]):
        ids[i], rows[i] = v, dy[flat == v].sum(0)
    return ids, rows


def embedding_sgd_step(weight, x, dy, learning_rate, padding_idx=None):
    ids, rows = embedding_backward_rows(x, dy, len(weight), None, padding_idx)
    y = weight.copy()
    for v, row in zip(ids, rows, strict=True):
        if v < len(y):
            y[v] -= learning_rate * row
    return y


def embedding_adagrad_step(weight, accumulator, x, dy, learning_rate, padding_idx=None, eps=1e-10):
    ids, rows = embedding_backward_rows(x, dy, len(weight), None, padding_idx)
    y, squares = weight.copy(), accumulator.copy()
    for v, row in zip(ids, rows, strict=True):
        if v < len(y):
            squares[v] += row**2
            y[v] -= learning_rate * row / (np.sqrt(squares[v]) + eps)
    return y, squares
