"""Maxima of windows whose distances are random."""

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit, keys
from .._core.case import Case
from .._core.compiled import compiled
from .._core.data_format import FORMATS, DataFormat
from .._core.op import Body, declare
from .._core.types import Implementation, Integers
from .._core.wide import wide, wide_dtype
from . import _maximum
from ._family import ERRORS, FAMILY, LAST, X, distinct, named, shape_of
from ._windows import Windows, cotangent, of_rank, pooled, spatial_size

RANKS = (2, 3)


class FractionalMaxPool(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, samples: ArrayLike, window: int | Integers, output_size: int | Integers | None = None,
        output_ratio: float | tuple[float, ...] | None = None, *, return_indices: bool = False,
        data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array | tuple[Array, ...]: ...  # fmt: skip


class FractionalMaxPoolBackward(Protocol):
    __name__: str

    def __call__(
        self, samples: ArrayLike, index: ArrayLike, dy: ArrayLike, size: int | Integers, window: int | Integers, *,
        data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_DOC = (
    """{rank}-dimensional fractional max pooling: maxima of windows at random distances.

    Formula:
        y[o] = the maximum of x[b(o) + k] over k = 0, ..., window - 1 along each spatial axis; index[o] is that of the
        first maximum, row by row. With n the size of x, m that of y, u the sample of the plane and the axis, and a = (n
        - window) / (m - 1), b(o) = floor((o + u) a) - floor(u a), and n - window for the last window. dx[i] = the sum
        of dy[o] over the windows with index[o] = i.

    Args:"""
    + X
    + """
        samples: floats in [0, 1), of shape [N, C, {rank}]: one for each plane and spatial axis, in the order of the
            axes; without N as x. Or a PRNG key of threefry2x32, typed or uint32 [2], of which they are drawn. They have
            no gradient.
        window: static window size, an integer or one for each spatial axis.
        output_size: static size of the result, an integer or one for each spatial axis.
        output_ratio: instead of output_size, static numbers in (0, 1), of which the size of the result is the product
            with that of x, rounded down.
        return_indices: also return the index of each maximum in its plane of x, the spatial axes as one."""
    + LAST
    + """

    Returns:
        The pooled array, of x's dtype; with return_indices also an int32 array of its shape.
"""
    + ERRORS
    + """

    Precision: exact. Where windows begin is computed in the samples' dtype, of float16 and bfloat16 in float32. The
    first NaN of a
        window is its maximum. Of equal elements the first one has the index and the gradient. Each element of the
        gradient adds up dy in a fixed order, of float16 and bfloat16 in float32: the same bits every time.

    Source: torch.nn.functional.fractional_max_pool{rank}d; B. Graham, Fractional Max-Pooling, arXiv:1412.6071.
    """
)
_BACKWARD_DOC = """The gradient of `fractional_max_pool{rank}d`: each element of dx is the sum of dy over the windows
whose index is
    that element.

    Args:
        samples: floats as for `fractional_max_pool{rank}d`, not a key.
        index: int32, the indices that it returns with return_indices.
        dy: the cotangent of its result, of index's shape.
        size: static integers, the spatial size of x; one integer stands for all axes.
        window, data_format, implementation: as for `fractional_max_pool{rank}d`.

    Returns:
        The cotangent of x, of dy's dtype.
    """


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _windows(op, size, is_last, window, output_size):
    rank, ones, none = len(size), (1,) * len(size), (0,) * len(size)
    window = checks.integers(op, "window", window, rank, 1)
    out = checks.integers(op, "output_size", output_size, rank, 1)
    if any(k > n for k, n in zip(window, size, strict=True)):
        raise ValueError(f"{op}: window must fit into x's spatial shape {size}, got {window}")
    return Windows(size, out, window, ones, ones, none, none, "listed", is_last)


def _output_size(op, size, output_size, ratio):
    if (output_size is None) == (ratio is None):
        raise ValueError(f"{op}: either output_size or output_ratio must be given, got {output_size} and {ratio}")
    if ratio is None:
        return output_size
    ratios = tuple(ratio) if isinstance(ratio, tuple | list | np.ndarray) else (ratio,) * len(size)
    if len(ratios) != len(size) or not all(map(checks.is_number, ratios)):
        raise TypeError(f"{op}: output_ratio must be a static number or {len(size)} numbers, got {ratio!r}")
    if not all(0 < r < 1 for r in ratios):
        raise ValueError(f"{op}: output_ratio must be greater than 0 and less than 1, got {ratio!r}")
    return tuple(int(n * r) for n, r in zip(size, ratios, strict=True))


def _planes(x, rank, is_last):
    """The batch and the channels."""
    return (*x.shape[: x.ndim - rank - 1], x.shape[-1 if is_last else -1 - rank])


def _samples(op, samples, x, rank, is_last):
    shape = (*_planes(x, rank, is_last), rank)
    given = samples if hasattr(samples, "dtype") else checks.array(op, "samples", samples)
    if jnp.issubdtype(given.dtype, jax.dtypes.prng_key) or given.dtype == jnp.uint32:
        return _drawn(keys.typed(op, "samples", given), shape=shape, dtype=wide_dtype(x.dtype))
    samples = checks.floats(op, "samples", given)
    checks.shape(op, "samples", samples, shape, "one for each plane of x and spatial axis")
    return samples


@compiled("shape", "dtype")
def _drawn(key, *, shape, dtype):
    return jax.random.uniform(key, shape, dtype)


# ---------------------------------------------------------------------------------------------------------------------
# Bodies


def _begins(samples, windows):
    """Where the windows of each axis begin, [..., m] of each plane."""
    samples = wide(jax.lax.stop_gradient(explicit.whole(samples, [samples.ndim - 1])))
    samples = jnp.where(samples >= 0, jnp.minimum(samples, 1), 0)  # in x, whatever they are
    found = []
    for i, (n, m, k) in enumerate(zip(windows.size, windows.out, windows.window, strict=True)):
        u = samples[..., i : i + 1]
        a = jnp.asarray(n - k, u.dtype) / jnp.asarray(max(m - 1, 1), u.dtype)
        o = of_rank(np.arange(m), u.ndim)
        begin = ((o.astype(u.dtype) + u) * a).astype(jnp.int32) - (u * a).astype(jnp.int32)
        found.append(jnp.where(o == m - 1, n - k, jnp.clip(begin, 0, n - k)))
    return found


def _backward_native(samples, index, dy, windows):
    return _maximum.backward_native(index, dy, _begins(samples, windows), windows)


FORWARD = Body(
    lambda x, samples, *, save, windows: _maximum.reference(x, _begins(samples, windows), windows, save),
    lambda x, samples, *, save, windows: _maximum.native(x, _begins(samples, windows), windows, save),
)
TANGENT = _maximum.TANGENT.map(lambda fun: lambda samples, index, t, **params: fun(index, t, **params))
BACKWARD = Body(
    lambda samples, index, dy, *, windows: (_maximum.backward_reference(index, dy, windows),),
    lambda samples, index, dy, *, windows: _backward_native(samples, index, dy, windows),
)


# ---------------------------------------------------------------------------------------------------------------------
# The public functions


def _forward(rank) -> FractionalMaxPool:
    name = f"fractional_max_pool{rank}d"

    def fun(
        x: ArrayLike,
        samples: ArrayLike,
        window: int | Integers,
        output_size: int | Integers | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        *,
        return_indices: bool = False,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array | tuple[Array, ...]:
        x, size, is_last = pooled(name, x, rank, data_format)
        windows = _windows(name, size, is_last, window, _output_size(name, size, output_size, output_ratio))
        samples = _samples(name, samples, x, rank, is_last)
        save = checks.flag(name, "return_indices", return_indices)
        found = _OPS[rank](x, samples, windows=windows, save=save, implementation=implementation)
        return _maximum.with_index(found, save)

    return named(fun, name, rank, _DOC)


def _backward(rank) -> FractionalMaxPoolBackward:
    name = f"fractional_max_pool{rank}d_backward"

    def fun(
        samples: ArrayLike,
        index: ArrayLike,
        dy: ArrayLike,
        size: int | Integers,
        window: int | Integers,
        *,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        dy, size, is_last = cotangent(name, dy, rank, size, data_format)
        windows = _windows(name, size, is_last, window, spatial_size(dy.shape, rank, is_last))
        index = _maximum.narrow_index(name, index, dy, windows)
        samples = checks.floats(name, "samples", samples)
        checks.shape(
            name, "samples", samples, (*_planes(dy, rank, is_last), rank), "one for each plane and spatial axis"
        )
        return _OPS[rank].vjp(samples, index, dy, windows=windows, implementation=implementation)

    return named(fun, name, rank, _BACKWARD_DOC)


fractional_max_pool2d, fractional_max_pool3d = map(_forward, RANKS)
fractional_max_pool2d_backward, fractional_max_pool3d_backward = map(_backward, RANKS)


def _case(name, rank, is_last=False, **kwargs):
    kwargs |= dict(data_format=FORMATS[rank][1]) if is_last else {}
    # Multiples of 1/16 that all dtypes have, and whose products are far from whole numbers.
    draw = lambda rng: (distinct(rng, shape_of(rank, is_last)), rng.integers(0, 16, (2, 3, rank)) / 16 + 1 / 32)
    return Case(name, draw, kwargs)


def _cases(rank):
    return (
        _case("size", rank, window=2, output_size=(5, 4, 3)[:rank]),
        _case("ratio", rank, window=(3, 2, 2)[:rank], output_ratio=0.6),
        _case("one", rank, window=3, output_size=1),
        _case("last", rank, is_last=True, window=2, output_size=4),
    )


_OPS = {
    rank: declare(
        f"fractional_max_pool{rank}d",
        **FAMILY,
        **_maximum.DERIVATIVES | dict(residuals=("samples", "index"), tangent=TANGENT, backward=BACKWARD),
        public=public,
        cases=_cases(rank),
        operands=("x", "samples"),
        constant={"samples": "they choose elements"},
        forward=FORWARD,
    )
    for rank, public in zip(RANKS, (fractional_max_pool2d, fractional_max_pool3d), strict=True)
}
