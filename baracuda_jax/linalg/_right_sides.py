"""Right sides of linear systems: their checks, and both arrays with the same batches."""

import jax.numpy as jnp

from .._core import checks, explicit
from .._core.compiled import compiled
from .._core.wide import wide
from ._matrices import rounded


def right_sides(op, a, b, left=True):
    """a and b, which has as many rows, or columns where a is on the right."""
    b = checks.array(op, "b", b)
    b = explicit.whole(b, range(max(0, b.ndim - 2), b.ndim))
    checks.same_dtype(op, "b", b, "a", a)
    if not b.ndim or b.shape[-2 if b.ndim > 1 and left else -1] != a.shape[-2]:
        matrix = f"(..., {a.shape[-2]}, k)" if left else f"(..., k, {a.shape[-2]})"
        raise ValueError(
            f"{op}: b must have shape ({a.shape[-2]},) or {matrix} for a of shape {a.shape}, got {b.shape}"
        )
    try:
        jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"{op}: the batch dimensions of b must broadcast with those of a, {a.shape[:-2]}, got {b.shape[:-2]}"
        ) from None
    return a, b


@compiled()
def same_batches(a, b):
    """Both in the wide type, with the batch dimensions of both; a vector as a column."""
    a, b = wide(a), wide(b)
    b = b if b.ndim > 1 else b[:, None]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return tuple(jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))


@compiled()
def as_it_came(a, b, y):
    return rounded(a.dtype, y if b.ndim > 1 else y[..., 0])
