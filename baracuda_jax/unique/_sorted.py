"""The sort of which distinct values are made: the one place that says whose. Plans do not know of it, so it is XLA's."""

import jax.numpy as jnp


def sorted_cells(x, with_order):
    """x [n], sorted along its axis with NaN last, and where its cells were, those that tie in their order; None where
    nobody asks for it."""
    if not with_order:
        return jnp.sort(x, stable=True), None
    order = jnp.argsort(x, stable=True).astype(jnp.int32)
    return x[order], order
