"""Reads handwritten digits with a small convolutional net whose pooling is `lp_pool2d`, the 3-norm of each window.

Run: python examples/digits.py. Writes digits.png into the current folder; fails below 97 % of held-out digits read."""

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

from baracuda_jax import lp_pool2d

matplotlib.use("Agg")
import matplotlib.pyplot as plt

EPOCHS, BATCH, RATE, GOAL = 25, 64, 3e-3, 0.97


def initial_params(key):
    shapes = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "dense": (128, 10)}
    params = {}
    for name, shape in shapes.items():
        key, this = jax.random.split(key)
        fan_in, outputs = (shape[0], shape[1]) if name == "dense" else (np.prod(shape[1:]), shape[0])
        params[name] = {"w": jax.random.normal(this, shape) * np.sqrt(2 / fan_in), "b": jnp.zeros(outputs)}
    return params


def conv(x, layer):
    y = jax.lax.conv_general_dilated(x, layer["w"], window_strides=(1, 1), padding="SAME")
    return jax.nn.relu(y + layer["b"][:, None, None])


def logits(params, images):  # images [N, 1, 8, 8]
    x = lp_pool2d(conv(images, params["conv1"]), norm_type=3, window=2)  # [N, 16, 4, 4]
    x = lp_pool2d(conv(x, params["conv2"]), norm_type=3, window=2)  # [N, 32, 2, 2]
    return x.reshape(len(x), -1) @ params["dense"]["w"] + params["dense"]["b"]


def loss(params, images, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits(params, images)), labels[:, None], axis=1).mean()


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, adam, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    count = adam["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, adam["mean"], grads)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, adam["square"], grads)
    rate = RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, {"count": count, "mean": mean, "square": square}, value


def train(images, labels):
    rng = np.random.default_rng(0)
    params = initial_params(jax.random.key(0))
    adam = {"count": 0, "mean": jax.tree.map(jnp.zeros_like, params), "square": jax.tree.map(jnp.zeros_like, params)}
    losses = []
    with tqdm(total=EPOCHS, unit="epoch") as bar:
        for _ in range(EPOCHS):
            order = rng.permutation(len(images))
            for start in range(0, len(order) - BATCH + 1, BATCH):
                batch = order[start : start + BATCH]
                params, adam, value = train_step(params, adam, images[batch], labels[batch])
                losses.append(value)
            bar.set_postfix(loss=f"{value:.4f}")
            bar.update()
    return params, np.array(losses)


def plot(losses, images, labels, predicted, accuracy):
    wrong = np.flatnonzero(predicted != labels)
    figure = plt.figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    axes = left.subplots()
    smooth = np.convolve(losses, np.ones(22) / 22, mode="valid")  # an epoch is 22 steps
    axes.semilogy(losses, color="0.8", linewidth=0.8, label="each step")
    axes.semilogy(np.arange(len(smooth)) + 21, smooth, color="tab:blue", linewidth=2, label="mean over an epoch")
    axes.set(xlabel="step", ylabel="cross-entropy", title=f"Training loss; held-out accuracy {accuracy:.1%}")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    right.suptitle(f"Misread: {len(wrong)} of {len(labels)}")
    shown = wrong[:12]
    rows = max(2, -(-len(shown) // 4))
    for cell, index in zip(right.subplots(rows, 4).flat, [*shown, *[None] * 12], strict=False):
        cell.set_axis_off()
        if index is not None:
            cell.imshow(images[index, 0], cmap="gray_r")
            cell.set_title(f"{labels[index]} read as {predicted[index]}", fontsize=9)
    path = pathlib.Path("digits.png").resolve()
    figure.savefig(path, dpi=150)
    return path


def main():
    begin = time.perf_counter()
    data = load_digits()
    images, labels = (data.images[:, None] / 16).astype(np.float32), data.target.astype(np.int32)
    split = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    train_images, test_images, train_labels, test_labels = split
    params, losses = train(train_images, train_labels)
    predicted = np.asarray(jax.jit(logits)(params, test_images).argmax(axis=1))
    accuracy = (predicted == test_labels).mean()
    path = plot(losses, test_images, test_labels, predicted, accuracy)
    print(f"held-out accuracy {accuracy:.2%} of {len(test_labels)} digits, {time.perf_counter() - begin:.0f} s")
    print(f"plot: {path}")
    return 0 if accuracy >= GOAL else f"accuracy is below {GOAL:.0%}"


if __name__ == "__main__":
    sys.exit(main())
