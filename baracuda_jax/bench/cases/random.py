"""Random numbers, and what is drawn by them."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, PASSES, Benchmark

VOCABULARY = {"tiny": (4, 300), "small": (64, 4096), "large": (256, 128256)}
KEY = jnp.uint32


def _key(draws):
    return draws.integers((2,), 0, 2**31 - 1, KEY)


def _typed(key):
    return jax.random.wrap_key_data(key, impl="threefry2x32")


def _philox(draws):
    return draws.integers((4,), 0, 2**31 - 1, KEY)


def drawn(op, elements, dtype, torch):
    """An array of random numbers, of nothing but a philox key, against plain JAX that draws the same."""
    public = getattr(baracuda_jax, op)
    options = {} if op == "random_bernoulli" else {"dtype": dtype}
    return Benchmark(
        op, f"[{elements}]", dtype,
        lambda draws: (_philox(draws),),
        lambda key, *, implementation: public(key, shape=elements, implementation=implementation, **options),
        torch=lambda t, key: torch(t, elements, key.device),
        moving=0, passes=PASSES[:1],
    )  # fmt: skip


def uniform(elements, dtype):
    return drawn(
        "random_uniform", elements, dtype, lambda t, n, device: t.rand(n, device=device, dtype=getattr(t, dtype))
    )


def normal(elements, dtype):
    return drawn(
        "random_normal", elements, dtype, lambda t, n, device: t.randn(n, device=device, dtype=getattr(t, dtype))
    )


def bools(elements):
    return drawn("random_bernoulli", elements, "bool", lambda t, n, device: t.rand(n, device=device) < 0.5)


def bits(elements):
    """Words of a philox key, against those of threefry."""

    def torch(torch, key):
        return torch.randint(-(2**31), 2**31 - 1, (elements,), device=key.device, dtype=torch.int32)

    return Benchmark(
        "random_bits", f"[{elements}]", "uint32",
        lambda draws: (_philox(draws),),
        lambda key, *, implementation: baracuda_jax.random_bits(key, shape=elements, implementation=implementation),
        torch=torch, moving=0, passes=PASSES[:1],
    )  # fmt: skip


def dropped(elements, dtype):
    """By a philox key, against plain JAX with the same mask."""
    return Benchmark(
        "dropout", f"[{elements}]", dtype,
        lambda draws: (draws.normal((elements,)), _philox(draws)),
        lambda x, key, *, implementation: baracuda_jax.dropout(x, key, 0.1, implementation=implementation),
        torch=lambda torch, x, key: torch.nn.functional.dropout(x, 0.1),
        needs=(1,),
    )  # fmt: skip


def sampled(rows, tokens):
    def plain(x, key):
        return jax.random.categorical(_typed(key), jnp.log(x), shape=(4, rows)).T.astype(jnp.int32)

    return Benchmark(
        "multinomial", f"4 of [{rows}, {tokens}]", "float32",
        lambda draws: (draws.uniform((rows, tokens), 0.1), _key(draws)),
        lambda x, key, *, implementation: baracuda_jax.multinomial(
            x, key, 4, replacement=True, implementation=implementation
        ),
        plain,
        lambda torch, x, key: torch.multinomial(x, 4, replacement=True),
        moving=0, passes=PASSES[:1],
    )  # fmt: skip


def penalized(rows, tokens, dtype, count=128):
    def plain(logits, ids):
        counts = jax.vmap(lambda ids: jnp.zeros(tokens).at[ids].add(1))(ids)
        x = logits.astype(jnp.float32)
        y = jnp.where(x < 0, x * 1.2, x / 1.2) - 0.1 * counts - 0.2
        return jnp.where(counts > 0, y, x).astype(logits.dtype)

    return Benchmark(
        "token_penalty", f"{count} tokens for [{rows}, {tokens}]", dtype,
        lambda draws: (draws.normal((rows, tokens)), draws.integers((rows, count), 0, tokens)),
        lambda x, ids, *, implementation: baracuda_jax.token_penalty(
            x, ids, 1.2, 0.1, 0.2, implementation=implementation
        ),
        plain, needs=(0, 1),
    )  # fmt: skip


def _top_k(torch, x, k):
    return x.masked_fill(x < torch.topk(x, k).values[:, -1:], -float("inf"))


def _top_p(torch, x, p):
    ordered, order = torch.sort(x, descending=True)
    chances = torch.softmax(ordered, -1, dtype=torch.float32)
    ordered = ordered.masked_fill(chances.cumsum(-1) - chances >= p, -float("inf"))
    return torch.empty_like(x).scatter_(-1, order, ordered)


def _min_p(torch, x, ratio):
    chances = torch.softmax(x, -1, dtype=torch.float32)
    return x.masked_fill(chances < ratio * chances.max(-1, keepdim=True).values, -float("inf"))


SAMPLERS = {
    "top_k_sampling": ((50,), _top_k),
    "top_p_sampling": ((0.9,), _top_p),
    "min_p_sampling": ((0.1,), _min_p),
    "top_k_top_p_sampling": ((50, 0.9), lambda torch, x, k, p: _top_p(torch, _top_k(torch, x, k), p)),
}


def sampler(op, rows, tokens, dtype):
    """Against plain JAX that draws the same tokens, and PyTorch as one writes it."""
    options, kept = SAMPLERS[op]
    options = tuple(min(o, tokens // 2) if isinstance(o, int) else o for o in options)
    public = getattr(baracuda_jax, op)

    def torch(torch, x, key):
        return torch.multinomial(torch.softmax(kept(torch, x, *options), -1, dtype=torch.float32), 1)

    return Benchmark(
        op, f"[{rows}, {tokens}]", dtype,
        lambda draws: (draws.normal((rows, tokens)), _key(draws)),
        lambda x, key, *, implementation: public(x, key, *options, implementation=implementation),
        torch=torch, moving=0, passes=PASSES[:1],
    )  # fmt: skip


def verified(rows, length, tokens, dtype):
    """Draft and target models that differ little."""

    def draw(draws):
        draft = jax.nn.softmax(draws.normal((rows, length + 1, tokens)))
        target = draft * draws.uniform(draft.shape, 0.5)
        ids = jax.random.categorical(_typed(jnp.arange(2, dtype=KEY)), jnp.log(draft[:, :length]))
        return ids.astype(jnp.int32), draft[:, :length], target / target.sum(-1, keepdims=True), _key(draws)

    return Benchmark(
        "speculative_sampling", f"{length} of [{rows}, {tokens}]", dtype, draw,
        lambda *arrays, implementation: baracuda_jax.speculative_sampling(*arrays, implementation=implementation)[0],
        moving=0, passes=PASSES[:1],
    )  # fmt: skip


def verified_tree(rows, tokens, dtype):
    """A tree of two nodes, and two below each, of models that differ little."""
    parents = (-1, -1, 0, 0, 1, 1)

    def draw(draws):
        draft = jax.nn.softmax(draws.normal((rows, len(parents), tokens)))
        target = jax.nn.softmax(draws.normal((rows, len(parents) + 1, tokens)))
        ids = jax.random.categorical(_typed(jnp.arange(2, dtype=KEY)), jnp.log(draft)).astype(jnp.int32)
        return ids, jnp.array(parents, jnp.int32), draft, target, _key(draws)

    def function(*arrays, implementation):
        return baracuda_jax.speculative_tree_sampling(*arrays, implementation=implementation)[0]

    return Benchmark(
        "speculative_tree_sampling", f"6 of [{rows}, {tokens}]", dtype, draw, function, moving=0, passes=PASSES[:1]
    )


def benchmarks(size):
    elements = MATRICES[size][0] * MATRICES[size][1]
    for dtype in DTYPES:
        yield uniform(elements, dtype)
        yield normal(elements, dtype)
        yield dropped(elements, dtype)
        yield penalized(*VOCABULARY[size], dtype)
        yield from (sampler(op, *VOCABULARY[size], dtype) for op in SAMPLERS)
        yield verified_tree(max(1, VOCABULARY[size][0] // 4), VOCABULARY[size][1], dtype)
        yield verified(max(1, VOCABULARY[size][0] // 4), 4, VOCABULARY[size][1], dtype)
    yield bools(elements)
    yield bits(elements)
    yield sampled(*VOCABULARY[size])
