"""Finds the shape of a molecule from many copies of it, each turned at random and measured with errors.

A copy is turned onto the shape by the rotation of Kabsch, which a singular value decomposition gives: `svd`, of a matrix for
each copy. The shape is learned by gradients through it. A shape with symmetries has equal singular values, where the
derivative of singular vectors is NaN; that of the rotation is not, and `degenerate="zero"` gives it.

Run: python examples/rotations.py, a quarter of a minute on two cores. Writes rotations.png into the current folder; fails
where rotations or gradients are not those of NumPy in float64, or where an atom of the shape is off by more than 0.02."""

import functools
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from tqdm import tqdm

from baracuda_jax import adam_step, det, svd
from baracuda_jax.optim import AdamState

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COPIES, EXACT, STEPS, RATE, GOAL = 2000, 100, 300, 0.02, 0.02
# A metal and six ligands, two of which are further away, as copper has them. The fit begins with all at a distance of 1.
DIRECTIONS = np.array([[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float)
SHAPE = DIRECTIONS * [2.0, 2.0, 2.4]


def draw_copies(rng):
    """[COPIES, atoms, 3] of float32, centered. The first EXACT ones have no errors; those of others
    have a deviation of up to 0.4."""
    turns, _ = np.linalg.qr(rng.standard_normal((COPIES, 3, 3)))
    turns *= np.linalg.det(turns)[:, None, None]
    errors = rng.standard_normal((COPIES, *SHAPE.shape)) * rng.uniform(0.1, 0.4, (COPIES, 1, 1))
    errors[:EXACT] = 0
    copies = SHAPE @ turns + errors
    return (copies - copies.mean(1, keepdims=True)).astype(np.float32)


def rotations(shape, copies, degenerate="zero"):
    """The rotation r of each copy for which copy @ r is nearest to the shape, by the sum of squares."""
    u, _, vh = svd(copies.mT @ shape, degenerate=degenerate)
    sign = jnp.sign(det(u) * det(vh))[:, None]  # -1 where the nearest orthogonal matrix is a reflection
    return (u * jnp.concatenate([jnp.ones_like(u[:, 0, :2]), sign], 1)[:, None]) @ vh


def loss(shape, copies, degenerate="zero"):
    """The mean distance of atoms from the shape's."""
    offset = copies @ rotations(shape, copies, degenerate) - shape
    return jnp.sqrt(jnp.sum(offset**2, -1) + 1e-4).mean()


def by_numpy(shape, copies):
    """Rotations, and the loss, in float64."""
    u, _, vh = np.linalg.svd(np.swapaxes(copies, 1, 2) @ shape)
    sign = np.sign(np.linalg.det(u @ vh))[:, None]
    found = (u * np.concatenate([np.ones((len(u), 2)), sign], 1)[:, None]) @ vh
    return found, np.sqrt(((copies @ found - shape) ** 2).sum(-1) + 1e-4).mean()


def gradient_by_numpy(shape, copies, step=1e-5):
    slopes = np.zeros_like(shape)
    for index in np.ndindex(shape.shape):
        moved = [shape.copy(), shape.copy()]
        moved[0][index], moved[1][index] = shape[index] + step, shape[index] - step
        slopes[index] = (by_numpy(moved[0], copies)[1] - by_numpy(moved[1], copies)[1]) / (2 * step)
    return slopes


@jax.jit
def train_step(shape, state, copies):
    value, slopes = jax.value_and_grad(loss)(shape, copies)
    shape, state = adam_step(shape, slopes, state, RATE * (1 - state.step / STEPS))
    return shape, state, value


def fit(shape, copies):
    state, losses = AdamState.zeros(shape), []
    with tqdm(range(STEPS), unit="step") as bar:
        for _ in bar:
            shape, state, value = train_step(shape, state, copies)
            losses.append(value)
        bar.set_postfix(loss=f"{value:.4f}")
    return shape, np.array(losses)


def check(start, copies):
    """The largest differences of rotations and of gradients from NumPy's; and whether gradients are finite by default."""
    as_float64 = start.astype(float), copies.astype(float)
    exact = start.astype(float), copies[:EXACT].astype(float)
    by_default = jax.jit(jax.grad(functools.partial(loss, degenerate="nan")))(start, copies[:EXACT])
    off = abs(jax.jit(rotations)(start, copies) - by_numpy(*as_float64)[0]).max()
    slopes = jax.jit(jax.grad(loss))
    off_slopes = max(
        abs(slopes(start, copies) - gradient_by_numpy(*as_float64)).max(),
        abs(slopes(start, copies[:EXACT]) - gradient_by_numpy(*exact)).max(),
    )
    return float(off), float(off_slopes), bool(jnp.isfinite(by_default).all())


def plot(copies, shape, losses, path):
    figure = plt.figure(figsize=(11, 4.2), layout="constrained")
    shown = copies[EXACT : EXACT + 100]
    for i, (points, title) in enumerate(
        ((shown, "As they come"), (shown @ rotations(shape, shown), "Turned onto the shape"))
    ):
        axes = figure.add_subplot(1, 3, i + 1, projection="3d", title=title)
        for atom in range(len(shape)):
            axes.scatter(*points[:, atom].T, s=5, color=plt.cm.tab10(atom))
            if i:
                axes.plot(*shape[[0, atom]].T, color="black", linewidth=2)
        axes.set(xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), zlim=(-2.5, 2.5), xticks=[], yticks=[], zticks=[])
        axes.set_box_aspect((1, 1, 1), zoom=1.15)
    axes = figure.add_subplot(1, 3, 3, title="Mean distance of atoms from the shape", xlabel="step")
    axes.plot(losses)
    axes.set_ylim(0)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def main():
    begin = time.perf_counter()
    copies = draw_copies(np.random.default_rng(0))
    start = DIRECTIONS.astype(np.float32)
    off, off_slopes, is_finite = check(start, copies)
    shape, losses = fit(start, copies)
    turn = by_numpy(SHAPE, np.asarray(shape, float)[None])[0][0]
    error = np.linalg.norm(shape @ turn - SHAPE, axis=-1).max()
    path = pathlib.Path("rotations.png").resolve()
    plot(copies, np.asarray(shape), losses, path)
    print(f"rotations are within {off:.0e} of NumPy's in float64, gradients within {off_slopes:.0e}")
    print(f'without degenerate="zero" the gradient is {"" if is_finite else "not "}finite')
    print(f"atoms of the shape are within {error:.4f} of the true ones, {time.perf_counter() - begin:.0f} s")
    print(f"plot: {path}")
    if max(off, off_slopes) > 1e-5:
        return "rotations or gradients are not those of NumPy"
    return 0 if error < GOAL else f"an atom of the shape is off by more than {GOAL}"


if __name__ == "__main__":
    sys.exit(main())
