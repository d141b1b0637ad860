"""The arguments of losses that sum over alignments of labels to frames, and cases of them."""

import jax.numpy as jnp
import numpy as np

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled, full


def arguments(op, x, targets, input_lengths, target_lengths, blank, log_probs, dimensions):
    """The operands (x, targets, input_lengths, target_lengths), and the parameters. `dimensions` are what a sample's x has:
    frames, ..., classes."""
    x, targets = checks.floats(op, "x", x), checks.array(op, "targets", targets)
    checks.dtype(op, "targets", targets, checks.INTEGERS)
    rank = len(dimensions)
    if x.ndim < rank:
        names = f"{', '.join(dimensions[:-1])} and {dimensions[-1]}"
        few = {2: "two", 3: "three"}[rank]
        raise ValueError(f"{op}: x must have {few} dimensions or more, {names}, got shape {tuple(x.shape)}")
    batch, frames = x.shape[:-rank], x.shape[-rank]
    if targets.ndim != len(batch) + 1 or targets.shape[:-1] != batch:
        raise ValueError(
            f"{op}: targets must have the dimensions of x before its frames, {tuple(batch)}, and one of labels, got "
            f"shape {tuple(targets.shape)}"
        )
    blank = checks.integer(op, "blank", blank, 0)
    if blank >= x.shape[-1]:
        raise ValueError(f"{op}: blank must be one of {x.shape[-1]} classes, got {blank}")
    params = dict(blank=blank, is_log=checks.flag(op, "log_probs", log_probs))
    all_lengths = {"input_lengths": (input_lengths, frames), "target_lengths": (target_lengths, targets.shape[-1])}
    return (x, int32(targets), *(lengths(op, name, *each, batch) for name, each in all_lengths.items())), params


def lengths(op, name, value, most, batch):
    """Those of the samples, by default all that there is."""
    if value is None:
        return full(batch, most, jnp.dtype("int32"))
    value = checks.array(op, name, value)
    checks.dtype(op, name, value, checks.INTEGERS)
    checks.shape(op, name, value, batch, "one for each sample")
    return int32(value)


def int32(x):
    return x if x.dtype == jnp.int32 else _as_int32(x)


@compiled()
def _as_int32(x):
    """Integers out of its range stay out of all ranges of classes and lengths."""
    info = jnp.iinfo(x.dtype)
    x = jnp.maximum(x, -1) if info.min < -1 else x
    return (jnp.minimum(x, 2**31 - 1) if info.max > 2**31 - 1 else x).astype(jnp.int32)


def case(name, batch, dimensions, labels, shortest, too_short, *, is_full=False, blank=0, **kwargs):
    """Samples of several lengths, or full ones, of these dimensions: frames, ..., classes. They have `shortest` frames or
    more, except for the last, whose frames are too few for its labels."""

    def draw(rng):
        x = 2 * rng.standard_normal((*batch, *dimensions))
        targets = rng.integers(0, dimensions[-1] - 1, (*batch, labels)).astype(np.int32)
        targets += targets >= blank
        if is_full:
            return x, targets
        input_lengths = rng.integers(shortest, dimensions[0] + 1, batch).astype(np.int32)
        target_lengths = rng.integers(0, labels + 1, batch).astype(np.int32)
        input_lengths[-1], target_lengths[-1] = too_short, labels
        return x, targets, input_lengths, target_lengths

    return Case(name, draw, kwargs | ({"blank": blank} if blank else {}))
