"""Random numbers, by threefry written out, and what is drawn by them."""

import ml_dtypes  # noqa: F401, which tells NumPy what bfloat16 is
import numpy as np
from scipy.special import erfinv

# dtype: (bits that are drawn, bits of the mantissa)
DRAWN = {"float64": (64, 52), "float32": (32, 23), "float16": (16, 10), "bfloat16": (8, 7)}
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key, counters):
    """Salmon et al., 2011: two words of 32 bits each for each counter of 64."""
    a, b = (counters >> 32).astype(np.uint32), counters.astype(np.uint32)
    keys = [*map(np.uint32, key), np.uint32(key[0]) ^ np.uint32(key[1]) ^ np.uint32(0x1BD11BDA)]
    with np.errstate(over="ignore"):
        a, b = a + keys[0], b + keys[1]
        for i in range(5):
            for r in ROTATIONS[i % 2]:
                a = a + b
                b = ((b << np.uint32(r)) | (b >> np.uint32(32 - r))) ^ a
            a, b = a + keys[(i + 1) % 3], b + keys[(i + 2) % 3] + np.uint32(i + 1)
    return a, b


def philox(key, counters):
    """Salmon et al., 2011: four words of 32 bits for each counter of 64, of a key of four, of which two are the counter's upper half."""
    key = [np.uint64(word) for word in key]
    low = np.uint64(0xFFFFFFFF)
    words = [counters & low, counters >> np.uint64(32), *(np.broadcast_to(word, counters.shape) for word in key[2:])]
    key = key[:2]
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ key[0],
            second & low,
            (first >> np.uint64(32)) ^ words[3] ^ key[1],
            first & low,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(words, -1).astype(np.uint32)


