"""Delayed scaling over a simulated training run: the largest magnitude, and what the scale represents."""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, NOTE, ORANGE, tint

import baracuda_jax as bj

STEPS, WINDOW = 160, 24
rng = np.random.default_rng(0)
magnitudes = 40 * np.exp(-np.arange(STEPS) / 60) * np.exp(0.12 * rng.standard_normal(STEPS))
magnitudes[70] *= 6

history, scale = jnp.zeros(WINDOW, jnp.float32), jnp.float32(448 / 60)
represented, saturated = [], []
for amax in magnitudes.astype(np.float32):
    represented.append(448 / float(scale))
    q, found = bj.fp8_cast(jnp.array([amax]), scale)
    saturated.append(float(bj.fp8_dequant(q, scale)[0]) < 0.9 * float(found))
    history, scale = bj.fp8_recipe_update(history.at[0].set(found), scale)

figure, axis = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
steps = np.arange(STEPS)
axis.fill_between(steps, 1, represented, step="post", color=tint(BLUE, 0.2), linewidth=0)
axis.step(steps, represented, where="post", color=BLUE, label="largest representable value")
axis.plot(steps, magnitudes, color=ORANGE, linewidth=1.6, label="largest magnitude")
where = np.flatnonzero(saturated)
axis.plot(where, magnitudes[where], "o", color=ORANGE)
for step in where:
    axis.annotate(
        "saturates", (step, magnitudes[step]), (-8, 0), textcoords="offset points", ha="right", color=NOTE, fontsize=13
    )
axis.set(yscale="log", ylim=(1, 400), xlim=(0, STEPS), xticks=range(0, STEPS, 40), xlabel="step")
axis.legend(loc="upper right")
