"""Random bits of philox keys, and the key type by which all of `jax.random` draws them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import compat, explicit, keys
from .._core import prefer as preference
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from . import _philox
from ._arguments import sizes
from ._rows import rows_of, streams

DTYPES = ("uint8", "uint16", "uint32", "uint64")


@api
def random_bits(
    key: ArrayLike,
    *,
    shape: int | Integers = (),
    dtype: DTypeLike = "uint32",
    implementation: Implementation = None,
) -> Array:
    """Random bits, as unsigned integers.

    Formula:
        A philox key (k0, k1, k2, k3) has a stream of bytes, 16 for each i: the four words, lower bytes first, that
        Philox4x32-10 makes of the counter (i mod 2^32, floor(i / 2^32), k2, k3) under (k0, k1). Element j of n bytes has
        bytes n j to n j + n - 1.

    Args:
        key: PRNG key of philox, typed or uint32 [4]; or of threefry2x32, typed or uint32 [2].
        shape: static, of the result, of at most 2^63 bytes.
        dtype: uint8, uint16, uint32 or uint64.
        implementation: "native" (the kernel, of philox), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of the shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: the bits of `jax.random.bits`. An element depends on its index and the key alone: it is the same alone, under
        vmap, on any shards, and by the kernel and plain JAX.

    Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011); jax.random.bits.
    """
    op = "random_bits"
    key, shape = keys.typed(op, "key", key), sizes(op, shape)
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype.name not in DTYPES:
        raise TypeError(f"{op}: dtype must be one of {', '.join(DTYPES)}, got {dtype.name}")
    if math.prod(shape) * dtype.itemsize >= 2**63:
        raise ValueError(f"{op}: shape may have at most 2^63 bytes, got {shape} of {dtype.name}")
    if keys.is_of(key, philox):
        return _drawn(jax.random.key_data(key), shape=shape, dtype=dtype, implementation=implementation)
    preference.refuse_native(op, implementation, "xla")
    return jax.random.bits(key, shape, dtype)


@compiled("shape", "dtype", "implementation")
def _drawn(key, *, shape, dtype, implementation=None):
    return _random_bits(key, shape=shape, dtype=jnp.dtype(dtype).name, implementation=implementation)


def reference(key, *, shape, dtype):
    key = explicit.whole(key, [key.ndim - 1])
    if are_known(shape) and max(shape, default=0) >= 2**32:  # which an iota of 32 bits does not count
        lead, _, length = rows_of(shape, jnp.dtype(dtype).itemsize)
        return (_philox.bits(key, (*lead, length), dtype).reshape(*key.shape[:-1], *shape),)
    return (_philox.bits(key, shape, dtype),)


def _native(key, *, save, shape, dtype):
    if not are_known(shape):
        return reference(key, shape=shape, dtype=dtype)
    return drawn_rows("philox_bits", key, shape, dtype, jnp.dtype(dtype).itemsize)


def drawn_rows(target, key, shape, dtype, size, numbers=(), **attributes):
    """One array of a kernel, of elements that draw so many bytes."""
    lead, apart, length = rows_of(shape, size)
    rows = streams(key, lead, apart, numbers)
    out = [jax.ShapeDtypeStruct((*rows.shape[:-1], length), dtype)]
    (y,) = kernel(target, "...s -> ...n", rows, out=out, **attributes)
    return (explicit.reshape(y, *key.shape[:-1], *shape),)


def are_known(shape):
    """Whether sizes are numbers, and not symbols of an exported program."""
    return all(isinstance(n, int) for n in shape)


def _case(name, **kwargs):
    return Case(name, lambda rng: (rng.integers(0, 2**32, 4, dtype=np.uint32),), kwargs)


_random_bits = declare(
    "random_bits",
    family="random",
    category=OpCategory.RANDOM,
    public=random_bits,
    cases=(
        _case("a matrix", shape=(5, 41)),
        _case("a vector", shape=2048),
        _case("odd rows", shape=(2, 3, 1025)),
    ),
    dtypes=("uint32",),
    operands=("key",),
    constant=keys.CONSTANT,
    batched=as_they_are,
    cut="each device computes its rows",
    forward=Body(reference, _native),
    kernels={"forward": ("philox_bits",)},
)


# ---------------------------------------------------------------------------------------------------------------------
# The key type


@compiled()
def _seed(seed):
    """A seed of up to 64 bits is Philox's key."""
    low = seed.astype(jnp.uint32)
    high = jax.lax.shift_right_logical(seed, seed.dtype.type(32)).astype(jnp.uint32) if seed.dtype.itemsize > 4 else 0
    return jnp.stack([low, jnp.uint32(high), jnp.uint32(0), jnp.uint32(0)])


@compiled("shape")
def _split(key, shape):
    return _philox.split(key, tuple(shape))


@compiled()
def _fold_in(key, number):
    return _philox.fold_in(key, number.astype(jnp.uint32))


def _key_seed(seed):
    return _seed(seed)


def _key_split(key, shape):
    return _split(key, shape=tuple(shape))


def _key_fold_in(key, number):
    return _fold_in(key, jnp.asarray(number))


def _key_bits(key, bit_width, shape):
    return _drawn(key, shape=tuple(shape), dtype=f"uint{bit_width}")


philox = compat.define_prng_impl(
    key_shape=(4,),
    seed=_key_seed,
    split=_key_split,
    random_bits=_key_bits,
    fold_in=_key_fold_in,
    name="philox",
    tag="philox",
)
keys.add(philox, "philox", 4)
