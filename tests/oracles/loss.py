"""Losses, term by term."""

import math

import numpy as np


def _reduced(terms, reduction, count=None):
    terms = np.asarray(terms)
    if reduction == "none":
        return terms
    if reduction == "sum":
        return terms.sum()
    if reduction == "batchmean":
        return terms.sum() / terms.shape[0]
    return terms.sum() / (terms.size if count is None else count)


def _each(term, *arrays):
    """A function of Python numbers, of each element."""
    arrays = np.broadcast_arrays(*arrays)
    flat = [term(*map(float, some)) for some in zip(*(a.ravel() for a in arrays), strict=True)]
    return np.array(flat, np.float64).reshape(arrays[0].shape)


def mse_loss(x, target, weight=1.0, reduction="mean"):
    weight = np.broadcast_to(weight, x.shape)
    return _reduced(_each(lambda a, b, w: w * (a - b) ** 2, x, target, weight), reduction, weight.sum())


def l1_loss(x, target, weight=1.0, reduction="mean"):
    weight = np.broadcast_to(weight, x.shape)
    return _reduced(_each(lambda a, b, w: w * abs(a - b), x, target, weight), reduction, weight.sum())


def huber_loss(x, target, weight=1.0, delta=1.0, reduction="mean"):
    def term(a, b, w):
        d = abs(a - b)
        return w * (d * d / 2 if d <= delta else delta * (d - delta / 2))

    return _reduced(_each(term, x, target, weight), reduction)


def smooth_l1_loss(x, target, beta=1.0, reduction="mean"):
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)
    return huber_loss(x, target, 1 / beta, beta, reduction)


def bce_loss(x, target, weight=1.0, reduction="mean"):
    log = lambda p: max(math.log(p), -100) if p else -100
    return _reduced(_each(lambda p, t, w: -w * (t * log(p) + (1 - t) * log(1 - p)), x, target, weight), reduction)


def bce_with_logits_loss(x, target, weight=1.0, pos_weight=1.0, reduction="mean"):
    p = 1 / (1 + np.exp(-x))
    return _reduced(-weight * (pos_weight * target * np.log(p) + (1 - target) * np.log(1 - p)), reduction)


def kl_div_loss(x, target, log_target=False, reduction="mean"):
    p = np.exp(target) if log_target else target
    return _reduced(_each(lambda a, q: q * (math.log(q) - a) if q else 0, x, p), reduction)


def poisson_nll_loss(x, target, log_input=True, full=False, eps=1e-8, reduction="mean"):
    def term(a, t):
        rate, log_rate = (math.exp(a), a) if log_input else (a, math.log(a + eps))
        stirling = t * math.log(t) - t + math.log(2 * math.pi * t) / 2 if full and t > 1 else 0
        return rate - t * log_rate + stirling

    return _reduced(_each(term, x, target), reduction)


def gaussian_nll_loss(x, target, var, full=False, eps=1e-6, reduction="mean"):
    var = np.maximum(var, eps)
    density = np.exp(-((x - target) ** 2) / (2 * var)) / np.sqrt(var)
    return _reduced(-np.log(density / (math.sqrt(2 * math.pi) if full else 1)), reduction)


def hinge_embedding_loss(x, target, margin=1.0, reduction="mean"):
    return _reduced(_each(lambda a, t: a if t == 1 else max(0, margin - a), x, target), reduction)


def margin_ranking_loss(x1, x2, target, margin=0.0, reduction="mean"):
    return _reduced(_each(lambda a, b, t: max(0, -t * (a - b) + margin), x1, x2, target), reduction)


def _rows(x, target, axis):
    """Index of a row in the target, its scores and its class, of the rows whose class there is."""
    moved = np.moveaxis(x, axis, -1)
    for i in np.ndindex(target.shape):
        if 0 <= target[i] < x.shape[axis]:
            yield i, moved[i], int(target[i])


def _of_rows(term, x, target, weight, axis, ignore_index, reduction):
    terms, count = np.zeros(target.shape), 0.0
    for i, row, t in _rows(x, target, axis):
        if t != ignore_index:
            terms[i] = term(row, t)
            count += weight[t]
    return _reduced(terms, reduction, count)


def _axis(x, axis):
    return min(1, x.ndim - 1) if axis is None else axis


def _ones(x, weight, axis):
    return np.ones(x.shape[axis]) if weight is None else weight


