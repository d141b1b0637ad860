"""Rows taken along edges, times weights, and added where they arrive."""

import jax.numpy as jnp
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, canvas, curve, name, note, row

from baracuda_jax import aggregate

x = jnp.array([3.0, 1.0, 4.0, 2.0, 5.0])
senders, receivers = jnp.array([0, 0, 1, 2, 4, 3]), jnp.array([1, 3, 3, 0, 1, 4])
weights = jnp.array([2.0, 1.0, 3.0, 0.5, 1.0, 2.0])
colors = BLUE, ORANGE, GREEN, PURPLE, GREY

axes = canvas(6.4)
name(axes, 0.15, 0.8, "x")
from_at = row(axes, 4.3, 0.8, x, colors, step=1.7)
name(axes, 0.15, 5.4, "aggregate(...)")
to_at = row(axes, 4.3, 5.4, aggregate(x, senders, receivers, weights), [GREY] * 5, step=1.7)
for sender, receiver, weight in zip(senders.tolist(), receivers.tolist(), weights.tolist(), strict=True):
    (a, b), (u, v) = from_at[sender], to_at[receiver]
    curve(axes, (a, b + 0.5), (u, v - 0.55), colors[sender])
    note(axes, 0.5 * (a + u) + 0.25, 3.75, f"{weight:g}")
name(axes, 0.15, 3.75, "weights")
