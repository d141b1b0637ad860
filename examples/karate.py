"""Guesses who joins which club: message passing on Zachary's karate club graph, from three known members of each side.

What a member learns is made of its own features and, of its neighbors', the mean and the maximum (`aggregate`).
Run: python examples/karate.py. Writes karate.png into the current folder."""

import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import matplotlib
import networkx as nx
import numpy as np
from tqdm import tqdm

from baracuda_jax import aggregate

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STEPS, RATE, DECAY, WIDTH = 200, 0.03, 5e-3, 16
CLUBS = ("Mr. Hi", "Officer")
KNOWN = (0, 1, 3, 23, 32, 33)  # the members whose club is given: three of each


def load_club():
    """Directed edges (from, to), and each member's club, 0 or 1."""
    graph = nx.karate_club_graph()
    edges = np.array(graph.edges, np.int32)
    senders, receivers = np.concatenate([edges, edges[:, ::-1]]).T
    clubs = np.array([CLUBS.index(graph.nodes[member]["club"]) for member in graph], np.int32)
    return graph, senders, receivers, clubs


def initial_params(key, members):
    sizes = ((members, WIDTH), (WIDTH, len(CLUBS)))
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(key, (3 * size, out)) / np.sqrt(3 * size), "b": jnp.zeros(out)}
        for key, (size, out) in zip(keys, sizes, strict=True)
    ]


def layer(params, features, senders, receivers):
    mean = aggregate(features, senders, receivers, reduce="mean")
    most = aggregate(features, senders, receivers, reduce="max")
    return jnp.concatenate([features, mean, most], axis=1) @ params["w"] + params["b"]


def logits(params, features, senders, receivers):
    hidden = jax.nn.relu(layer(params[0], features, senders, receivers))
    return layer(params[1], hidden, senders, receivers)


def loss(params, features, senders, receivers, known, clubs):
    chances = jax.nn.log_softmax(logits(params, features, senders, receivers))
    size = sum(jnp.sum(p["w"] ** 2) for p in params)
    return -chances[known, clubs[known]].mean() + DECAY * size


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, momentum, *graph):
    value, grads = jax.value_and_grad(loss)(params, *graph)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - RATE * m, params, momentum), momentum, value


def plot(graph, chances, clubs, accuracy):
    positions = nx.spring_layout(graph, k=0.5, seed=19, iterations=300)
    guessed = [member for member in graph if member not in KNOWN]
    wrong = [member for member in guessed if (chances[member] > 0.5) != clubs[member]]
    right = [member for member in guessed if member not in wrong]
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    nx.draw_networkx_edges(graph, positions, ax=axes, edge_color="0.8")
    groups = (
        ("given", KNOWN, "s", "black"),
        ("guessed right", right, "o", "white"),
        ("guessed wrong", wrong, "o", "gold"),
    )
    for name, members, shape, edge in groups:
        points = nx.draw_networkx_nodes(
            graph, positions, members, 420, chances[list(members)], shape, cmap="coolwarm", vmin=0, vmax=1, ax=axes,
            edgecolors=edge, linewidths=2.5,
        )  # fmt: skip
        axes.scatter(
            [], [], marker=shape, s=120, c="0.6", edgecolors=edge, linewidths=2, label=f"{name}: {len(members)}"
        )
        if name == "given":
            figure.colorbar(points, ax=axes, shrink=0.6, label="chance to join the officer's club, not Mr. Hi's")
    for color, is_dark in (("white", True), ("black", False)):
        labels = {member: member for member in graph if (abs(chances[member] - 0.5) > 0.3) == is_dark}
        nx.draw_networkx_labels(graph, positions, labels, font_size=9, font_color=color, ax=axes)
    axes.set_title(f"Karate club: {accuracy:.1%} of {len(guessed)} members guessed right")
    axes.legend(frameon=False, loc="upper left")
    axes.set_axis_off()
    path = pathlib.Path("karate.png").resolve()
    figure.savefig(path, dpi=150)
    return path


def main():
    graph, senders, receivers, clubs = load_club()
    features, known = jnp.eye(len(clubs)), np.array(KNOWN)
    params = initial_params(jax.random.key(0), len(clubs))
    momentum = jax.tree.map(jnp.zeros_like, params)
    with tqdm(range(STEPS), unit="step") as bar:
        for _ in bar:
            params, momentum, value = train_step(params, momentum, features, senders, receivers, known, clubs)
        bar.set_postfix(loss=f"{value:.3f}")
    chances = np.asarray(jax.nn.softmax(logits(params, features, senders, receivers))[:, 1])
    held_out = np.setdiff1d(np.arange(len(clubs)), known)
    accuracy = ((chances > 0.5) == clubs)[held_out].mean()
    path = plot(graph, chances, clubs, accuracy)
    print(f"held-out accuracy {accuracy:.2%} of {len(held_out)} members")
    print(f"plot: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
