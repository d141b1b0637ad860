"""Rows of tokens, sorted by expert, and added with weights for each token again."""

import jax.numpy as jnp
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, canvas, curve, name, note, row

from baracuda_jax import moe_combine, moe_permute

x = jnp.array([3.0, 1.0, 4.0, 2.0])
experts = jnp.array([[1, 0], [2, 1], [0, 1], [2, 0]])
weights = jnp.array([[0.5, 0.5], [2.0, 1.0], [1.0, 0.5], [0.5, 1.0]])
colors = BLUE, ORANGE, GREEN, PURPLE

p = moe_permute(x, experts, 3)
token_of = {int(r): t for t, rows in enumerate(p.row_map) for r in rows}
axes = canvas(8.2)
name(axes, 0.15, 0.8, "x")
top = row(axes, 4.9, 0.8, x, colors, step=1.9)
name(axes, 0.15, 3.7, "moe_permute(...)")
middle = row(axes, 4.3, 3.7, p.x, [colors[token_of[r]] for r in range(8)], step=1.0)
first = 0
for expert, count in enumerate(p.group_sizes.tolist()):
    note(axes, sum(middle[r][0] for r in range(first, first + count)) / count, 4.55, f"expert {expert}")
    first += count
name(axes, 0.15, 7.3, "moe_combine(...)")
bottom = row(axes, 4.9, 7.3, moe_combine(p.x, p.row_map, weights), [GREY] * 4, step=1.9)
for t, rows in enumerate(p.row_map.tolist()):
    for r in rows:
        (u, v), (a, b), (c, d) = middle[r], top[t], bottom[t]
        curve(axes, (a, b + 0.5), (u, v - 0.5), colors[t])
        curve(axes, (u, v + 1.15), (c, d - 0.5), colors[t])
