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
name(axes, 0.15, 0.7, "data")
note(axes, 3.0, 1.85, "scale")
note(axes, 8.6, 1.85, "16 bytes of two weights")
head = row(axes, 2.55, 0.7, [f"{b:02x}" for b in block[:2]], [GREEN] * 2)
body = row(axes, 5.2, 0.7, [f"{b:02x}" for b in block[2:6]], [BLUE] * 4, step=2.0)
name(axes, 0.15, 3.9, "bits")
low = row(axes, 4.75, 3.9, q[:4], [BLUE] * 4, step=2.0)
high = row(axes, 5.65, 3.9, q[16:20], [ORANGE] * 4, step=2.0)
note(axes, 8.2, 5.0, "low four bits, high four bits")
name(axes, 0.15, 6.6, "gguf_dequantize(...)")
first = row(axes, 4.85, 6.6, weights[:4], [BLUE] * 4)
second = row(axes, 9.1, 6.6, weights[16:20], [ORANGE] * 4)
note(axes, 6.3, 7.75, "weights 0 ...")
note(axes, 10.5, 7.75, "weights 16 ...")
for k in range(4):
    for bits, to, color in ((low, first, BLUE), (high, second, ORANGE)):
        (x, y), (u, v), (a, b) = body[k], bits[k], to[k]
        curve(axes, (x, y + 0.5), (u, v - 0.5), color)
        curve(axes, (u, v + 0.5), (a, b - 0.5), color)
