"""Writes text with a small language model, whose keys and values are in a cache that is made of pages.

The model of `language_model.py` learns Python's help texts, byte by byte. Then it continues prompts of several lengths at
once: `paged_kv_append` writes the keys and values of each token into pages, `batch_paged_decode` reads them, and
`top_p_sampling` draws the next token. The cache is sharded by heads over a mesh. A sequence has the same tokens on one
device and on four, in a batch and alone.

Run: python examples/generate.py, a minute on two cores. Writes generate.png into the current folder; fails where tokens
differ, or where the loss of held-out text is not below 1.6 nats a byte."""

import functools
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from language_model import KEY_HEADS, LAYERS, head_width, held_out_loss, load_text, logits, train

from baracuda_jax import batch_paged_decode, paged_kv_append, sdpa, top_p_sampling

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PROMPTS = (
    "The ",
    "Note that ",
    "If the object is ",
    "A function ",
    "Changed in version 3",
    "For example, the expression ",
)
NEW, PAGE, PAGES = 64, 8, 12  # tokens to write, rows of a page, and pages of a sequence
POOL = PAGES * len(PROMPTS)
TOP_P, TEMPERATURE, GOAL = 0.9, 0.8, 1.6


def attend_by(attention, cache, table, lengths, mesh):
    """The attention of a layer to new tokens, whose keys and values are written after the first `lengths` of the cache.

    Heads are gathered before a matrix mixes them, so that no sum is over devices."""

    def attend(i, query, key, value):
        cache[i] = [
            paged_kv_append(pages, new, table, lengths) for pages, new in zip(cache[i], (key, value), strict=True)
        ]
        y = attention(query, key, value, *cache[i])
        return jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P()))

    return attend


@functools.partial(jax.jit, static_argnames="mesh")
def generate(params, prompts, lengths, table, keys, mesh):
    """NEW tokens after each prompt, the probability with which each was drawn, and the logits of the last."""

    def draw(scores, lengths):  # each row by a key of its own, whatever else is in the batch
        keys_of_rows = jax.vmap(jax.random.fold_in)(keys, lengths)
        return top_p_sampling(scores, keys_of_rows, TOP_P, temperature=TEMPERATURE, return_logprobs=True)

    def write_next(carry, _):
        cache, (tokens, logprobs), lengths = carry
        decode = lambda query, key, value, *pages: batch_paged_decode(query[:, 0], *pages, table, lengths + 1)[:, None]
        attend = attend_by(decode, cache, table, lengths, mesh)
        scores = logits(params, tokens[:, None], lengths[:, None], attend)[:, 0]
        return (cache, draw(scores, lengths + 1), lengths + 1), (tokens, logprobs, scores)

    pages = jnp.zeros((POOL, PAGE, KEY_HEADS, head_width(params)))
    pages = jax.lax.with_sharding_constraint(pages, NamedSharding(mesh, P(None, None, "heads")))
    cache = [[pages, pages] for _ in range(LAYERS)]
    # Prompts are padded. What is written after their ends is overwritten before it is read.
    read = lambda query, key, value, *pages: sdpa(query, key, value, is_causal=True)
    attend = attend_by(read, cache, table, jnp.zeros_like(lengths), mesh)
    scores = logits(params, prompts, jnp.arange(prompts.shape[1])[None], attend)
    first = draw(scores[jnp.arange(len(lengths)), lengths - 1], lengths)
    _, (tokens, logprobs, scores) = jax.lax.scan(write_next, (cache, first, lengths), None, NEW)
    return tokens.T, jnp.exp(logprobs.T), scores[-1]


def write(devices, which, params, table, keys):
    """What `generate` writes after some of the prompts, with the heads of its cache on these devices."""
    mesh = jax.make_mesh((len(devices),), ("heads",), (jax.sharding.AxisType.Auto,), devices=devices)
    longest = max(map(len, PROMPTS))
    prompts = np.array([list(PROMPTS[i].ljust(longest).encode()) for i in which])
    lengths = np.array([len(PROMPTS[i]) for i in which])
    arguments = params, prompts, lengths, table[which], keys[which]
    return jax.device_get(generate(*jax.device_put(arguments, NamedSharding(mesh, P())), mesh))


def plot(tokens, probabilities, table, path):
    """The text, each token on the color of its probability; and the pool of pages, each on the color of its sequence."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 4.6), height_ratios=(3, 2), layout="constrained")
    shown = np.full((len(PROMPTS), max(map(len, PROMPTS)) + NEW), np.nan)
    for i, prompt in enumerate(PROMPTS):
        shown[i, len(prompt) : len(prompt) + NEW] = probabilities[i]
        for j, byte in enumerate([*prompt.encode(), *tokens[i]]):
            style = dict(weight="bold", color=plt.cm.tab10(i)) if j < len(prompt) else {}
            shape = "\u21b5" if byte == 10 else chr(byte)
            top.text(j, i, shape, ha="center", va="center", family="monospace", **style)
    top.imshow(shown, cmap="YlGn", vmin=0, vmax=1.4, aspect="auto")
    top.set(xticks=[], yticks=[], title="Six prompts, and what follows; the darker, the more probable was the token")
    filled = np.full((PAGE, POOL), np.nan)
    for i, prompt in enumerate(PROMPTS):
        for j in range(len(prompt) + NEW):
            filled[j % PAGE, table[i, j // PAGE]] = i
    bottom.pcolormesh(filled, cmap="tab10", vmin=0, vmax=9, edgecolors="white", linewidth=0.5)
    bottom.set(xlabel="page of the pool", ylabel="row", title="Keys and values in pages, in the color of their prompt")
    bottom.invert_yaxis()
    figure.savefig(path, dpi=150)


def main():
    jax.config.update("jax_num_cpu_devices", 4)  # before the first array
    begin = time.perf_counter()
    text, held_out = load_text()
    params = train(text)
    value = float(held_out_loss(params, held_out))
    table = np.random.default_rng(0).permutation(POOL).reshape(-1, PAGES)
    keys = jax.random.split(jax.random.key(0), len(PROMPTS))
    everything, devices = np.arange(len(PROMPTS)), jax.devices()[:KEY_HEADS]
    tokens, probabilities, scores = write(devices[:1], everything, params, table, keys)
    on_all = write(devices, everything, params, table, keys)
    alone = [
        np.concatenate(x)
        for x in zip(*(write(devices[:1], everything[i : i + 1], params, table, keys) for i in everything), strict=True)
    ]
    for prompt, after in zip(PROMPTS, tokens, strict=True):
        print(repr(prompt + bytes(after.tolist()).decode()))
    print(f"held-out loss {value:.3f} nats a byte, {time.perf_counter() - begin:.0f} s")
    is_same = True
    for name, other in ((f"on {len(devices)} devices", on_all), ("each alone", alone)):
        same, off = (other[0] == tokens).sum(), abs(other[2] - scores).max()
        print(f"{name}: {same} of {tokens.size} tokens are the same, logits are within {off:.1e}")
        is_same &= same == tokens.size
    path = pathlib.Path("generate.png").resolve()
    plot(tokens, probabilities, table, path)
    print(f"plot: {path}")
    return "tokens differ" if not is_same else 0 if value < GOAL else f"the loss is not below {GOAL}"


if __name__ == "__main__":
    sys.exit(main())
