"""Rows of a table that three bags name, and their sums."""

import jax.numpy as jnp
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, canvas, curve, name, row

from baracuda_jax import embedding_bag

weight = jnp.array([3.0, 1.0, 4.0, 2.0, 5.0])
ids, offsets = jnp.array([2, 0, 4, 4, 1, 2]), jnp.array([0, 2, 5])
colors = BLUE, ORANGE, GREEN, PURPLE, GREY
STEP = 1.5

axes = canvas(8.2)
name(axes, 0.15, 0.8, "weight")
of_table = row(axes, 5.15, 0.8, weight, colors, step=STEP)
name(axes, 0.15, 4.6, "x")
of_ids = row(axes, 4.4, 4.6, ids, [colors[i] for i in ids.tolist()], step=STEP)
name(axes, 0.15, 7.2, 'mode="sum"')
of_bags = row(axes, 6.65, 7.2, embedding_bag(ids, weight, offsets, mode="sum"), [GREY] * 3, step=STEP)
ends = [*offsets.tolist(), len(ids)]
for n, i in enumerate(ids.tolist()):
    (a, b), (u, v) = of_table[i], of_ids[n]
    curve(axes, (a, b + 0.5), (u, v - 0.55), colors[i])
    (p, q) = of_bags[sum(end <= n for end in ends[1:])]
    curve(axes, (u, v + 0.5), (p, q - 0.55), GREY)
