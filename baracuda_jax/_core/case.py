"""Example calls of an op: tests, the self-test and the benchmarks take their inputs from them."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of an op's public function: public(*arguments, **kwargs), where `draw(rng)` gives the arguments, arrays or
    pytrees of them, in float64 or as integers. Arrays of floats are cast to the dtype under test."""

    name: str
    draw: Callable[[np.random.Generator], tuple[Any, ...]]
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def arguments(self, rng, dtype):
        dtype = jnp.dtype(dtype)
        return jax.tree.map(lambda x: cast(x, dtype) if x.dtype == np.float64 else x, tuple(self.draw(rng)))

    def __str__(self):
        return self.name


def cast(x, dtype):
    """Floats for a dtype: spread over small integers where that is an integer type, their signs for bool, also as imaginary
    parts of complex numbers."""
    if dtype == np.bool_:
        return x > 0
    if jnp.issubdtype(dtype, jnp.unsignedinteger):
        return np.minimum(np.abs(np.round(4 * x)), 100).astype(dtype)
    if jnp.issubdtype(dtype, jnp.integer):
        return np.clip(np.round(4 * x), -100, 100).astype(dtype)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        imaginary = np.flip(x)
        # Not on the imaginary axis, which may be a branch cut.
        x = np.where((x == 0) & (imaginary != 0), 1 / 64, x) + 1j * imaginary
    return x.astype(dtype)
