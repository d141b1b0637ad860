"""The call of a kernel of the elementwise pattern, on operands of one rank that broadcast."""

import string

import jax
import jax.numpy as jnp
from jax import lax

from .._core.kernel import kernel
from .._core.partition import Partition
from .._core.wide import wide_dtype


def call(target, operands, dtypes, **attributes):
    """The results, of the operands' common shape, in the given dtypes.

    The dimensions before the first along which some operand broadcasts are batches, along which XLA may cut the call. An
    operand that broadcasts along all of these has none: it is left whole. XLA gathers arrays of batches alone, which a
    last dimension of size 1 prevents."""
    shape = jnp.broadcast_shapes(*(x.shape for x in operands))
    batches = _batches([x.shape for x in operands], shape)
    core = len(shape) - batches
    terms, cut = [], []
    for x in operands:
        whole = x.shape[:batches] != shape[:batches]
        x = lax.reshape(x, x.shape[batches:]) if whole else x
        terms.append(("" if whole else "...") + _letters(x.shape[-core:] if core else (), shape[batches:]))
        cut.append(x)
    terms += ["..." + _letters(shape[batches:], shape[batches:])] * len(dtypes)
    if not core:
        terms = [term + "u" for term in terms]
        cut = [lax.expand_dims(x, [x.ndim]) for x in cut]
        shape = (*shape, 1)
    dims = f"{', '.join(terms[: len(cut)])} -> {', '.join(terms[len(cut) :])}"
    out = [jax.ShapeDtypeStruct(shape, dtype) for dtype in dtypes]
    results = kernel(target, dims, *cut, out=out, **attributes)
    return [lax.squeeze(y, [y.ndim - 1]) for y in results] if not core else results


def _batches(shapes, shape):
    """The length of the longest prefix along which each operand has all dimensions, or only such of size 1."""
    count = 0
    while count < len(shape) and all(
        s[: count + 1] == shape[: count + 1] or set(s[: count + 1]) <= {1} for s in shapes
    ):  # fmt: skip
        count += 1
    return count


def _letters(dims, shape):
    """A small letter for a dimension, its capital for one of size 1 that broadcasts along it."""
    return "".join(
        small if n == m else small.upper() for small, n, m in zip(string.ascii_lowercase, dims, shape, strict=False)
    )


def _aligned(names, types, params):
    """Dimensions are cut together, except for those of size 1, along which an operand broadcasts or a cotangent was
    summed."""
    most = [max(sizes) for sizes in zip(*(x.shape for x in types), strict=True)]
    return [[f"dim{i}" if n == most[i] else f"one{i}" for i, n in enumerate(x.shape)] for x in types]


BY_DIMENSION = Partition(_aligned)


def gathered(cotangent, like):
    """Summed over the dimensions along which an operand broadcast."""
    axes = [d for d, (n, m) in enumerate(zip(cotangent.shape, like.shape, strict=True)) if n != m]
    return jnp.sum(cotangent, axis=axes, keepdims=True) if axes else cotangent


def weight_gradient(target, operands, weight):
    """A weight's cotangent, by a kernel of its own: the compiler leaves out what nobody asks for. Before a sum it is not
    rounded to a half."""
    shape = jnp.broadcast_shapes(*(x.shape for x in operands))
    is_summed = weight.shape != shape
    (each,) = call(target, operands, [wide_dtype(weight.dtype) if is_summed else weight.dtype])
    return gathered(each, weight).astype(weight.dtype)
