"""A block of Q4_0: bytes, the bits in them, and the weights that these are."""

import jax.numpy as jnp
import numpy as np
from drawing import BLUE, GREEN, ORANGE, canvas, curve, name, note, row

from baracuda_jax import gguf_dequantize

scale = np.float16(0.5)
q = np.array([8, 11, 3, 15, *[8] * 12, 6, 9, 12, 0, *[8] * 12])
block = np.concatenate([scale[None].view(np.uint8), (q[:16] | q[16:] << 4).astype(np.uint8)])
weights = gguf_dequantize(jnp.asarray(block), "Q4_0")

axes = canvas(8.4)
name(axes, 0.15, 1.5, "data")
note(axes, 3.0, 0.5, "scale")
note(axes, 8.2, 0.5, "16 bytes, two weights in each")
row(axes, 2.55, 1.5, [f"{b:02x}" for b in block[:2]], [GREEN] * 2)
body = row(axes, 5.2, 1.5, [f"{b:02x}" for b in block[2:6]], [BLUE] * 4, step=2.0)
name(axes, 0.15, 4.2, "bits")
note(axes, 2.1, 5.0, "low four, high four", ha="center")
low = row(axes, 4.75, 4.2, q[:4], [BLUE] * 4, step=2.0)
high = row(axes, 5.65, 4.2, q[16:20], [ORANGE] * 4, step=2.0)
name(axes, 0.15, 6.8, "weights")
first = row(axes, 4.0, 6.8, weights[:4], [BLUE] * 4)
second = row(axes, 8.9, 6.8, weights[16:20], [ORANGE] * 4)
note(axes, 5.4, 7.9, "0, 1, 2, 3")
note(axes, 10.3, 7.9, "16, 17, 18, 19")
for k in range(4):
    for bits, to, color in ((low, first, BLUE), (high, second, ORANGE)):
        (x, y), (u, v), (a, b) = body[k], bits[k], to[k]
        curve(axes, (x, y + 0.5), (u, v - 0.5), color)
        curve(axes, (u, v + 0.5), (a, b - 0.5), color)
