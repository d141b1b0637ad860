"""What each result of a causal convolution sees: a few elements before it, of its segment."""

import jax
import jax.numpy as jnp
import numpy as np
from drawing import BLUE, GREEN, GREY, canvas, curve, name, row

from baracuda_jax import causal_conv1d

WIDTH = 4
x = jnp.array([2.0, 1.0, 3.0, 0.0, 2.0, 4.0, 1.0])
state = jnp.array([1.0, 0.0, 2.0])
ids = jnp.array([0, 0, 0, 0, 1, 1, 1])
weight = jnp.ones((1, WIDTH))


def convolved(elements):
    x, state = elements[WIDTH - 1 :], elements[: WIDTH - 1]
    return causal_conv1d(x[None], weight, None, state[None], ids)[0]


elements = jnp.concatenate([state, x])
y, seen = convolved(elements), np.asarray(jax.jacobian(convolved)(elements))
colors = [BLUE if i == 0 else GREEN for i in ids]

axes = canvas(5.4)
name(axes, 0.15, 0.8, "state, x")
above = row(axes, 3.2, 0.8, elements, [GREY] * len(state) + colors)
name(axes, 0.15, 4.5, "y")
below = row(axes, 3.2 + 0.95 * len(state), 4.5, y, colors)
for i, j in np.argwhere(seen):
    (a, b), (c, d) = above[j], below[i]
    curve(axes, (a, b + 0.45), (c, d - 0.45), colors[i], width=1.4)
