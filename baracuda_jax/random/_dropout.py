"""Dropout, whose mask is drawn again for the gradient. Of philox keys a kernel draws it while it multiplies."""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit, keys
from .._core.body import Body
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.op import as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Axes, Implementation
from .._core.wide import wide, wide_dtype
from . import _mass, _philox
from ._arguments import all_of, in_range, parameters, refuse_native, sharding
from ._bits import are_known, philox
from ._rows import rows_of, streams
from ._unit import unit

SIZE = 4  # bytes that an element draws
ROW = 8192  # bytes of a row's stream at least; shards are cut by their own shapes


@facade_api("xla", has_kernels=True)
def dropout(
    x: ArrayLike,
    key: ArrayLike | None = None,
    rate: ArrayLike = 0.5,
    *,
    training: bool = True,
    broadcast_axes: Axes = (),
    implementation: Implementation = None,
) -> Array:
    """Dropout: random elements become 0, the others grow by 1 / (1 - rate).

    Formula:
        y = keep x / (1 - rate), with keep = (u < 1 - rate) for u uniform in [0, 1); dx = keep dy / (1 - rate). With rate 1,
        and without `training`, y = 0 and y = x.

    Args:
        x: floats of any shape.
        key: PRNG key of threefry2x32 or philox, typed or raw; it may be None without `training`.
        rate: the probability of 0: a number, or an array of one float, which may be traced. It has no gradient.
        training: static, whether anything is dropped.
        broadcast_axes: static, the axes along which all elements are kept or dropped together.
        implementation: "native" (the kernel, of philox keys without `broadcast_axes`), "xla" (plain JAX), a PlanPreference,
            or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The mask has the bits of
    `jax.random.bernoulli(key, float32(1 - rate), shape)`, alone, under vmap and on shards, by the kernel and plain JAX. The
    gradient draws it again: the key is all that is kept for it.

    Source: torch.nn.functional.dropout; flax.linen.Dropout, with the same mask; torch.nn.functional.dropout1d to dropout3d
    by broadcast_axes.
    """
    op = "dropout"
    x, arrays, numbers, axes = _arguments(op, "x", x, rate, broadcast_axes)
    if not checks.flag(op, "training", training):
        return x
    key = keys.typed(op, "key", key)
    if _has_kernel(op, key, axes, implementation):
        operands, params = _operands(x, key, arrays, numbers)
        return _op(x, *operands, **params, implementation=implementation)
    return _dropout(x, key, arrays, numbers=numbers, axes=axes)


@facade_api("xla", has_kernels=True)
def dropout_backward(
    dy: ArrayLike,
    key: ArrayLike,
    rate: ArrayLike = 0.5,
    *,
    broadcast_axes: Axes = (),
    implementation: Implementation = None,
) -> Array:
    """The gradient of `dropout`: dx = keep dy / (1 - rate).

    Args:
        dy: floats of any shape, the cotangent of the result.
        key: as in `dropout`.
        rate: as in `dropout`.
        broadcast_axes: as in `dropout`.
        implementation: as in `dropout`.

    Returns:
        The cotangent of x, of dy's shape and dtype.
    """
    op = "dropout_backward"
    dy, arrays, numbers, axes = _arguments(op, "dy", dy, rate, broadcast_axes)
    key = keys.typed(op, "key", key)
    if _has_kernel(op, key, axes, implementation):
        operands, params = _operands(dy, key, arrays, numbers)
        return _op.vjp(*operands, dy, **params, implementation=implementation)
    return _dropout(dy, key, arrays, numbers=numbers, axes=axes)


def _arguments(op, name, x, rate, broadcast_axes):
    x = checks.floats(op, name, x)
    arrays, numbers = parameters(op, rate=rate)
    in_range(op, numbers, 0, 1)
    for rate_name, value in arrays.items():
        checks.shape(op, rate_name, value, (), "that of one number")
    return x, arrays, numbers, _axes(op, name, x, broadcast_axes)


def _has_kernel(op, key, axes, implementation):
    """A call that asks for one where there is none is refused."""
    if keys.is_of(key, philox) and not axes:
        return True
    refuse_native(op, implementation, "philox keys without broadcast_axes")
    return False


def _axes(op, name, x, axes):
    listed = axes if isinstance(axes, tuple | list) else () if axes is None else (axes,)
    return tuple(sorted({checks.axis(op, name, x, a, "broadcast_axes") for a in listed}))


@compiled("numbers", "axes")
def _dropout(x, key, arrays, *, numbers, axes):
    def value(x, key, arrays):
        kept = _kept(arrays, numbers)
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        mask = jax.random.bernoulli(key, jnp.asarray(kept, jnp.float32), shape, out_sharding=sharding(x, axes))
        total = wide(x)
        y = jnp.where(jnp.broadcast_to(mask, x.shape), total * _factor(jnp.asarray(kept, total.dtype)), 0)
        return y.astype(x.dtype)

    # What this computes is computed again for the gradient, and none of it is kept.
    return jax.checkpoint(value)(x, key, arrays)


