"""Products with packed weights: y = x W^T, W unpacked where it is used."""

import functools

import jax
import jax.numpy as jnp

from .._core import checks
from .._core.compiled import compiled
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.wide import wide, wide_dtype
from . import _kernels
from ._family import CONSTANT
from ._formats import FORMATS, unpacked

# Of x, that the kernel multiplies; of more, the weights are unpacked for a library. On CUDA tensor cores multiply 16-bit
# floats: of [8192, 4096] in Q4_K and 32 rows of x, warps have 8.5 million instructions, 9 us of an H200's, while to write
# the weights as floats and to multiply with them takes 54 us.
MOST_ROWS = 16
MOST_ROWS_HALF = 64
NUMERICS = ("exact", "q8")


def product_of(x, w, contracted):
    """Over a dimension of w [*batch, N, K], whose batches x has first, in what x is computed in."""
    batch = tuple(range(w.ndim - 2))
    dims = ((x.ndim - 1,), (w.ndim - 2 + contracted,)), (batch, batch)
    y = jax.lax.dot_general(x, w, dims, precision="highest", preferred_element_type=wide_dtype(x.dtype))
    return y.astype(x.dtype)


def per_matrix(x, data):
    """The number of rows of x for each matrix."""
    lead = x.shape[data.ndim - 2 : -1]
    count = 1
    for n in lead:
        count *= n
    return count


def is_many(rows, most):
    """Whether a library multiplies: also any number of rows, which an export leaves open."""
    return not isinstance(rows, int) or rows > most


def rounded_to_q8(x):
    """x as Q8_1 has it: of each 32 neighbors, integers of 8 bits times a scale in half precision."""
    blocks = wide(x).reshape(*x.shape[:-1], x.shape[-1] // 32, 32)
    d, q = q8_blocks(blocks)
    return (q * d.astype(blocks.dtype)).reshape(x.shape).astype(x.dtype)


def q8_blocks(blocks):
    """The scales, float16 [..., 1], and the integers as floats."""
    size = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True, initial=0)
    d = size / 127
    q = jnp.round(jnp.where(d == 0, 0, blocks / jnp.where(d == 0, 1, d)))
    return d.astype(jnp.float16), q


def _reference(x, data, scale, zero, *, format, numerics):
    x = rounded_to_q8(x) if numerics == "q8" else x
    w = unpacked(*_kernels.aligned(data, scale, zero), format=format, dtype=wide_dtype(x.dtype))
    return (product_of(wide(x), w, 1).astype(x.dtype),)


def _native(x, data, scale, zero, *, save=False, format, numerics):
    x = rounded_to_q8(x) if numerics == "q8" else x
    by_kernel = functools.partial(_kernels.multiply, format=format)
    by_library = lambda x, *packed: product_of(x, _kernels.unpack(*packed, format=format, dtype=x.dtype), 1)
    return (by_rows(x, _kernels.aligned(data, scale, zero), by_kernel, by_library),)


def by_rows(x, packed, by_kernel, by_library):
    """Of few rows of x for each matrix by the kernel, of more by the library."""
    count = per_matrix(x, packed[0])
    if not is_many(count, MOST_ROWS):
        return by_kernel(x, *packed)
    if is_many(count, MOST_ROWS_HALF) or wide_dtype(x.dtype) == x.dtype:
        return by_library(x, *packed)
    return jax.lax.platform_dependent(x, *packed, cuda=by_kernel, default=by_library)


def _backward_reference(data, scale, zero, dy, *, format, **_):
    w = unpacked(*_kernels.aligned(data, scale, zero), format=format, dtype=wide_dtype(dy.dtype))
    return (product_of(wide(dy), w, 0).astype(dy.dtype),)


def _backward_native(data, scale, zero, dy, *, format, **_):
    w = _kernels.unpack(*_kernels.aligned(data, scale, zero), format=format, dtype=dy.dtype)
    return (product_of(dy, w, 0),)