def nll_loss(x, target, weight=None, axis=None, ignore_index=-100, reduction="mean"):
    axis = _axis(x, axis)
    weight = _ones(x, weight, axis)
    return _of_rows(lambda row, t: -weight[t] * row[t], x, target, weight, axis, ignore_index, reduction)


def _log_softmax(row):
    return np.log(np.exp(row) / np.exp(row).sum())


def cross_entropy_loss(
    x, target, weight=None, axis=None, ignore_index=-100, label_smoothing=0.0, reduction="mean",
    z_loss=0.0, softcap=None,
):  # fmt: skip
    x = x if softcap is None else softcap * np.tanh(x / softcap)
    axis = _axis(x, axis)
    if target.dtype.kind == "f":
        return cross_entropy_soft_loss(x, target, weight, axis, label_smoothing, reduction)
    weight = _ones(x, weight, axis)

    def term(row, t):
        log_p = _log_softmax(row)
        square = z_loss * np.log(np.exp(row).sum()) ** 2
        return -(1 - label_smoothing) * weight[t] * log_p[t] - label_smoothing * (weight * log_p).mean() + square

    return _of_rows(term, x, target, weight, axis, ignore_index, reduction)


def cross_entropy_terms(x, target, axis=None, ignore_index=-100, softcap=None, return_lse=False):
    x = x if softcap is None else softcap * np.tanh(x / softcap)
    of = lambda term: _of_rows(term, x, target, _ones(x, None, _axis(x, axis)), _axis(x, axis), ignore_index, "none")
    lse = of(lambda row, t: np.log(np.exp(row).sum()))
    return (lse - of(lambda row, t: row[t]), lse)[: 2 if return_lse else 1]


def linear_cross_entropy(
    x, linear_weight, target, linear_bias=0.0, weight=None, ignore_index=-100, label_smoothing=0.0, z_loss=0.0,
    softcap=None, reduction="mean", chunk_rows=None,
):  # fmt: skip
    logits = np.einsum("...h,ch->...c", x, linear_weight) + linear_bias
    return cross_entropy_loss(logits, target, weight, -1, ignore_index, label_smoothing, reduction, z_loss, softcap)


def cross_entropy_soft_loss(x, target, weight=None, axis=None, label_smoothing=0.0, reduction="mean"):
    axis = _axis(x, axis)
    scores, q = np.moveaxis(x, axis, -1), np.moveaxis(target, axis, -1)
    weight, terms = _ones(x, weight, axis), np.zeros(scores.shape[:-1])
    for i in np.ndindex(terms.shape):
        smooth = (1 - label_smoothing) * q[i] + label_smoothing / q.shape[-1]
        terms[i] = -(weight * smooth * _log_softmax(scores[i])).sum()
    return _reduced(terms, reduction)


def multi_margin_loss(x, target, weight=None, axis=None, p=1, margin=1.0, reduction="mean"):
    axis = _axis(x, axis)
    weight, terms, count = _ones(x, weight, axis), np.zeros(target.shape), 0
    for i, row, t in _rows(x, target, axis):
        others = [max(0, margin - row[t] + s) ** p for c, s in enumerate(row) if c != t]
        terms[i] = weight[t] * sum(others) / len(row)
        count += 1
    return _reduced(terms, reduction, count)


def multilabel_margin_loss(x, target, axis=-1, reduction="mean"):
    scores, labels = np.moveaxis(x, axis, -1), np.moveaxis(target, axis, -1)
    terms = np.zeros(scores.shape[:-1])
    for i in np.ndindex(terms.shape):
        few = labels[i].tolist()
        few = few[: next((k for k, t in enumerate(few) if t < 0), len(few))]
        row = scores[i]
        few = [t for t in few if t < len(row)]
        terms[i] = sum(max(0, 1 - row[t] + s) for t in few for c, s in enumerate(row) if c not in few) / len(row)
    return _reduced(terms, reduction)


def multilabel_soft_margin_loss(x, target, weight=1.0, axis=-1, reduction="mean"):
    return _reduced(bce_with_logits_loss(x, target, weight, reduction="none").mean(axis), reduction)


def cosine_embedding_loss(x1, x2, target, axis=-1, margin=0.0, reduction="mean"):
    a, b = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    terms = np.zeros(a.shape[:-1])
    for i in np.ndindex(terms.shape):
        cos = a[i] @ b[i] / np.sqrt((a[i] @ a[i] + 1e-12) * (b[i] @ b[i] + 1e-12))
        terms[i] = {1: 1 - cos, -1: max(0, cos - margin)}[int(np.broadcast_to(target, terms.shape)[i])]
    return _reduced(terms, reduction)


