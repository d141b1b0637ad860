"""Attention, query by query, and what prepares it."""

import math

import numpy as np


def _sees(i, j, t, s, is_causal, alignment, window):
    at = i + (s - t if alignment == "bottom_right" else 0)
    left, right = window if isinstance(window, tuple) else (window, window)
    if is_causal and j > at:
        return False
    return (left is None or j >= at - left) and (right is None or j <= at + right)


def sdpa(
    query, key, value, bias=None, mask=None, *, scale=None, is_causal=False, alignment="top_left", window=None, softcap=None,
    query_seq_lengths=None, key_value_seq_lengths=None, return_lse=False, **_,
):  # fmt: skip
    *batch, t, n, d = query.shape
    s, groups = key.shape[-3:-1]
    scale = d**-0.5 if scale is None else scale
    whole = (*batch, n, t, s)
    bias = np.broadcast_to(0 if bias is None else bias, whole)
    mask = np.broadcast_to(True if mask is None else mask, whole)
    y, lse = np.zeros((*batch, t, n, value.shape[-1])), np.full((*batch, t, n), -np.inf)
    for b in np.ndindex(*batch):
        rows = t if query_seq_lengths is None else int(query_seq_lengths[b])
        columns = s if key_value_seq_lengths is None else int(key_value_seq_lengths[b])
        for h, i in np.ndindex(n, min(rows, t)):
            of = h // (n // groups)
            keys = [
                j
                for j in range(min(columns, s))
                if mask[(*b, h, i, j)] and _sees(i, j, rows, columns, is_causal, alignment, window)
            ]
            scores = []
            for j in keys:
                score = scale * sum(query[(*b, i, h, e)] * key[(*b, j, of, e)] for e in range(d))
                score = score if softcap is None else softcap * math.tanh(score / softcap)
                scores.append(score + bias[(*b, h, i, j)])
            total = sum(math.exp(score) for score in scores)
            if total:
                parts = zip(scores, keys, strict=True)
                y[(*b, i, h)] = sum(math.exp(score) / total * value[(*b, j, of)] for score, j in parts)
                lse[(*b, i, h)] = math.log(total)
    return (y, lse) if return_lse else y


flash_sdpa = sdpa


def ring_attention(query, key, value, **kwargs):
    return sdpa(query, key, value, **kwargs)


def cascade_attention(query, prefix_key, prefix_value, key, value, *, is_causal=False, **kwargs):
    """Over the keys of both, with a mask for the causal part."""
    batch, (t, s), prefix = query.shape[:-3], (query.shape[-3], key.shape[-3]), len(prefix_key)
    joined = [
        np.concatenate([np.broadcast_to(a, (*batch, *a.shape)), b], -3)
        for a, b in ((prefix_key, key), (prefix_value, value))
    ]
    mask = np.array(
        [[j < prefix or not is_causal or j - prefix <= i + s - t for j in range(prefix + s)] for i in range(t)]
    )
    return sdpa(query, *joined, None, mask, **kwargs)


def cascade_merge_states(x, lse, axis=0):
    shape = lse.shape[:axis] + lse.shape[axis + 1 :]
    y, merged = np.zeros((*shape, x.shape[-1])), np.full(shape, -np.inf)
    for at in np.ndindex(*shape):
        states = [(*at[:axis], k, *at[axis:]) for k in range(lse.shape[axis])]
        total = sum(math.exp(lse[state]) for state in states)
        if total:
            y[at] = sum(math.exp(lse[state]) / total * x[state] for state in states)
            merged[at] = math.log(total)
    return y, merged


def _turned(x, angles_of, interleaved):
    """x [..., length, heads, d]; angles_of(index of a token) gives (cos, sin) of each pair."""
    y = np.array(x, np.float64)
    for at in np.ndindex(*x.shape[:-1]):
        cos, sin = angles_of(at[:-1])
        for i, (c, s) in enumerate(zip(cos, sin, strict=True)):
            a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + len(cos))
            u, w = x[(*at, a)], x[(*at, b)]
            y[(*at, a)], y[(*at, b)] = u * c - w * s, u * s + w * c
    return y


