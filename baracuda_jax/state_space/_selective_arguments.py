"""The arguments that selective scans and their steps share: what has the dtype of u, and what may have that computed in."""

import jax.numpy as jnp

from .._core import checks
from .._core.compiled import full
from .._core.wide import wide, wide_dtype


def of_channels(op, name, value, shape, u, dtype=None):
    """Floats of u's dtype or the one computed in, in that; 0 for None."""
    if value is None:
        return full(shape, 0, dtype or wide_dtype(u.dtype))
    return of_states(op, name, value, shape, u)


def of_states(op, name, value, shape, u):
    """The same, of an array; a size that is None may be any."""
    value = checks.array(op, name, value)
    checks.dtype_or_wide(op, name, value, "u", u)
    if value.ndim != len(shape) or any(m not in (None, n) for n, m in zip(value.shape, shape, strict=True)):
        sizes = ", ".join("N" if n is None else str(n) for n in shape)
        raise ValueError(
            f"{op}: {name} must have shape [{sizes}], as the other arguments say, got {tuple(value.shape)}"
        )
    return wide(value)


def shared(op, name, value, sizes, u):
    """B or C as [batch, groups, N, *length], and whether it had groups."""
    batches, channels, states, length = sizes
    value = checks.array(op, name, value)
    checks.same_dtype(op, name, value, "u", u)
    without = (batches, states, *length)
    has_groups = value.ndim == len(without) + 1
    grouped = value if has_groups else jnp.expand_dims(value, 1) if value.ndim == len(without) else None
    if grouped is None or (grouped.shape[0], *grouped.shape[2:]) != without:
        dims = ", ".join(map(str, without))
        raise ValueError(
            f"{op}: {name} must have shape [{dims}], or with groups after the batch, as the other arguments say; got "
            f"{tuple(value.shape)}"
        )
    groups = grouped.shape[1]
    if channels % groups if groups else channels:
        raise ValueError(f"{op}: the groups of {name} must divide the {channels} channels, got {groups}")
    return grouped, has_groups
