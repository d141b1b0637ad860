"""The kernel calls that the native bodies are made of."""

import math

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.look_back import look_back_positions
from .._core.take_along import take_along


def call(target, *operands, axis, dtypes=None, **attributes):
    """Calls a scan, whose operands and results have one shape. `dtypes` are those of its results; by default it has one, of
    the last operand's dtype."""
    dtypes = dtypes or [operands[-1].dtype]
    workspace = _workspace(_flat(operands[-1], axis), dtypes[0])
    return _call(target, operands, axis, dtypes, workspace=workspace, **attributes)


def linear_scan(a, b, *, axis, reverse):
    return call("linear_scan", a, b, axis=axis, reverse=reverse)[0]


def take(x, index, axis):
    """x from where the index says, 0 where that is past the end."""
    flat = _flat(x, axis)
    return take_along(index.reshape(flat), x.reshape(flat)).reshape(x.shape)


def _flat(x, axis):
    """The shape [*batch, count, inner]."""
    return *x.shape[: axis + 1], math.prod(x.shape[axis + 1 :])


def _call(target, operands, axis, dtypes, **options):
    shape, flat = operands[-1].shape, _flat(operands[-1], axis)
    dims = " -> ".join(", ".join(["...nd"] * len(side)) for side in (operands, dtypes))
    out = [jax.ShapeDtypeStruct(flat, dtype) for dtype in dtypes]
    return [y.reshape(shape) for y in kernel(target, dims, *(x.reshape(flat) for x in operands), out=out, **options)]


def _workspace(shape, dtype):
    """Bytes for each batch of what the CUDA drivers tell their blocks of parts of slices, where these are few and long: of
    rows each state with as many bytes of marks, for parts of 1024 elements at least (ffi/patterns/look_back_cuda.h), of
    columns the totals of as many parts as make 264 blocks of 128 columns, of all (ffi/patterns/scan_columns_cuda.h). With
    fewer bytes there are fewer parts. A state has at most two values."""
    *batch, count, inner = shape
    rows = math.prod(batch)
    if not all(isinstance(size, int) for size in (rows, count, inner)) or not rows * inner:
        return 0  # in an export for any size
    state = 2 * max(jnp.dtype(dtype).itemsize, 4)
    if inner == 1:
        parts = -(-count // 1024)
        return look_back_positions(parts) * 2 * state + 256 if rows < 512 and parts > 1 else 0
    blocks = -(-rows * inner // 128)
    return -(-264 // blocks) * inner * state + 256 if blocks < 192 and count >= 64 else 0
