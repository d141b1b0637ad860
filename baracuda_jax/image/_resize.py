"""Functions of `jax.image` with native kernels: the same names, signatures and semantics.

JAX multiplies by a matrix for each axis; here an axis is a table of taps."""

import functools
import math

import jax
import jax.image
import numpy as np

from .._core.checks import FLOATS
from .._mirror.mirror import is_array, is_integer, mirror
from ._interpolate import INTERPOLATE
from ._taps import SMOOTH, A, Taps, cubic_weight

SMALL = 1000 * float(np.finfo(np.float32).eps)  # sums of weights that JAX takes for 0
METHODS = {
    "nearest": "nearest", "lanczos3": "lanczos3", "lanczos5": "lanczos5",
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), "linear"),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), "cubic"),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch", "cubic_pytorch"), "cubic_pytorch"),
}  # fmt: skip
INFINITE = (
    "rows and columns with NaN or infinite elements, of which elements of weight 0 are not read; in JAX all are NaN"
)


def _lanczos(radius, distance):
    product = radius * np.sin(np.pi * distance) * np.sin(np.pi * distance / radius)
    near = distance <= 1e-3
    weight = np.where(near, 1, product / np.where(near, 1, np.pi**2 * distance**2))
    return np.where(distance > radius, 0, weight)


KERNELS = {  # radius, weights of distances
    "linear": (1, lambda d: np.maximum(1 - d, 0)),
    "lanczos3": (3, functools.partial(_lanczos, 3.0)),
    "lanczos5": (5, functools.partial(_lanczos, 5.0)),
    "cubic": (2, lambda d: cubic_weight(d, SMOOTH)),
    "cubic_pytorch": (2, lambda d: cubic_weight(d, A)),
}


@functools.cache
def _nearest(size, out):
    """In float32, as JAX computes positions."""
    at = (np.arange(out, dtype=np.float32) + np.float32(0.5)) * np.float32(size) / np.float32(out)
    index = np.clip(np.floor(at).astype(np.int32), 0, size - 1)
    return Taps(index[:, None], np.ones((out, 1)), size)


@functools.cache
def _taps(size, out, scale, translation, method, antialias):
    """JAX's weights: those that an image has outside are left out, or, of PyTorch's cubics, are those of its edges."""
    if method == "cubic_pytorch" and antialias:
        method = "cubic"
    has_edges = method == "cubic_pytorch"
    radius, kernel = KERNELS[method]
    step = 1 / scale
    wide = max(step, 1.0) if antialias else 1.0
    position = (np.arange(out) + 0.5) * step - translation * step - 0.5
    count = math.ceil(2 * radius * wide) + 1
    begin = np.clip(np.ceil(position - radius * wide), -count, size).astype(np.int64)
    index = begin[:, None] + np.arange(count)
    weight = kernel(np.abs(position[:, None] - index) / wide)
    inside = (index >= 0) & (index < size)
    if has_edges:
        inside = (index >= -radius) & (index < size + radius)
    weight = np.where(inside, weight, 0)
    total = weight.sum(1, keepdims=True)
    weight = np.where(np.abs(total) > SMALL, weight / np.where(total == 0, 1, total), 0)
    if not has_edges:
        weight = np.where(((position >= -0.5) & (position <= size - 0.5))[:, None], weight, 0)
    return Taps(np.clip(index, 0, size - 1).astype(np.int32), weight, size)


@functools.cache
def _same(size):
    return Taps(np.arange(size, dtype=np.int32)[:, None], np.ones((size, 1)), size)


def _shape_of(image, shape):
    """The output's shape as integers, or None where it is not one for the image."""
    if not isinstance(shape, tuple | list) or not all(is_integer(n) and n >= 0 for n in shape):
        return None
    sizes = tuple(map(int, shape))
    is_static = all(isinstance(n, int) for n in image.shape)
    return sizes if is_static and len(sizes) == image.ndim else None


def _method(method):
    """JAX's name of it, or None."""
    if isinstance(method, jax.image.ResizeMethod):
        method = method.name.lower()
    return METHODS.get(method) if isinstance(method, str) else None


def _resampled(image, tables):
    """`tables` are those of all axes, the last ones being resampled."""
    first = next((i for i, table in enumerate(tables) if not table.is_identity), None)
    return image if first is None else INTERPOLATE(image, tables=tuple(tables[first:]), channels_last=False)


@mirror(jax.image, jax.image.resize, "interpolate", differs=INFINITE)
def resize(image, shape, method, antialias=True, precision=jax.lax.Precision.HIGHEST):
    """As jax.image.resize; native for floats, all methods except "area"."""
    if not is_array(image, FLOATS) or not isinstance(antialias, bool):
        return NotImplemented
    sizes, name = _shape_of(image, shape), _method(method)
    if sizes is None or name is None or not all(image.shape) or not all(sizes):
        return NotImplemented
    table = lambda n, m: (
        _same(n) if n == m else _nearest(n, m) if name == "nearest" else _taps(n, m, m / n, 0.0, name, antialias)
    )
    return _resampled(jax.numpy.asarray(image), [table(*pair) for pair in zip(image.shape, sizes, strict=True)])


@mirror(jax.image, jax.image.scale_and_translate, "interpolate", differs=INFINITE)
def scale_and_translate(
    image, shape, spatial_dims, scale, translation, method, antialias=True, precision=jax.lax.Precision.HIGHEST
):
    """As jax.image.scale_and_translate; native for floats, NumPy's scales above 0 and translations, unless by "area"."""
    if not is_array(image, FLOATS) or not isinstance(antialias, bool):
        return NotImplemented
    sizes, name = _shape_of(image, shape), _method(method)
    if sizes is None or name in (None, "nearest") or not all(image.shape) or not all(sizes):
        return NotImplemented
    axes = _axes(image, spatial_dims)
    if axes is None or not all(_are_numbers(values, len(axes)) for values in (scale, translation)):
        return NotImplemented
    if not (scale > 0).all() or any(image.shape[i] != sizes[i] for i in range(image.ndim) if i not in axes):
        return NotImplemented
    tables = [_same(n) for n in image.shape]
    for i, by, to in zip(axes, scale, translation, strict=True):
        tables[i] = _taps(image.shape[i], sizes[i], float(by), float(to), name, antialias)
    return _resampled(jax.numpy.asarray(image), tables)


def _axes(image, axes):
    """Those that are meant, counted from the first; None where they are none, or come twice."""
    if not isinstance(axes, tuple | list) or not all(is_integer(i) and -image.ndim <= i < image.ndim for i in axes):
        return None
    found = [i % image.ndim for i in axes]
    return found if len(set(found)) == len(found) else None


def _are_numbers(values, count):
    """Whether they are NumPy's: an array on a device would have to be waited for."""
    return (
        type(values) is np.ndarray
        and values.shape == (count,)
        and values.dtype.kind == "f"
        and bool(np.isfinite(values).all())
    )
