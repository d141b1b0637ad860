"""A block of an array written anew, where the device says. In place, where nobody else reads the array: then the block
alone is written. Of dy, the block is the gradient of what was written, and the rest is that of the array."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled, sent
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.types import Implementation, Integers
from ._family import FAMILY, operand, spaced
from ._partition import WHOLE

MOST_RANK = 8


@api
def dynamic_update_slice(
    x: ArrayLike, update: ArrayLike, start: ArrayLike | Sequence[ArrayLike], *, implementation: Implementation = None
) -> Array:
    """Replace a block of x.

    Formula:
        y[i] = update[i - s] where that is inside of update, else x[i]; with s = max(0, min(start, n - m)) along each axis of
        n elements of x and m of update, and n added to a start below 0 before. dx is dy with zeros in the block, dupdate
        the block of dy.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        update: array of x's rank and dtype, which fits into x.
        start: one integer for each axis, static or traced; or an array of these.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype. Where x is donated, or nobody reads it after, it is x's memory, and only the block is
        written.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; for a rank above 8.

    Precision: values are moved as they are.

    Source: jax.lax.dynamic_update_slice; torch.slice_scatter.
    """
    op = "dynamic_update_slice"
    x, update = operand(op, "x", x), operand(op, "update", update)
    checks.same_dtype(op, "update", update, "x", x)
    _check_fits(op, x.shape, "update", update.shape)
    start = _start(op, start, x.shape)
    return (
        update
        if not x.ndim
        else _dynamic_update_slice(
            x, update, start, update_shape=_block(x.shape, update.shape), implementation=implementation
        )
    )


write_slice = dynamic_update_slice


@api
def dynamic_update_slice_backward(
    dy: ArrayLike,
    start: ArrayLike | Sequence[ArrayLike],
    update_shape: Integers,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `dynamic_update_slice`: dy with zeros in the block, and the block.

    Args:
        dy: floats or complex, the cotangent of the result.
        start: as for `dynamic_update_slice`.
        update_shape: the shape of update, static integers; -1 for the size of dy.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and of update.
    """
    op = "dynamic_update_slice_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    if not isinstance(update_shape, tuple | list | np.ndarray):
        raise TypeError(f"{op}: update_shape must be a tuple of integers, got {update_shape!r}")
    _check_fits(op, dy.shape, "update_shape", update_shape)
    shape = tuple(checks.integer(op, f"update_shape[{i}]", n, -1) for i, n in enumerate(update_shape))
    shape = _shape(dy, shape)
    start = _start(op, start, dy.shape)
    if not dy.ndim:
        return [jnp.zeros_like(dy), dy]
    return _dynamic_update_slice.vjp(start, dy, update_shape=_block(dy.shape, shape), implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# Arguments. A block has -1 for an axis along which it is whole: that one may be cut, and then its size is the shard's.


def _check_fits(op, shape, name, block):
    if len(block) != len(shape) or any(m > n for m, n in zip(block, shape, strict=True)):
        raise ValueError(
            f"{op}: {name} must have the rank of x and fit into its shape {tuple(shape)}, got {tuple(block)}"
        )
    if len(shape) > MOST_RANK:
        raise ValueError(f"{op}: x must have at most {MOST_RANK} axes, got {len(shape)}")


def _block(shape, block):
    return tuple(-1 if m == n else m for n, m in zip(shape, block, strict=True))


def _start(op, start, shape):
    """An array of a number for each axis, of 0 or more."""
    if isinstance(start, int | np.integer):
        start = (start,)
    if not isinstance(start, tuple | list):
        start = explicit.whole(checks.array(op, "start", start))
        start = (
            (start,) if start.ndim == 0 else [lax.index_in_dim(start, i, keepdims=False) for i in range(start.shape[0])]
        )
    if len(start) != len(shape):
        raise ValueError(f"{op}: start must have one number for each of {len(shape)} axes, got {len(start)}")
    numbers = [_number(op, f"start[{i}]", s, n) for i, (s, n) in enumerate(zip(start, shape, strict=True))]
    is_static = all(isinstance(number, np.ndarray) for number in numbers)
    if not numbers:
        return None
    return sent(np.stack(numbers)) if is_static else jnp.stack(numbers)


def _number(op, name, start, n):
    dtype = np.dtype(np.int32 if n < 2**31 else np.int64)
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        return np.asarray(min(max(start + n if start < 0 else start, 0), n), dtype)
    start = checks.array(op, name, start)
    checks.dtype(op, name, start, checks.INTEGERS)
    if start.ndim:
        raise ValueError(f"{op}: {name} must be one integer, got shape {tuple(start.shape)}")
    return _inside(start, n=n, dtype=dtype)


@compiled("n", "dtype")
def _inside(start, *, n, dtype):
    info, most = jnp.iinfo(start.dtype), jnp.iinfo(dtype).max
    start = jnp.clip(start, max(info.min, -most), min(info.max, most)).astype(dtype)
    return jnp.maximum(jnp.where(start < 0, start + n, start), 0)


# ---------------------------------------------------------------------------------------------------------------------
# References and kernel calls. start [k], or of some of the batches.


def _each_batch(fun, arrays, start):
    """fun(*arrays without batches, numbers) mapped over the batches, of which starts have all or the first ones."""
    more, shared = arrays[0].ndim - start.shape[-1], start.ndim - 1
    for i in range(more):
        fun = jax.vmap(fun, (*(0 for _ in arrays), None if i < more - shared else 0))
    return fun(*arrays, start)


def _write_reference(x, update, start, *, update_shape):
    return (_each_batch(lambda x, update, at: lax.dynamic_update_slice(x, update, list(at)), (x, update), start),)


def _backward_reference(start, dy, *, update_shape):
    shape = _shape(dy, update_shape)
    zeros = jnp.zeros((*dy.shape[: dy.ndim - len(update_shape)], *shape), dy.dtype)
    dx = _write_reference(dy, zeros, start, update_shape=update_shape)[0]
    return dx, _each_batch(lambda dy, at: lax.dynamic_slice(dy, list(at), shape), (dy,), start)


def _shape(x, block):
    return tuple(n if m < 0 else m for n, m in zip(x.shape[x.ndim - len(block) :], block, strict=True))


def _core(start, block):
    """Leading axes along which the block is whole are batches: the starts of the others, and letters for these."""
    lead = next((i for i, m in enumerate(block) if m >= 0), len(block) - 1)
    return start[..., lead:], "abcdefgh"[: len(block) - lead], "nopqrstu"[: len(block) - lead]


def _write_native(x, update, start, *, save=False, update_shape):
    start, whole, part = _core(start, update_shape)
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
    return kernel(
        "write_slice", f"...{whole}, ...{part}, ...k -> ...{whole}", x, update, start, out=out, aliases=((0, 0),)
    )


def _backward_native(start, dy, *, update_shape):
    shape = (*dy.shape[: dy.ndim - len(update_shape)], *_shape(dy, update_shape))
    (dx,) = _write_native(dy, jnp.zeros(shape, dy.dtype), start, update_shape=update_shape)
    start, whole, part = _core(start, update_shape)
    out = [jax.ShapeDtypeStruct(shape, dy.dtype)]
    return [dx, *kernel("read_slice", f"...{whole}, ...k -> ...{part}", dy, start, out=out)]


def _labels(names, types, params):
    """Axes along which the block is whole may be cut."""
    block = params["update_shape"]

    def of(name, rank):
        if name == "start":
            return (*(f"batch{i}" for i in range(rank - 1)), "start")
        side = {"x": "x", "update": "u", "y": "y"}[name]
        core = (f"d{i}" if m < 0 else f"{side}{i + 1}" for i, m in enumerate(block))
        return (*(f"batch{i}" for i in range(rank - len(block))), *core)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _case(name, shape, block, start):
    return Case(name, lambda rng: (spaced(rng, *shape), rng.standard_normal(block), np.array(start)))


_dynamic_update_slice = declare(
    "dynamic_update_slice",
    **FAMILY,
    public=dynamic_update_slice,
    cases=(
        _case("matrix", (6, 8), (2, 3), (1, 4)),
        _case("rows", (9, 5), (3, 5), (4, 0)),
        _case("columns", (4, 16), (4, 8), (0, 8)),
        _case("moved inside", (5, 6, 4), (3, 2, 4), (9, -1, 0)),
        _case("vector", (30,), (7,), (11,)),
    ),
    operands=("x", "update", "start"),
    aliases={"x": "y"},
    differentiable=("x", "update"),
    constant={"start": "positions are integers"},
    residuals=("start",),
    shared={"start": 1},
    linear=lambda params: params,
    forward=Body(_write_reference, _write_native),
    backward=Body(_backward_reference, _backward_native),
    cut=Partition(_labels, whole=WHOLE | {"start"}),
    kernels={"forward": ("write_slice",), "backward": ("write_slice", "read_slice")},
    default="xla",
)
