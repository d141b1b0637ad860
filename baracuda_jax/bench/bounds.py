"""The bandwidth bound of a time: what a copy needs for the bytes that any program for the same must move.

    forward              operands read, result written
    forward + backward   that, then the cotangent read, the gradients written, and what the gradient needs read again

The backward pass begins when the forward pass has ended, so nothing is still at hand. Where the forward pass may write an
index for the backward pass to read, as `arg` of a maximum, the smaller of both ways counts."""

import statistics

import jax
import jax.numpy as jnp

from . import times


def size(arrays):
    """Bytes of arrays, or of ShapeDtypeStructs."""
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(list(arrays)))


def forward(benchmark, operands, y):
    """Bytes of the forward pass."""
    return size((*operands, y)) - benchmark.unread


def forward_and_backward(benchmark, operands, y):
    """Bytes of both passes."""
    again = size(y if which == "y" else operands[which] for which in benchmark.needs)
    if benchmark.saved:
        again = min(again, 2 * size(benchmark.saved))  # written, and read
    cotangent, gradients = y, operands[: benchmark.moving]
    return forward(benchmark, operands, y) + size((cotangent, *gradients)) + again


BY_PASS = {"forward": forward, "forward + backward": forward_and_backward}


def copy_bandwidth(platform):
    """Bytes per second, read and written, of XLA's program for -x."""
    x = jnp.ones(1 << (22 if platform == "cpu" else 28), jnp.float32)
    program = jax.jit(jnp.negative).lower(x).compile()
    with times.alone_on_device():
        seconds = times.measure(platform, {"copy": times.on(program, [(x,)])}, 25)["copy"]
    return 2 * x.nbytes / statistics.median(seconds)