def random_bits(key, *, shape=(), dtype):
    count = np.prod(shape, dtype=np.int64)
    blocks = philox(np.asarray(key), np.arange(count * np.dtype(dtype).itemsize // 16 + 1).astype(np.uint64))
    return np.frombuffer(blocks.tobytes(), dtype, count).reshape(shape)


def unit(key, shape, dtype):
    """Uniform in [0, 1)."""
    bits, mantissa = DRAWN[dtype]
    if np.shape(key) == (4,):
        return (random_bits(key, shape=shape, dtype=f"uint{bits}") >> (bits - mantissa)) * 2.0**-mantissa
    a, b = threefry(np.asarray(key), np.arange(np.prod(shape, dtype=np.int64)).astype(np.uint64))
    words = (a.astype(np.uint64) << np.uint64(32)) | b if bits == 64 else (a ^ b) & np.uint64(2**bits - 1)
    return ((words >> np.uint64(bits - mantissa)) * 2.0**-mantissa).reshape(shape)


def random_uniform(key, low, high, *, shape=None, dtype):
    low, high = np.broadcast_arrays(low, high) if shape is None else (np.broadcast_to(a, shape) for a in (low, high))
    return np.maximum(low, low + (high - low) * unit(key, low.shape, dtype))


def random_normal(key, mean, std, *, shape=None, dtype):
    shape = np.broadcast_shapes(mean.shape, std.shape) if shape is None else shape
    inside = -1 + 2.0 ** -(DRAWN[dtype][1] + 1)
    return mean + std * np.sqrt(2) * erfinv(2 * unit(key, shape, dtype) + inside)


def random_bernoulli(key, p, *, shape=None, dtype):
    return unit(key, p.shape if shape is None else shape, dtype) < p


def dropout(x, key, rate=0.5, *, broadcast_axes=()):
    axes = [a % x.ndim for a in broadcast_axes]
    kept = unit(key, [1 if i in axes else n for i, n in enumerate(x.shape)], "float32") < np.float32(1 - rate)
    return np.where(kept, x / (1 - rate), 0)


def multinomial(x, key, num_samples=1, *, replacement=False, logits=False, dtype):
    wide = dtype if dtype == "float64" else "float32"
    log = x if logits else np.log(x)
    noise = unit(key, ((num_samples,) if replacement else ()) + x.shape, wide)
    noise = -np.log(-np.log(np.maximum(noise, np.finfo(wide).tiny)))
    if replacement:
        return np.moveaxis((noise + log).argmax(-1), 0, -1)
    return np.argsort(-(noise + log), -1, kind="stable")[..., :num_samples]


def token_penalty(logits, tokens, repetition=1.0, frequency=0.0, presence=0.0):
    y, lead = logits.copy(), logits.shape[:-1]
    factors = [np.broadcast_to(a, lead) for a in (repetition, frequency, presence)]
    for row in np.ndindex(*lead):
        r, f, p = (a[row] for a in factors)
        found = [t for t in tokens[row].tolist() if 0 <= t < logits.shape[-1]]
        for t in set(found):
            old = logits[(*row, t)]
            y[(*row, t)] = (old * r if old < 0 else old / r) - f * found.count(t) - p
    return y


def sampled(logits, key, k=0, p=1.0, min_p=0.0, temperature=1.0, probabilities=False, joint=False):
    """(tokens, their probabilities among those kept), in float64."""
    rows, key = logits.shape[:-1], np.asarray(key)
    if key.shape == (2,) and rows:
        key = np.stack(threefry(key, np.arange(np.prod(rows, dtype=int)).astype(np.uint64)), -1).reshape(*rows, 2)
    k, p, min_p, temperature = (np.broadcast_to(a, rows) for a in (k, p, min_p, temperature))
    tokens, chances = np.zeros(rows, np.int64), np.zeros(rows)
    for row in np.ndindex(*rows):
        x, a, b = logits[row], *threefry(key[row], np.arange(2).astype(np.uint64))
        order = np.argsort(-x, kind="stable")
        chance = np.maximum(x, 0)[order]
        if not probabilities:
            warm = temperature[row] if temperature[row] > 0 else 1
            chance = np.exp((x[order] - x.max()) / warm)
        chance = chance / chance.sum()
        kept = np.flatnonzero(chance >= min_p[row] * chance[0])[-1] + 1
        most = 1 if temperature[row] <= 0 else k[row]
        if 0 < most < x.size:
            kept = min(kept, most)
        sums = np.cumsum(chance)
        if p[row] < 1:
            kept = min(kept, np.searchsorted(sums, p[row] * (1 if joint else sums[kept - 1])) + 1)
        words = [int(word) for word in a ^ b]
        i = np.searchsorted(sums, (words[0] * 2.0**-32 + words[1] * 2.0**-64) * sums[kept - 1], side="right")
        tokens[row], chances[row] = order[i], chance[i] / sums[kept - 1]
    return tokens, chances


def top_k_sampling(logits, key, k=0, *, return_logprobs=False, return_valid=False, **kwargs):
    return sampled(logits, key, k=k, **kwargs)[0]


def top_p_sampling(logits, key, p=1.0, **kwargs):
    return sampled(logits, key, p=p, **kwargs)[0]


def min_p_sampling(logits, key, min_p=0.0, **kwargs):
    return sampled(logits, key, min_p=min_p, **kwargs)[0]


def top_k_top_p_sampling(logits, key, k=0, p=1.0, **kwargs):
    return sampled(logits, key, k=k, p=p, **kwargs)[0]


def speculative_sampling(draft_tokens, draft_probabilities, target_probabilities, key):
    *rows, length = draft_tokens.shape
    count, key = draft_probabilities.shape[-1], np.asarray(key)
    if key.shape == (2,) and rows:
        key = np.stack(threefry(key, np.arange(np.prod(rows, dtype=int)).astype(np.uint64)), -1).reshape(*rows, 2)
    found = np.full((*rows, length + 1), -1)
    for row in np.ndindex(*rows):
        accept, last = np.stack(threefry(key[row], np.arange(2).astype(np.uint64)), -1)
        u, n, is_token = unit(accept, (length,), "float32"), 0, False
        while n < length:
            d = draft_tokens[row][n]
            is_token = 0 <= d < count
            if not is_token or u[n] * draft_probabilities[row][n, d] >= target_probabilities[row][n, d]:
                break
            found[row][n], n = d, n + 1
        weights = target_probabilities[row][n]
        if n < length and is_token:
            weights = np.maximum(weights - draft_probabilities[row][n], 0)
        found[row][n] = sampled(weights, last, probabilities=True)[0]
    return found


def speculative_tree_sampling(draft_tokens, parents, draft_probabilities, target_probabilities, key):
    *rows, length = draft_tokens.shape
    count, key, parents = draft_probabilities.shape[-1], np.asarray(key), np.broadcast_to(parents, draft_tokens.shape)
    if key.shape == (2,) and rows:
        key = np.stack(threefry(key, np.arange(np.prod(rows, dtype=int)).astype(np.uint64)), -1).reshape(*rows, 2)
    found = np.full((*rows, length + 1), -1)
    for row in np.ndindex(*rows):
        accept, drawn = np.stack(threefry(key[row], np.arange(2).astype(np.uint64)), -1)
        u, last, n, weights = unit(accept, (length,), "float32"), -1, 0, target_probabilities[row][0]
        for i in range(length):
            d, p = draft_tokens[row][i], draft_probabilities[row][i]
            if parents[row][i] != last or not 0 <= d < count:
                continue
            if u[i] * p[d] < weights[d]:
                found[row][n], n, last, weights = d, n + 1, i, target_probabilities[row][i + 1]
            else:
                weights = np.maximum(weights - p, 0)
                weights = weights / weights.sum()
        found[row][n] = sampled(weights, drawn, probabilities=True)[0]
    return found
