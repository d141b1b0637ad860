"""Copies of an array side by side.

Data flow: forward, each element of y takes its element of x; backward, each element of dx adds its copies, so that every
element of dy is read once and every element of dx written once. Pattern: tile.

Of an array's dimensions, the leading ones that are not repeated are batches. The others are merged as far as their elements
stay neighbors, so that a kernel sees few axes, each repeated.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers

MOST_AXES = 8


@api
def repeat(x: ArrayLike, repeats: Integers, *, implementation: Implementation = None) -> Array:
    """Copies of x side by side, repeats[i] of them along axis i.

    Formula:
        y[i_1, ..., i_k] = x[i_1 mod n_1, ..., i_k mod n_k], where x is [n_1, ..., n_k] and y [repeats[0] n_1, ...],
        dx[j] = sum of dy over the copies of j.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        repeats: tuple of static integers of at least 0, one for each axis. If there are more than x has axes, x gets leading
            axes of size 1; if there are fewer, they are those of the last axes, and the others are not repeated.
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        The array of copies, of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it; ValueError for more than 8 repeated
            axes that can't be merged with their neighbors.

    Precision: values are moved as they are. The gradient's sums are formed in float32 for float16 and bfloat16, in the dtype
    itself for others, in an order that depends on the shapes alone: results are the same bits every time.

    Source: torch.Tensor.repeat, which has no rule for fewer repeats than axes; jax.numpy.tile. numpy.repeat is
    `repeat_interleave`.
    """
    return _copied("repeat", x, _repeats("repeat", repeats), implementation)


@api
def tile(x: ArrayLike, repeats: int | Integers, *, implementation: Implementation = None) -> Array:
    """Copies of x side by side: `repeat`, which also takes one integer, for the last axis.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        repeats: static integer, or a tuple of them, one for each axis, of at least 0.
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        The array of copies, of x's dtype.
    """
    return _copied("tile", x, _counts("tile", repeats), implementation)


def _copied(op, x, repeats, implementation):
    x = checks.array(op, "x", x)
    checks.dtype(op, "x", x, _repeat.dtypes)
    params = _params(op, x.shape, repeats)
    return _repeat(explicit.reshape(x, *params["shape"]), **params, implementation=implementation)


@api
def repeat_backward(
    dy: ArrayLike,
    repeats: int | Integers,
    shape: int | Integers | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `repeat` and `tile`: dx[j] = sum of dy over the copies of j.

    Args:
        dy: floats or complex, the cotangent of the result.
        repeats: as for `tile`.
        shape: the shape of x; by default that of dy divided by repeats, which must be given where a repeat is 0.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "repeat_backward"
    dy, repeats = checks.array(op, "dy", dy), _counts(op, repeats)
    checks.dtype(op, "dy", dy, checks.INEXACT)
    if shape is None:
        shape = _divided(op, dy.shape, repeats)
    elif not isinstance(shape, tuple | list | np.ndarray):
        raise TypeError(f"{op}: shape must be a tuple of integers, got {shape!r}")
    shape = tuple(checks.integer(op, f"shape[{i}]", n, 0) for i, n in enumerate(shape))
    params = _params(op, shape, repeats)
    checks.shape(op, "dy", dy, _y_shape(**params), f"that of x {shape} repeated {repeats}")
    return explicit.reshape(_repeat.vjp(dy, **params, implementation=implementation), *shape)


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


_OF_ELEMENTS = "repeat_interleave, which repeats elements and not the whole,"


def _repeats(op, repeats):
    """An integer alone is refused: in numpy.repeat it repeats elements, in numpy.tile the whole."""
    checks.no_array(op, "repeats", repeats, _OF_ELEMENTS)
    if not _is_sequence(repeats):
        raise TypeError(
            f"{op}: repeats must be a tuple of integers, one for each axis, got {repeats!r}; repeat_interleave repeats "
            "elements (numpy.repeat), tile takes an integer (numpy.tile)"
        )
    return _counts(op, repeats)


def _counts(op, repeats):
    """As a tuple. One integer is that of the last axis."""
    checks.no_array(op, "repeats", repeats, _OF_ELEMENTS)
    if not _is_sequence(repeats):
        return (checks.integer(op, "repeats", repeats, 0),)
    return tuple(checks.integer(op, f"repeats[{i}]", r, 0) for i, r in enumerate(repeats))


def _is_sequence(repeats):
    return isinstance(repeats, tuple | list) or (isinstance(repeats, np.ndarray) and repeats.ndim > 0)


def _params(op, shape, repeats):
    """Both padded to the same length."""
    rank = max(len(shape), len(repeats))
    pad = lambda values: (1,) * (rank - len(values)) + tuple(values)
    params = {"shape": pad(shape), "repeats": pad(repeats)}
    if len(axes := axes_and_batches(**params)[1]) > MOST_AXES:
        raise ValueError(
            f"{op}: repeats must repeat at most {MOST_AXES} axes, after merging neighbors, got {repeats}, which repeats "
            f"{len(axes)} axes of {tuple(shape)}"
        )
    return params


def _divided(op, shape, repeats):
    if 0 in repeats:
        raise ValueError(f"{op}: shape must be given where a repeat is 0, got repeats {repeats} and no shape")
    padded = (1,) * (len(shape) - len(repeats)) + repeats
    if len(padded) > len(shape) or any(n % r for n, r in zip(shape, padded, strict=True)):
        raise ValueError(f"{op}: dy must have a shape that repeats {repeats} divide, got {tuple(shape)}")
    return tuple(n // r for n, r in zip(shape, padded, strict=True))


def _y_shape(shape, repeats):
    return tuple(n * r for n, r in zip(shape, repeats, strict=True))


def axes_and_batches(shape, repeats):
    """How many dimensions are batches, and the merged axes after them, as (size, repeats)."""
    batches = next((i for i, r in enumerate(repeats) if r != 1), len(repeats))
    axes = []
    for n, r in zip(shape[batches:], repeats[batches:], strict=True):
        if axes and r == 1:
            axes[-1] = (axes[-1][0] * n, axes[-1][1])
        elif axes and axes[-1][0] == 1:
            axes[-1] = (n, axes[-1][1] * r)
        else:
            axes.append((n, r))
    return batches, axes


# ---------------------------------------------------------------------------------------------------------------------
# References and kernel calls. x has the dimensions `shape`, after those that vmap put before them.


def _reference(x, *, shape, repeats):
    return (jnp.tile(x, repeats),)


def _backward_reference(dy, *, shape, repeats):
    more = dy.shape[: dy.ndim - len(shape)]
    pairs = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    copies = tuple(range(len(more), len(more) + len(pairs), 2))
    # XLA may round to a half type between the axes of a sum.
    wide = jnp.float32 if dy.dtype in (jnp.float16, jnp.bfloat16) else dy.dtype
    return (dy.reshape(*more, *pairs).astype(wide).sum(copies).astype(dy.dtype),)


def _call(target, operand, result, *, shape, repeats, is_backward):
    """`result` is the shape of what comes out, after the dimensions that vmap put before it."""
    count, axes = axes_and_batches(shape, repeats)
    if not axes:
        return explicit.reshape(operand, *operand.shape[: operand.ndim - len(shape)], *result)
    more = operand.ndim - len(shape)
    batches = operand.shape[: more + count]
    x, y = ((*batches, *dims) for dims in ([n for n, _ in axes], [n * r for n, r in axes]))
    source, out = (y, x) if is_backward else (x, y)
    dims = ["..." + letters[: len(axes)] for letters in ("abcdefgh", "pqrstuvw")]
    (moved,) = kernel(
        target, " -> ".join(dims), explicit.reshape(operand, *source), out=[jax.ShapeDtypeStruct(out, operand.dtype)],
        workspace=_workspace(axes, operand.dtype) if is_backward else None, repeats=tuple(r for _, r in axes),
    )  # fmt: skip
    return explicit.reshape(moved, *operand.shape[:more], *result)


def copies(x, *, shape, repeats):
    return _call("repeat", x, _y_shape(shape, repeats), shape=shape, repeats=repeats, is_backward=False)


def sum_of_copies(dy, *, shape, repeats):
    return _call("repeat_backward", dy, shape, shape=shape, repeats=repeats, is_backward=True)


def _native(x, *, save, **params):
    return [copies(x, **params)]


def _backward_native(dy, **params):
    return [sum_of_copies(dy, **params)]


def _workspace(axes, dtype):
    """Bytes of the sums of chunks of copies that the CUDA driver keeps: `TileGrid` of ffi/patterns/tile_cuda.h says how
    many chunks there are."""
    inner, repeats = axes[-1]
    elements, copies = math.prod(n for n, _ in axes), math.prod(r for _, r in axes)
    parts = 2 if dtype.name in checks.COMPLEX else 1
    inner, elements, itemsize = inner * parts, elements * parts, dtype.itemsize // parts
    if elements == 0 or copies == 0:
        return 0
    width = 16 // itemsize if inner % (16 // itemsize) == 0 else 1
    lanes, groups = 1, 1
    while lanes < 8 and lanes < inner // width:
        lanes *= 2
    most = 256 // lanes
    scattered = lambda: inner * itemsize * groups < 128 and 2 * groups <= repeats
    while groups < most and 8 * groups <= copies and (elements // width * groups < 2**17 or scattered()):
        groups *= 2
    chunks = 1
    if groups == most:
        chunks = max(1, min(-(-(2**17) // (elements // width * groups)), copies // (16 * groups)))
    return 0 if chunks == 1 else chunks * elements * max(itemsize, 4) + 256


def _case(name, shape, repeats):
    # No two values alike.
    draw = lambda rng: (rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape),)
    return Case(name, draw, dict(repeats=repeats))


_repeat = declare(
    "repeat",
    family="shape",
    category=OpCategory.SHAPE_LAYOUT,
    public=repeat,
    dtypes=checks.EVERY,
    cases=(
        _case("both axes", (6, 4), (2, 3)),
        _case("vector", (7,), (3,)),
        _case("inner", (5, 8), (1, 4)),
        _case("outer", (4, 16), (3, 1)),
        _case("more axes", (4, 3), (2, 1, 3, 1)),
        _case("odd", (3, 5, 7), (2, 1, 3)),
        _case("many copies", (2, 3), (60, 70)),
    ),
    operands=("x",),
    differentiable=("x",),
    residuals=(),
    linear=lambda params: params,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    batched=as_they_are,
    cut="copies of a shard are not next to each other",
    kernels={"forward": ("repeat",), "backward": ("repeat_backward",)},
    weak=True,
)