def _labels(names, types, params):
    """Rows of W are rows of the data and of the factors, and columns of y. Columns are cut into whole blocks and
    groups; what has one of these, or none, is not cut."""
    is_cut = _units(names, types, params)["k"] > 1
    labels = []
    for name, x in zip(names, types, strict=True):
        last = ("n",) if name == "y" else ("k" if is_cut and x.shape[-1] else f"whole_{name}",)
        last = last if name in ("x", "y") else ("n", *last)
        labels.append((*(f"batch{i}" for i in range(x.ndim - len(last))), *last))
    return labels


def _units(names, types, params):
    """The blocks of a row of W, or its groups."""
    of, types = FORMATS[params["format"]], dict(zip(names, types, strict=True))
    return {"k": types["scale"].shape[-1] if of.has_arrays else types["data"].shape[-1] // of.bytes}


_WHOLE = frozenset(f"whole_{name}" for name in ("x", "data", "scale", "zero"))


def by_count(call):
    """How many rows x has for a matrix decides who multiplies."""
    x, data = (call.operand("x") if call.kind == "forward" else call.operands[-1]), call.operand("data")
    return {"length": per_matrix(x, data), "inner": data.shape[-2]}


def declare_multiply(name, public, cases, targets):
    """An op that is linear in x [*batch, ..., K], of data [*batch, N, bytes of a row]. `targets` is what the names of its
    kernels end with, first those of the first case."""
    first, *others = targets
    return declare(
        name,
        family="packed",
        category=OpCategory.GEMM,
        public=public,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=("x", "data", "scale", "zero"),
        differentiable=("x",),
        constant=CONSTANT,
        residuals=("data", "scale", "zero"),
        linear=lambda params: {**params, "numerics": "exact"},
        shared={"data": 2, "scale": 2, "zero": 2},
        batched=as_they_are,
        cut=Partition(_labels, _WHOLE, units=_units),
        forward=Body(_reference, _native),
        backward=Body(_backward_reference, _backward_native),
        kernels={"forward": (f"packed_rows_{first}",), "backward": (f"unpack_{first}",)},
        sometimes=(f"unpack_{first}", *(f"{kind}_{of}" for of in others for kind in ("packed_rows", "unpack"))),
        regime=by_count,
        fused=True,
    )


def vectors(op, x, format, weights):
    """Floats [..., weights of a row]."""
    x = checks.floats(op, "x", x)
    if x.ndim < 1 or x.shape[-1] != weights:
        raise ValueError(
            f"{op}: x must have rows of {weights} elements, as the weights of format {format}, got shape {tuple(x.shape)}"
        )
    return x


def multiplied(call, op, x, packed, format, numerics, implementation, of_factors=None):
    """x [..., K] times the transpose of a matrix; `of_factors`, if given, makes a product that has their derivatives."""
    data = packed[0]
    of = FORMATS[format]
    checks.choice(op, "numerics", numerics, NUMERICS)
    x = vectors(op, x, of.name, data.shape[-1] // of.bytes * of.block)
    rows = x if x.ndim > 1 else as_row(x)
    product = functools.partial(call, format=of.name, numerics=numerics, implementation=implementation)
    y = of_factors(product, (of.name, numerics), rows, *packed) if of_factors else product(rows, *packed)
    return y if x.ndim > 1 else of_row(y)


def backward(call, op, dy, packed, format, implementation):
    dy = checks.floats(op, "dy", dy)
    if dy.ndim < 1 or dy.shape[-1] != packed[0].shape[-2]:
        raise ValueError(
            f"{op}: dy must have rows of {packed[0].shape[-2]} elements, one for each row of the data, got shape "
            f"{tuple(dy.shape)}"
        )
    rows = dy if dy.ndim > 1 else as_row(dy)
    dx = call.vjp(*packed, rows, format=format, numerics="exact", implementation=implementation)
    return dx if dy.ndim > 1 else of_row(dx)


@compiled()
def as_row(x):
    return x[None]


@compiled()
def of_row(y):
    return y[0]


def matrix(op, name, value):
    if value.ndim != 2:
        raise ValueError(f"{op}: {name} must have two dimensions, rows and their bytes; got shape {tuple(value.shape)}")
    return value
