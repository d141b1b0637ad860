"""A small transformer that reads what Python says of itself: the help texts of `help("topics")`, byte by byte.

`generate.py` lets it write, and `packed_weights.py` rounds its matrices, which are [outputs, inputs], as in model files."""

import functools
from pydoc_data.topics import topics

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from baracuda_jax import adamw_step, cross_entropy_loss, rms_norm, rope, sdpa, swiglu
from baracuda_jax.optim import AdamState

VOCABULARY, WIDTH, LAYERS, HEADS, KEY_HEADS, HIDDEN = 128, 128, 3, 8, 4, 256
STEPS, BATCH, LENGTH, RATE, WARM_UP, HELD_OUT = 600, 16, 128, 4e-3, 40, 10


def load_text():
    """The bytes of the topics for training, and those of every tenth topic, which is held out."""
    names = sorted(topics)
    held_out = names[::HELD_OUT]
    as_bytes = lambda names: np.frombuffer("\n\n".join(topics[n] for n in names).encode("ascii", "ignore"), np.uint8)
    return as_bytes([n for n in names if n not in held_out]), as_bytes(held_out)


def initial_params(key, width):
    d = width // HEADS
    shapes = {
        "query": (width, width), "key": (KEY_HEADS * d, width), "value": (KEY_HEADS * d, width), "mixed": (width, width),
        "gate": (2 * HIDDEN, width), "down": (width, HIDDEN),
    }  # fmt: skip

    def layer(key):
        keys = jax.random.split(key, len(shapes))
        params = {
            name: jax.random.normal(k, shape) / np.sqrt(shape[1])
            for k, (name, shape) in zip(keys, shapes.items(), strict=True)
        }
        return params | {"attention_norm": jnp.ones(width), "feed_forward_norm": jnp.ones(width)}

    first, last, *keys = jax.random.split(key, LAYERS + 2)
    return {
        "embedding": jax.random.normal(first, (VOCABULARY, width)),
        "layers": [layer(key) for key in keys],
        "norm": jnp.ones(width),
        "head": jax.random.normal(last, (VOCABULARY, width)) / np.sqrt(width),
    }


def head_width(params):
    """The width of a head's query, key and value."""
    return params["embedding"].shape[1] // HEADS


def logits(params, tokens, positions, attend):
    """Scores of what follows each token; tokens and positions are [batch, length].

    `attend(i, query, key, value)` is the attention of layer i."""
    split = lambda x: x.reshape(*x.shape[:-1], -1, head_width(params))
    x = params["embedding"][tokens]
    for i, layer in enumerate(params["layers"]):
        y = rms_norm(x, layer["attention_norm"])
        query, key, value = (split(y @ layer[name].T) for name in ("query", "key", "value"))
        y = attend(i, rope(query, positions), rope(key, positions), value)
        x = x + y.reshape(x.shape) @ layer["mixed"].T
        y = rms_norm(x, layer["feed_forward_norm"])
        x = x + swiglu(y @ layer["gate"].T, -1) @ layer["down"].T
    return rms_norm(x, params["norm"]) @ params["head"].T


def loss(params, texts):
    """Cross entropy of each byte after the first, in nats; texts [batch, length]."""
    tokens = texts[:, :-1].astype(jnp.int32)
    positions = jnp.arange(tokens.shape[1])[None]
    attend = lambda i, query, key, value: sdpa(query, key, value, is_causal=True)
    scores = logits(params, tokens, positions, attend)
    return cross_entropy_loss(scores, texts[:, 1:].astype(jnp.int32), axis=-1)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, state, texts):
    value, grads = jax.value_and_grad(loss)(params, texts)
    step = state.step
    rate = RATE * jnp.minimum(step / WARM_UP, 1) * (0.5 + 0.5 * jnp.cos(jnp.pi * step / STEPS)) + 1e-5
    params, state = adamw_step(params, grads, state, rate, beta2=0.98, weight_decay=0.05)
    return params, state, value


def train(text, width=WIDTH):
    rng = np.random.default_rng(0)
    params = initial_params(jax.random.key(0), width)
    state = AdamState.zeros(params)
    with tqdm(range(STEPS), unit="step") as bar:
        for step in bar:
            begins = rng.integers(len(text) - LENGTH, size=BATCH)
            params, state, value = train_step(params, state, text[begins[:, None] + np.arange(LENGTH + 1)])
            if step % 20 == 0:
                bar.set_postfix(loss=f"{value:.3f}")
    return params


@jax.jit
def held_out_loss(params, text):
    """Cross entropy of each byte of a text, in nats, read in parts of LENGTH."""
    rows = len(text) // (LENGTH + 1)
    return loss(params, text[: rows * (LENGTH + 1)].reshape(rows, -1))