def triplet_margin_loss(anchor, positive, negative, axis=-1, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    distance = lambda a, b: np.linalg.norm(np.moveaxis(a - b + eps, axis, -1), p, -1)
    far = distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return _reduced(np.maximum(0, margin + distance(anchor, positive) - far), reduction)


def _alignments(target, blank, p):
    """The probability of a target: sums over frames in order, of probabilities p [T, C]."""
    states = [blank, *(s for label in target for s in (int(label), blank))]
    if any(not 0 <= label < p.shape[1] or label == blank for label in target):
        return 0.0
    ways = np.zeros(len(states))
    ways[:2] = 1
    for t, row in enumerate(p):
        if t:
            before = np.concatenate([[0, 0], ways])
            skips = [s > 1 and states[s] != blank and states[s] != states[s - 2] for s in range(len(states))]
            ways = before[2:] + before[1:-1] + np.where(skips, before[:-2], 0)
        ways = ways * row[states]
    return ways[-2:].sum() if len(p) else float(not len(target))


def ctc_loss(
    x, targets, input_lengths=None, target_lengths=None, blank=0, reduction="mean", zero_infinity=False, log_probs=False
):
    batch = x.shape[:-2]
    lengths = lambda given, size: np.broadcast_to(size if given is None else given, batch).ravel()
    frames, labels = lengths(input_lengths, x.shape[-2]), lengths(target_lengths, targets.shape[-1])
    p = np.exp(x) if log_probs else np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    rows = zip(p.reshape(-1, *p.shape[-2:]), targets.reshape(-1, targets.shape[-1]), frames, labels, strict=True)
    with np.errstate(divide="ignore"):
        losses = -np.log([_alignments(t[:count], blank, q[:length]) for q, t, length, count in rows])
    losses = np.where(np.isinf(losses), 0, losses) if zero_infinity else losses
    losses = losses / np.maximum(labels, 1) if reduction == "mean" else losses
    return _reduced(losses.reshape(batch), reduction)


def _transducer(p, target, blank):
    """The probability of a target: sums over the nodes [T + 1, U + 1] in order, of probabilities p [T, U + 1, C]."""
    if any(not 0 <= label < p.shape[2] or label == blank for label in target):
        return 0.0
    ways = np.zeros((len(p) + 1, len(target) + 1))
    ways[0, 0] = 1
    for t in range(len(p)):
        for u, label in enumerate(target):
            ways[t, u + 1] += ways[t, u] * p[t, u, label]
        ways[t + 1] = ways[t] * p[t, : len(target) + 1, blank]
        ways[t + 1, :-1] *= t + 1 < len(p)  # after the last frame no label is written
    return ways[-1, -1]


def rnnt_loss(x, targets, input_lengths=None, target_lengths=None, blank=0, reduction="mean", log_probs=False):
    batch = x.shape[:-3]
    lengths = lambda given, size: np.broadcast_to(size if given is None else given, batch).ravel()
    frames, labels = lengths(input_lengths, x.shape[-3]), lengths(target_lengths, targets.shape[-1])
    p = np.exp(x) if log_probs else np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    rows = zip(p.reshape(-1, *p.shape[-3:]), targets.reshape(-1, targets.shape[-1]), frames, labels, strict=True)
    with np.errstate(divide="ignore"):
        losses = -np.log([_transducer(q[:length], t[:count], blank) for q, t, length, count in rows])
    return _reduced(losses.reshape(batch), reduction)


def _warped(cost, gamma):
    """The soft minimum of the cost of the ways through a matrix, element by element."""
    best = np.full((cost.shape[0] + 1, cost.shape[1] + 1), np.inf)
    best[0, 0] = 0
    for n, m in np.ndindex(cost.shape):
        ways = np.array([best[n, m], best[n, m + 1], best[n + 1, m]])
        best[n + 1, m + 1] = cost[n, m] - gamma * np.logaddexp.reduce(-ways / gamma)
    return best[-1, -1]


def soft_dtw(cost, row_lengths=None, column_lengths=None, gamma=1.0):
    batch = cost.shape[:-2]
    lengths = lambda given, size: np.broadcast_to(size if given is None else given, batch).ravel()
    rows, columns = lengths(row_lengths, cost.shape[-2]), lengths(column_lengths, cost.shape[-1])
    every = zip(cost.reshape(-1, *cost.shape[-2:]), rows, columns, strict=True)
    return np.array([_warped(matrix[:n, :m], gamma) for matrix, n, m in every]).reshape(batch)
