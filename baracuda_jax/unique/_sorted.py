"""The sort that distinct values are made of: the one place that says whose."""

import jax.numpy as jnp

#: The FFI targets that it calls.
TARGETS = ()


def sorted_cells(x, with_order, prefer):
    """x [n], sorted along its axis with NaN last, and where its cells were, those that tie in their order; None where
    nobody asks for it."""
    if not with_order:
        return jnp.sort(x, stable=True), None
    order = jnp.argsort(x, stable=True).astype(jnp.int32)
    return x[order], order
