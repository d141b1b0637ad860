"""The arguments of linear layers, of which each device has its part."""

from .._core import checks
from ..gemm._arguments import added


def layer(op, x, kernel, bias, *, parts=1):
    """x [..., K], kernel [K / parts, N] and bias [N] or None."""
    x, kernel = checks.floats(op, "x", x), checks.floats(op, "kernel", kernel)
    if x.ndim < 1:
        raise ValueError(f"{op}: x must have at least one dimension, got a scalar")
    checks.same_dtype(op, "kernel", kernel, "x", x)
    if kernel.ndim != 2 or kernel.shape[0] * parts != x.shape[-1]:
        rows = f"({x.shape[-1]}, N)" if parts == 1 else f"({x.shape[-1]} / {parts}, N) on each of {parts} devices"
        raise ValueError(f"{op}: kernel must have shape {rows} for x of shape {x.shape}, got {kernel.shape}")
    return x, kernel, added(op, "bias", bias, x, kernel.shape[1:])


def sequence(op, x, sequence_parallel, sequence_axis, *, parts=1):
    """The axis of the sequence, counted from the first, if that is sharded; else None. `parts` divide it."""
    if not checks.flag(op, "sequence_parallel", sequence_parallel):
        return None
    axis = checks.axis(op, "x", x, sequence_axis, "sequence_axis")
    if axis == x.ndim - 1:
        raise ValueError(
            f"{op}: sequence_axis must not be the last axis, the features, for x of shape {x.shape}, got {sequence_axis}"
        )
    if x.shape[axis] % parts:
        raise ValueError(
            f"{op}: x must have a length along sequence_axis that the {parts} devices divide, got shape {x.shape}"
        )
    return axis
