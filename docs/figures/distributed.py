"""Two layers on two devices: columns of the first kernel, then rows of the second, whose terms are added."""

import jax.numpy as jnp
import numpy as np
from drawing import BLUE, GREEN, GREY, NOTE, ORANGE, arrow, canvas, element, name, note

from baracuda_jax import column_parallel_linear, row_parallel_linear

x = jnp.array([[1.0, 2.0]])
up = jnp.array([[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, 3.0]])
down = jnp.array([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0], [1.0, 2.0]])
parts = [slice(0, 2), slice(2, 4)]
hidden = [column_parallel_linear(x, up[:, part]) for part in parts]
terms = [row_parallel_linear(h, down[part]) for h, part in zip(hidden, parts, strict=True)]


def draw(axes, values, left, top, color):
    for i, row in enumerate(np.asarray(values).tolist()):
        for j, value in enumerate(row):
            element(axes, left + 0.95 * j, top + 0.95 * i, value, color)


axes = canvas(8.4)
for left, words in ((0.6, "x"), (3.1, "columns"), (5.95, "hidden"), (8.6, "rows"), (11.3, "terms")):
    name(axes, left + 0.45, 0.5, words, ha="center")
for device, (part, color) in enumerate(zip(parts, (BLUE, ORANGE), strict=True)):
    top = 1.9 + 2.6 * device
    draw(axes, x, 0.6, top + 0.48, GREY)
    draw(axes, up[:, part], 3.1, top, color)
    draw(axes, hidden[device], 5.95, top + 0.48, color)
    draw(axes, down[part], 8.6, top, color)
    draw(axes, terms[device], 11.3, top + 0.48, color)
    note(axes, 1.05, top - 0.45, f"device {device}")
    for left in (2.05, 4.9, 7.4, 10.1):
        arrow(axes, (left, top + 0.48), (left + 0.45, top + 0.48), NOTE)
note(axes, 8.0, 7.4, "all-reduce: y on both devices", ha="right")
arrow(axes, (8.4, 7.4), (10.4, 7.4), NOTE)
draw(axes, terms[0] + terms[1], 11.3, 7.4, GREEN)
