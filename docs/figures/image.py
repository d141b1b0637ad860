"""Four elements that become seven, by three modes, with what one of the seven reads."""

import jax
import jax.numpy as jnp
import numpy as np
from drawing import BLUE, GREEN, GREY, ORANGE, canvas, curve, name, row

from baracuda_jax import interpolate

x = jnp.asarray([1.0, 6.0, 2.0, 4.0])
SHOWN = 3  # the element of y whose taps are drawn
axes = canvas(9.4)
for i, (mode, color) in enumerate((("nearest", BLUE), ("linear", ORANGE), ("bicubic", GREEN))):
    # Cubics are of images: here one of a single row.
    image = lambda x: x[None, None, None] if mode == "bicubic" else x[None, None]
    size = (1, 7) if mode == "bicubic" else 7
    fun = lambda x: interpolate(image(x), size, mode=mode).ravel()
    y, taps = np.asarray(fun(x)), np.asarray(jax.jacobian(fun)(x))[SHOWN]
    top = 0.8 + 3.1 * i
    name(axes, 0.2, top, "x")
    name(axes, 0.2, top + 1.6, f'"{mode}"')
    read = row(axes, 5.1, top, np.asarray(x), [color if tap else GREY for tap in taps], step=1.66)
    written = row(axes, 4.5, top + 1.6, np.round(y, 2), [color if o == SHOWN else GREY for o in range(7)], step=1.04)
    for (a, b), tap in zip(read, taps, strict=True):
        if tap:
            u, v = written[SHOWN]
            curve(axes, (a, b + 0.45), (u, v - 0.45), color)
