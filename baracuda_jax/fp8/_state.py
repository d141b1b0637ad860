"""The state of a product in 8 bits: a scale and the largest magnitudes of steps, for each array that is cast."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array


class Fp8Scale(NamedTuple):
    """The scale of an array, float32 of shape [], and the history of its largest magnitudes, float32 [steps]."""

    scale: Array
    history: Array


class Fp8State(NamedTuple):
    """The state of `fp8_linear`: of x, of the kernel, and of the gradient of the result."""

    x: Fp8Scale
    kernel: Fp8Scale
    gradient: Fp8Scale


def fp8_state(history_length: int = 1024) -> Fp8State:
    """State of `fp8_linear` before the first step: scales of 1, histories of zeros.

    Args:
        history_length: static integer of at least 1, the number of steps whose largest magnitudes count.
    """
    if isinstance(history_length, bool) or not isinstance(history_length, int) or history_length < 1:
        raise ValueError(f"fp8_state: history_length must be an integer of at least 1, got {history_length!r}")
    new = lambda: Fp8Scale(jnp.ones((), jnp.float32), jnp.zeros(history_length, jnp.float32))
    return Fp8State(new(), new(), new())
