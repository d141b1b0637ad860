"""The kernel calls that the native bodies are made of."""

import math

import jax
import jax.numpy as jnp

from .._core.kernel import kernel


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
    return _call("take_along", [index, x], axis, [x.dtype])[0]


def _flat(x, axis):
    """The shape [*batch, count, inner]."""
    return *x.shape[: axis + 1], math.prod(x.shape[axis + 1 :])


def _call(target, operands, axis, dtypes, **options):
    shape, flat = operands[-1].shape, _flat(operands[-1], axis)
    dims = " -> ".join(", ".join(["...nd"] * len(side)) for side in (operands, dtypes))
    out = [jax.ShapeDtypeStruct(flat, dtype) for dtype in dtypes]
    return [y.reshape(shape) for y in kernel(target, dims, *(x.reshape(flat) for x in operands), out=out, **options)]


def _workspace(shape, dtype):
    """Bytes of the totals that the CUDA drivers form where lines are few and long: for each batch, of as many parts of each
    line as make 2048 parts of rows, or 264 blocks of 128 columns, of all (ffi/patterns/scan_cuda.h). With fewer bytes there
    are fewer parts. A total has at most two values."""
    *batch, count, inner = shape
    rows = math.prod(batch)
    if not all(isinstance(size, int) for size in (rows, count, inner)) or not rows * inner:
        return 0  # in an export for any size
    lines, few, most, shortest = (rows, 512, 2048, 4096) if inner == 1 else (-(-rows * inner // 128), 192, 264, 64)
    parts = -(-most // lines) if lines < few and count >= shortest else 0
    return parts * inner * 2 * max(jnp.dtype(dtype).itemsize, 4) + (256 if parts else 0)