def _kept(arrays, numbers):
    rate = all_of(arrays, numbers)["rate"]
    return 1 - (wide(lax.stop_gradient(rate)) if isinstance(rate, jax.Array) else rate)


def _factor(kept):
    return 1 / jnp.where(kept > 0, kept, 1)  # nothing is kept then


# ---------------------------------------------------------------------------------------------------------------------
# Of philox keys. Their words [..., 4] and the probability of being kept may have fewer batches than x. Where x is a shard of
# an array of the shape `sizes`, `start` is the byte of the stream at which it begins, a pair of uint32.


def _operands(x, key, arrays, numbers):
    """Those after x, and the parameters."""
    kept, start = _of_rate(arrays, numbers=numbers, dtype=wide_dtype(x.dtype))
    return (jax.random.key_data(key), kept, start), {"sizes": x.shape}


@compiled("numbers", "dtype")
def _of_rate(arrays, *, numbers, dtype):
    return jnp.asarray(_kept(arrays, numbers), dtype), jnp.zeros(2, jnp.uint32)


def _reference(x, key, kept, start, *, sizes):
    count = x.ndim - len(sizes)
    shape, apart = x.shape[count:], _philox.strides(sizes, SIZE)
    if are_known(shape) and max(shape, default=0) >= 2**32:  # which an iota of 32 bits does not count
        lead, apart, length = rows_of(shape, SIZE, sizes, ROW)
        shape, apart = (*lead, length), (*apart, SIZE)
    ones = (1,) * (count - key.ndim + 1)
    key = explicit.whole(key, [key.ndim - 1]).reshape(*key.shape[:-1], *ones, 4)
    bits = _philox.bits(key, shape, "uint32", apart, (start[0], start[1])).reshape(*key.shape[:-1], *x.shape[count:])
    total, kept = wide(x), kept.reshape(*kept.shape, *(1,) * (x.ndim - kept.ndim))
    is_kept = unit(bits, jnp.float32) < kept.astype(jnp.float32)
    return (jnp.where(is_kept, total * _factor(kept), 0).astype(x.dtype),)


def _native(x, key, kept, start, *, sizes, save=False):
    count = x.ndim - len(sizes)
    batch, shape = x.shape[:count], x.shape[count:]
    if not are_known(shape):
        return _reference(x, key, kept, start, sizes=sizes)
    lead, apart, length = rows_of(shape, SIZE, sizes, ROW)
    numbers = kept.astype(jnp.float32).astype(kept.dtype), _factor(kept)
    rows = streams(key, lead, apart, numbers, start, batch)
    out = [jax.ShapeDtypeStruct((*batch, *lead, length), x.dtype)]
    x = explicit.reshape(x, *batch, *lead, length)
    (y,) = kernel("philox_dropout", "...n, ...s -> ...n", x, rows, out=out)
    return (explicit.reshape(y, *batch, *shape),)


def _of_cotangent(body):
    return lambda key, kept, start, dy, **params: body(dy, key, kept, start, **params)


def _labels(names, types, params):
    most = max(t.ndim for name, t in zip(names, types, strict=True) if name in ("x", "y"))
    dimensions = [f"d{i}" for i in range(most)]
    of = {"key": lambda rank: (*dimensions[: rank - 1], "word"), "start": lambda rank: ("pair",)}
    return [of.get(name, lambda rank: tuple(dimensions[:rank]))(t.ndim) for name, t in zip(names, types, strict=True)]


def _placed(axes, names, operands, *, sizes, **_):
    known = dict(zip(names, operands, strict=True))
    start = _first_byte(known["start"], axes, known.get("x", known.get("y")), sizes)
    return [start if name == "start" else operand for name, operand in known.items()]


def _first_byte(start, axes, x, sizes):
    """That of x, a shard along these mesh axes of an array that begins at `start`."""
    total, count = (start[0], start[1]), x.ndim - len(sizes)
    for i, stride in enumerate(_philox.strides(sizes, SIZE)):
        if over := axes.get(f"d{count + i}"):
            index = lax.axis_index(over).astype(jnp.uint32) * jnp.uint32(x.shape[count + i])
            total = _mass.add(total, _philox.position(index, stride))
    return jnp.stack(total)


def _case(name, shape, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape), keys.draw(rng, 4)), kwargs)


_op = declare(
    "dropout",
    family="random",
    category=OpCategory.RANDOM,
    public=dropout,
    cases=(
        _case("rows", (5, 41)),
        _case("long rows", (3, 2051), rate=0.3),
        _case("vector", (33,), rate=0.1),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "key", "kept", "start"),
    differentiable=("x",),
    constant=keys.CONSTANT | {"kept": "the rate has no gradient", "start": "it is where a shard is"},
    residuals=("key", "kept", "start"),
    linear=as_they_are,
    shared={"key": 1, "kept": 0, "start": 1},
    batched=as_they_are,
    cut=Partition(_labels, frozenset({"word", "pair"}), placed=_placed),
    forward=Body(_reference, _native),
    backward=Body(_of_cotangent(_reference), _of_cotangent(_native)),
    kernels={"forward": ("philox_dropout",), "backward": ("philox_dropout",)},
)