def rope(x, positions, *, base=10000.0, rotary_dim=None, interleaved=False):
    size = rotary_dim or x.shape[-1]
    positions = np.broadcast_to(positions, x.shape[:-2])

    def angles(at):
        turns = [positions[at] * base ** (-2 * i / size) for i in range(size // 2)]
        return [math.cos(a) for a in turns], [math.sin(a) for a in turns]

    return _turned(x, angles, interleaved)


def rope_apply_table(x, cos, sin, positions, *, interleaved=False):
    positions = np.broadcast_to(positions, x.shape[:-2])
    return _turned(x, lambda at: (cos[positions[at]], sin[positions[at]]), interleaved)


def rope_frequency(i, dim, base, scaling, *, factor, original_length, length=None, low=1.0, high=4.0, factors=None):
    """That of a pair, as the papers have it."""
    plain = base ** (-2 * i / dim)
    turns = original_length * plain / (2 * math.pi)
    if scaling == "linear":
        return plain / factor
    if scaling == "dynamic":
        ratio = max(length or 0, original_length) / original_length
        return (base * (factor * ratio - factor + 1) ** (dim / (dim - 2))) ** (-2 * i / dim)
    if scaling == "longrope":
        return plain / factors[i]
    if scaling == "llama3":
        if turns >= high:
            return plain
        return plain / factor if turns <= low else plain * (1 + (turns - low) / (high - low) * (factor - 1)) / factor
    at = lambda count: dim * math.log(original_length / (count * 2 * math.pi)) / (2 * math.log(base))
    first, last = max(math.floor(at(32)), 0), min(math.ceil(at(1)), dim - 1)
    share = min(max((i - first) / (last - first or 0.001), 0), 1)
    return plain * (1 - share) + plain / factor * share


def rope_scaled_table(positions, *, dim, base=10000.0, scaling, factor, **kwargs):
    freq = np.array([rope_frequency(i, dim, base, scaling, factor=factor, **kwargs) for i in range(dim // 2)])
    by = 0.1 * math.log(factor) + 1 if scaling == "yarn" else 1.0
    angle = np.multiply.outer(positions, freq)
    return by * np.cos(angle), by * np.sin(angle)


def alibi(x, slopes, *, alignment="top_left"):
    y, (t, s) = np.array(x, np.float64), x.shape[-2:]
    for *batch, h, i, j in np.ndindex(*x.shape):
        y[(*batch, h, i, j)] += slopes[h] * (j - i - (s - t if alignment == "bottom_right" else 0))
    return y


def paged_kv_append(pages, new, page_table, position):
    y, n = pages.copy(), pages.shape[1]
    for b, i in np.ndindex(*new.shape[:2]):
        p = int(position[b]) + i
        if 0 <= p < n * page_table.shape[1] and 0 <= page_table[b, p // n] < len(pages):
            y[page_table[b, p // n], p % n] = new[b, i]
    return y


def batch_paged_decode(
    query, k_pages, v_pages, page_table, lengths, slopes=None, *, scale=None, softcap=None, window=None, return_lse=False
):  # fmt: skip
    (batch, heads, d), (pages, n, groups, _) = query.shape, k_pages.shape
    scale = d**-0.5 if scale is None else scale
    y, lse = np.zeros((batch, heads, v_pages.shape[-1])), np.full((batch, heads), -np.inf)
    for b, h in np.ndindex(batch, heads):
        length = min(int(lengths[b]), n * page_table.shape[1])
        scores, values = [], []
        for j in range(length):
            page, own = int(page_table[b, j // n]), (j % n, h // (heads // groups))
            if 0 <= page < pages and (window is None or j >= length - 1 - window):
                score = scale * np.dot(query[b, h], k_pages[(page, *own)])
                score = score if softcap is None else softcap * math.tanh(score / softcap)
                scores.append(score + (0 if slopes is None else slopes[h] * (j - length + 1)))
                values.append(v_pages[(page, *own)])
        if scores:
            weights = np.exp(np.array(scores) - max(scores))
            y[b, h] = (weights[:, None] * values).sum(0) / weights.sum()
            lse[b, h] = max(scores) + math.log(weights.sum())
    return (y, lse) if return_lse else y


def batch_paged_decode_fp8(query, k_pages, v_pages, page_table, lengths, k_scale, v_scale, **kwargs):
    k, v = (
        np.asarray(pages, np.float64) * np.reshape(scale, (-1, 1))
        for pages, scale in ((k_pages, k_scale), (v_pages, v_scale))
    )
    return batch_paged_decode(query, k, v, page_table, lengths, **kwargs)


def flash_decoding(query, key, value, lengths, slopes=None, **kwargs):
    batch, count = query.shape[:-2], math.prod(query.shape[:-2])
    flat = lambda x, rank: np.reshape(x, (count, *x.shape[x.ndim - rank :]))
    table = np.arange(count)[:, None]
    found = batch_paged_decode(
        flat(query, 2), flat(key, 3), flat(value, 3), table, flat(lengths, 0), slopes, **kwargs
    )  # fmt: skip
    of_batch = lambda x: x.reshape(*batch, *x.shape[1:])
    return tuple(map(of_batch, found)) if isinstance(found, tuple) else of_batch(found)


def _alibi(slopes, t, s, offset):
    return None if slopes is None else slopes[:, None, None] * (np.arange(s) - np.arange(t)[:, None] - offset)


def flash_sdpa_varlen(
    query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=None, max_seqlen_k=None, slopes=None, key_positions=None, *,
    alignment="bottom_right", return_lse=False, **options,
):  # fmt: skip
    """Sequence by sequence."""
    if key_positions is not None:
        arrays = query, key, value, cu_seqlens_q, cu_seqlens_k, slopes, key_positions
        y, lse = _listed(*arrays, alignment == "bottom_right", **options)
        return (y, lse) if return_lse else y
    y, lse = np.zeros((*query.shape[:-1], value.shape[-1])), np.full(query.shape[:-1], -np.inf)
    for b in range(len(cu_seqlens_q) - 1):
        rows, keys = (slice(starts[b], starts[b + 1]) for starts in (cu_seqlens_q, cu_seqlens_k))
        q, k, v = query[rows], key[keys], value[keys]
        bias = _alibi(slopes, len(q), len(k), len(k) - len(q) if alignment == "bottom_right" else 0)
        y[rows], lse[rows] = sdpa(q, k, v, bias, alignment=alignment, return_lse=True, **options)
    return (y, lse) if return_lse else y


def _listed(
    query, key, value, starts, starts_k, slopes, positions, bottom_right, *, is_causal=False, window=None, scale=None,
    softcap=None, block_size=None,
):  # fmt: skip
    """Query by query, of the keys that it sees by their positions."""
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    left, right = window if isinstance(window, tuple) else (window, window)
    y, lse = np.zeros((*query.shape[:-1], value.shape[-1])), np.full(query.shape[:-1], -np.inf)
    for b, h in np.ndindex(len(starts) - 1, query.shape[1]):
        of, group = slice(starts_k[b], starts_k[b + 1]), h // (query.shape[1] // key.shape[1])
        at = np.asarray(positions[of], np.int64)
        shift = len(at) - (starts[b + 1] - starts[b]) if bottom_right else 0
        for row in range(starts[b], starts[b + 1]):
            distance = at - (row - starts[b] + shift)
            seen = at != -(2**31)
            seen &= (distance <= 0) if is_causal else True
            seen &= True if left is None else distance >= -left
            seen &= True if right is None else distance <= right
            if seen.any():
                s = scale * key[of, group][seen] @ query[row, h]
                s = s if softcap is None else softcap * np.tanh(s / softcap)
                s = s + (0 if slopes is None else slopes[h] * distance[seen])
                p = np.exp(s - s.max())
                y[row, h], lse[row, h] = p @ value[of, group][seen] / p.sum(), s.max() + np.log(p.sum())
    return y, lse


def paged_attention(
    query, k_pages, v_pages, page_table, lengths, query_seq_lengths=None, slopes=None, *, is_causal=True, return_lse=False,
    **options,
):  # fmt: skip
    """Sequence by sequence, of the keys that there are; a page that there is not is masked."""
    y, lse = np.zeros((*query.shape[:-1], v_pages.shape[-1])), np.full(query.shape[:-1], -np.inf)
    n = k_pages.shape[1]
    for b, table in enumerate(page_table):
        length = min(int(lengths[b]), n * len(table))
        count = query.shape[1] if query_seq_lengths is None else int(query_seq_lengths[b])
        at = [(int(table[j // n]), j % n) for j in range(length)]
        exists = np.array([0 <= page < len(k_pages) for page, _ in at], bool)
        k, v = (np.array([x[p] if e else x[0, 0] for p, e in zip(at, exists, strict=True)]) for x in (k_pages, v_pages))
        k, v = k.reshape(length, *k_pages.shape[2:]), v.reshape(length, *v_pages.shape[2:])
        bias = _alibi(slopes, count, length, length - count)
        y[b, :count], lse[b, :count] = sdpa(
            query[b, :count],
            k,
            v,
            bias,
            exists,
            is_causal=is_causal,
            alignment="bottom_right",
            return_lse=True,
            **options,
        )
    return (y, lse) if return_lse else y


def batch_paged_prefill(
    query, k_pages, v_pages, page_table, lengths, qo_indptr, max_seqlen_q=None, slopes=None, *, return_lse=False, **options
):  # fmt: skip
    y, lse = np.zeros((*query.shape[:-1], v_pages.shape[-1])), np.full(query.shape[:-1], -np.inf)
    for b in range(len(qo_indptr) - 1):
        rows, one = slice(qo_indptr[b], qo_indptr[b + 1]), slice(b, b + 1)
        found = paged_attention(
            query[None, rows], k_pages, v_pages, page_table[one], lengths[one], None, slopes, return_lse=True, **options
        )
        y[rows], lse[rows] = found[0][0], found[1][0]
    return (y, lse) if return_lse else y


def sdpa_block_sparse(query, key, value, key_blocks, slopes=None, block_size=64, *, alignment="top_left", **options):
    m, n = block_size if isinstance(block_size, tuple) else (block_size, block_size)
    mask = np.array([[j // n in key_blocks[i // m] for j in range(key.shape[-3])] for i in range(query.shape[-3])])
    t, s = query.shape[-3], key.shape[-3]
    bias = _alibi(slopes, t, s, s - t if alignment == "bottom_right" else 0)
    return sdpa(query, key, value, bias, mask, alignment=alignment, **options)


def hyper_connection(x, pre, post, mix, weight, *, iterations=20, eps=1e-5):
    gate = lambda logits: 1 / (1 + np.exp(-logits))
    y, n = np.zeros(x.shape), x.shape[-2]
    for at in np.ndindex(*x.shape[:-2]):
        streams = x[at]
        before, after, matrix = (a[at] if a.ndim > r else a for a, r in ((pre, 1), (post, 1), (mix, 2)))
        matrix = np.exp(matrix)
        for _ in range(iterations):
            matrix = matrix / matrix.sum(1, keepdims=True)
            matrix = matrix / matrix.sum(0, keepdims=True)
        h = sum(gate(before[i]) * streams[i] for i in range(n))
        h = h / np.sqrt((h**2).mean() + eps) * weight
        for i in range(n):
            y[(*at, i)] = sum(matrix[i, j] * streams[j] for j in range(n)) + 2 * gate(after[i]) * h
    return y


def kv_cache_append(cache, new, position):
    """Row by row."""
    y, new = np.array(cache), np.asarray(new)
    for batch in np.ndindex(y.shape[:-2]):
        p = int(position[batch[: position.ndim]])
        for i, row in enumerate(new[batch]):
            if 0 <= p + i < y.shape[-2]:
                y[(*batch, p + i)] = row
    return y
