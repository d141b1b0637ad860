"""Windows over an image, and the maximum of each."""

import jax.numpy as jnp
import numpy as np
from drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, arrow, canvas, element, name, note
from matplotlib.patches import Rectangle

from baracuda_jax import max_pool2d

WINDOW, STRIDE, STEP = 3, 2, 1.05
x = jnp.asarray(np.random.default_rng(5).integers(-4, 5, (1, 1, 5, 5)), jnp.float32)
y = np.asarray(max_pool2d(x, WINDOW, STRIDE))[0, 0]
colors = [[BLUE, ORANGE], [GREEN, PURPLE]]

axes = canvas(7.0)
left, top = 0.9, 0.9
for (i, j), value in np.ndenumerate(np.asarray(x)[0, 0]):
    element(axes, left + STEP * j, top + STEP * i, value, GREY, share=0.15)
results = []
for (i, j), value in np.ndenumerate(y):
    # Each frame a little smaller than the one before, so that those that share elements are both seen.
    inset = 0.05 * (2 * i + j)
    corner = left + STEP * (STRIDE * j - 0.5) + inset, top + STEP * (STRIDE * i - 0.5) + inset
    side = STEP * WINDOW - 2 * inset
    axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=colors[i][j], linewidth=2.6, zorder=5))
    element(axes, 9.2 + 1.6 * j, 2.2 + 1.6 * i, value, colors[i][j], size=1.35)
arrow(axes, (6.3, 3.0), (8.0, 3.0))
name(axes, 3.0, 6.3, "x", ha="center")
name(axes, 10.0, 4.95, "max_pool2d", ha="center")
note(axes, 10.0, 5.65, "window 3,")
note(axes, 10.0, 6.3, "strides 2")
