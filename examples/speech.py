"""Reads strings of handwritten digits column by column, as speech is heard frame by frame, with `ctc_loss`.

A string's digits are side by side, with gaps of random widths. The net sees a few columns at a time, and is told which
digits a string has, but not where.

Run: python examples/speech.py. Writes speech.png into the current folder; fails below 93 % of held-out strings read."""

import functools
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from baracuda_jax import ctc_loss

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STEPS, BATCH, RATE, GOAL = 2500, 32, 2e-3, 0.93
DIGITS, COLUMNS, GAP = 5, 8, 4  # at most so many digits, the columns of one, and columns between two
FRAMES = DIGITS * (COLUMNS + GAP) + GAP
WIDTH, HIDDEN, LAYERS = 5, 96, 3
BLANK, CLASSES = 10, 11


def draw_strings(rng, images, labels, count):
    """Columns as frames [count, FRAMES, 8], how many each string has, its digits, and how many these are."""
    frames = np.zeros((count, FRAMES, COLUMNS), np.float32)
    targets = np.zeros((count, DIGITS), np.int32)
    sizes, lengths = rng.integers(1, DIGITS + 1, count), np.zeros(count, np.int32)
    for frame, target, size, i in zip(frames, targets, sizes, range(count), strict=True):
        end = rng.integers(GAP + 1)
        for k, which in enumerate(rng.integers(len(images), size=size)):
            frame[end : end + COLUMNS] = images[which].T
            target[k] = labels[which]
            end += COLUMNS + rng.integers(GAP + 1)
        lengths[i] = end
    return frames, lengths, targets, sizes.astype(np.int32)


def initial_params(key):
    sizes = [COLUMNS, *[HIDDEN] * LAYERS]
    keys = jax.random.split(key, LAYERS + 1)
    layers = [
        {"w": jax.random.normal(k, (WIDTH * n, m)) * np.sqrt(2 / (WIDTH * n)), "b": jnp.zeros(m)}
        for k, n, m in zip(keys[:-1], sizes[:-1], sizes[1:], strict=True)
    ]
    last = {"w": jax.random.normal(keys[-1], (HIDDEN, CLASSES)) / np.sqrt(HIDDEN), "b": jnp.zeros(CLASSES)}
    return {"layers": layers, "last": last}


def neighbors(x):
    """Each frame with those around it."""
    padded = jnp.pad(x, [(0, 0), (WIDTH // 2, WIDTH // 2), (0, 0)])
    return jnp.concatenate([padded[:, k : k + x.shape[1]] for k in range(WIDTH)], -1)


def logits(params, frames):
    x = frames
    for layer in params["layers"]:
        x = jax.nn.relu(neighbors(x) @ layer["w"] + layer["b"])
    return x @ params["last"]["w"] + params["last"]["b"]


def loss(params, frames, lengths, targets, sizes):
    return ctc_loss(logits(params, frames), targets, lengths, sizes, blank=BLANK)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, adam, *strings):
    value, grads = jax.value_and_grad(loss)(params, *strings)
    count = adam["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam["mean"], grads)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, adam["square"], grads)
    rate = RATE * (1 - count / STEPS) * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, {"count": count, "mean": mean, "square": square}, value


def train(images, labels):
    rng = np.random.default_rng(0)
    params = initial_params(jax.random.key(0))
    adam = {"count": 0, "mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}
    with tqdm(range(STEPS), unit="step") as bar:
        for step in bar:
            params, adam, value = train_step(params, adam, *draw_strings(rng, images, labels, BATCH))
            if step % 100 == 0:
                bar.set_postfix(loss=f"{value:.3f}")
    return params


def read(scores, length):
    """The digits of the best class of each frame: neighbors that are equal are one, and blanks are none."""
    best = scores[:length].argmax(-1)
    return [int(c) for i, c in enumerate(best) if c != BLANK and (i == 0 or c != best[i - 1])]


@jax.jit
def alignment(params, frames, lengths, targets, sizes):
    """The probability that a string's alignments have a class in a frame: what the loss's gradient takes from softmax."""
    scores = logits(params, frames)
    slopes = jax.grad(lambda scores: ctc_loss(scores, targets, lengths, sizes, blank=BLANK, reduction="sum"))(scores)
    return jax.nn.softmax(scores) - slopes


def plot(params, strings, which):
    frames, lengths, targets, sizes = (x[which : which + 1] for x in strings)
    count = lengths[0]
    posterior = np.asarray(alignment(params, frames, lengths, targets, sizes))[0, :count]
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 4.6), height_ratios=(1, 1.4), sharex=True, layout="constrained"
    )
    top.imshow(frames[0, :count].T, cmap="gray_r", aspect="auto")
    top.set(yticks=[], title=f"{''.join(map(str, targets[0, : sizes[0]]))}, of which the net was told no positions")
    image = bottom.imshow(posterior.T, cmap="viridis", aspect="auto", vmin=0, vmax=1)
    bottom.set(yticks=range(CLASSES), yticklabels=[*map(str, range(10)), "blank"], xlabel="frame", ylabel="class")
    figure.colorbar(image, ax=bottom, label="posterior")
    path = pathlib.Path("speech.png").resolve()
    figure.savefig(path, dpi=150)
    return path


def main():
    begin = time.perf_counter()
    data = load_digits()
    images, labels = (data.images / 16).astype(np.float32), data.target.astype(np.int32)
    split = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    train_images, test_images, train_labels, test_labels = split
    params = train(train_images, train_labels)
    strings = draw_strings(np.random.default_rng(1), test_images, test_labels, 1000)
    frames, lengths, targets, sizes = strings
    scores = np.asarray(jax.jit(logits)(params, frames))
    found = [read(*each) for each in zip(scores, lengths, strict=True)]
    is_right = [a == b[:size].tolist() for a, b, size in zip(found, targets, sizes, strict=True)]
    accuracy = np.mean(is_right)
    longest = next((i for i in range(len(sizes)) if sizes[i] == DIGITS and is_right[i]), 0)
    path = plot(params, strings, longest)
    print(f"held-out accuracy {accuracy:.2%} of {len(sizes)} strings, {time.perf_counter() - begin:.0f} s")
    print(f"plot: {path}")
    return 0 if accuracy >= GOAL else f"accuracy is below {GOAL:.0%}"


if __name__ == "__main__":
    sys.exit(main())
