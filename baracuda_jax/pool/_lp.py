"""LP pooling: each window of the input is reduced to its p-norm.

Data flow: forward and tangent, each output element reads its window; backward, each input element reads the windows that
hold it, so that every element is written once. Pattern: window.

Arrays are [..., *spatial], or [..., *spatial, channels] where channels_last; all dimensions before the spatial ones are
batches.
"""

import functools
import math
import numbers
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.data_format import FORMATS, image
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation, Integers
from .._core.wide import wide, wide_dtype, with_unrounded

_DOC = """{rank}-dimensional LP pooling: the p-norm of each window.

    Formula:
        y[o] = (sum over the elements i of window o of |x[i]|^p)^(1/p), the maximum of |x[i]| for p = inf,
        dx[i] = sum over the windows o that hold i of dy[o] sign(x[i]) (|x[i]| / y[o])^(p - 1), 0 where x[i] or y[o] is 0;
        for p = inf, the first element with |x[i]| = y[o] takes dy[o].
        Window o begins at o * strides. There is no padding.

    Args:
        x: floats {format}, or {last} with data_format="{last}"; the batch dimension N may be left out.
        norm_type: static p > 0; inf is the maximum.
        window: static window size, an integer or one for each spatial dimension.
        strides: static step between windows; by default the window size.
        ceil_mode: whether the number of windows, (size - window) / strides + 1, is rounded up instead of down. The last
            window then holds only the elements that are in the input; it is dropped if it would hold none.
        data_format: "{format}" or "{last}".
        return_residuals: also return y before it is rounded, in float32 for float16 and bfloat16 and else y itself, which
            the backward function reads.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        The pooled array, of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 compute in float32, and so does the gradient, from y before it is rounded. |x|^p is not
    scaled: it over- and underflows where the dtype computed in does.

    Source: torch.nn.functional.lp_pool{rank}d, which sums x^p without the absolute value and rescales windows that are cut
    off; Gulcehre et al., Learned-Norm Pooling for Deep Feedforward and Recurrent Neural Networks (2014).
    """

_BACKWARD_DOC = """The gradient of `lp_pool{rank}d`: see its formula for dx.

    Args:
        x: the input of `lp_pool{rank}d`.
        y: its result before that is rounded, the second one with return_residuals: float32 for float16 and bfloat16, else
            the result itself. For further derivatives y is taken to be a function of x.
        dy: the cotangent of the result, of x's dtype.
        norm_type, window, strides, ceil_mode, data_format, implementation: as for `lp_pool{rank}d`.

    Returns:
        The cotangent of x.
    """


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _arguments(op, rank, x, norm_type, window, strides, ceil_mode, data_format):
    x, channels_last = image(op, x, rank, data_format)
    if isinstance(norm_type, jax.core.Tracer) or not isinstance(norm_type, numbers.Real | np.number):
        raise TypeError(f"{op}: norm_type must be a static number, got {norm_type!r}")
    if not norm_type > 0:
        raise ValueError(f"{op}: norm_type must be greater than 0, got {norm_type!r}")
    params = {
        "norm_type": float(norm_type),
        "window": checks.integers(op, "window", window, rank, 1),
        "strides": checks.integers(op, "strides", window if strides is None else strides, rank, 1),
        "ceil_mode": checks.flag(op, "ceil_mode", ceil_mode),
        "channels_last": channels_last,
    }
    spatial = _spatial(x.shape, **params)
    if any(k > n for k, n in zip(params["window"], spatial, strict=True)):
        raise ValueError(f"{op}: window must fit into x's spatial shape {spatial}, got {params['window']}")
    return x, params


def _spatial(shape, *, window, channels_last, **_):
    end = len(shape) - channels_last
    return shape[end - len(window) : end]


def _outputs(size, window, stride, ceil_mode):
    """The number of windows along one dimension, as PyTorch counts them."""
    if not ceil_mode:
        return (size - window) // stride + 1
    count = -((window - size) // stride) + 1
    return count if (count - 1) * stride < size else count - 1


def _output_shape(shape, *, window, strides, ceil_mode, channels_last, **_):
    spatial = _spatial(shape, window=window, channels_last=channels_last)
    out = tuple(_outputs(n, k, s, ceil_mode) for n, k, s in zip(spatial, window, strides, strict=True))
    begin = len(shape) - channels_last - len(window)
    return (*shape[:begin], *out, *shape[begin + len(window) :])


# ---------------------------------------------------------------------------------------------------------------------
# References: what is computed


def _abs(x):
    """|x| with slope 0 at 0."""
    return jnp.where(x < 0, -x, jnp.where(x == 0, 0, x))


def _power(x, p):
    """|x|^p, smooth at 0 where it is; where not, its derivatives there are 0."""
    if p == 1:
        return _abs(x)
    if p == 2:
        return x * x
    if p == 3:
        return x * x * _abs(x)
    return jnp.where(x == 0, 0, jnp.abs(jnp.where(x == 0, 1, x)) ** p)


def _root(s, p):
    if p == 1:
        return s
    safe = jnp.where(s == 0, 1, s)
    root = jnp.sqrt if p == 2 else jnp.cbrt if p == 3 else lambda s: s ** (1 / p)
    return jnp.where(s == 0, 0, root(safe))


def _reference(x, *, norm_type, window, strides, ceil_mode, channels_last):
    shape = dict(window=window, strides=strides, ceil_mode=ceil_mode, channels_last=channels_last)
    if math.isinf(norm_type):
        y = _maximum(wide(x), **shape)
        return y.astype(x.dtype), y
    out = _output_shape(x.shape, **shape)
    begin = x.ndim - channels_last - len(window)
    full = lambda values: (1,) * begin + values + (1,) * channels_last
    cut = [(o - 1) * s + k - n for o, s, k, n in zip(out, full(strides), full(window), x.shape, strict=True)]
    padding = [(0, max(c, 0) if begin <= i < begin + len(window) else 0) for i, c in enumerate(cut)]
    powers = _power(wide(x), norm_type)
    total = lax.reduce_window(powers, np.zeros((), powers.dtype), lax.add, full(window), full(strides), padding)
    y = _root(total, norm_type)
    return y.astype(x.dtype), y


def _maximum(x, *, window, strides, ceil_mode, channels_last):
    """The largest |x| of each window; the first such element has the gradient."""
    out = _spatial(
        _output_shape(x.shape, window=window, strides=strides, ceil_mode=ceil_mode, channels_last=channels_last),
        window=window, channels_last=channels_last,
    )  # fmt: skip
    begin = x.ndim - channels_last - len(window)
    size = _abs(x)
    for i, (n, k, s) in enumerate(zip(out, window, strides, strict=True)):
        axis = begin + i
        elements = np.arange(n)[:, None] * s + np.arange(k)
        inside = elements < x.shape[axis]
        taken = jnp.take(size, jnp.asarray(np.where(inside, elements, 0)), axis=axis)  # [..., windows, elements, ...]
        inside = inside.reshape((n, k) + (1,) * (taken.ndim - axis - 2))
        size = jnp.moveaxis(jnp.where(inside, taken, -1), axis + 1, -1)
    elements = size.reshape(*size.shape[: x.ndim], math.prod(window))
    first = jnp.argmax(elements, axis=-1, keepdims=True)
    return jnp.take_along_axis(elements, first, axis=-1)[..., 0]


def _tangent_reference(x, y, t, **params):
    return jax.jvp(lambda x: _reference(x, **params)[:1], (x,), (t,))[1]


def _backward_reference(x, y, dy, **params):
    return jax.vjp(lambda x: _reference(x, **params)[0], x)[1](dy)


# ---------------------------------------------------------------------------------------------------------------------
# Kernel calls


def _call(target, shape, dtypes, operands, shapes, *, norm_type, window, strides, channels_last, **_):
    """`shapes` says of each array whether it has the input's elements ("x") or the windows ("y"); the last is that of all
    results."""
    channel = "c" if channels_last else ""
    dims = {"x": f"...{'dhw'[3 - len(window) :]}{channel}", "y": f"...{'pqr'[3 - len(window) :]}{channel}"}
    *of_operands, of_result = (dims[s] for s in shapes)
    return kernel(
        target, f"{', '.join(of_operands)} -> {', '.join([of_result] * len(dtypes))}", *operands,
        out=[jax.ShapeDtypeStruct(shape, dtype) for dtype in dtypes],
        norm_type=norm_type, window=window, strides=strides, channels_last=channels_last,
    )  # fmt: skip


def _native(x, *, save, **params):
    call = lambda dtypes: _call("lp_pool", _output_shape(x.shape, **params), dtypes, [x], "xy", **params)
    return with_unrounded(call, x.dtype, wide_dtype(x.dtype), save)


def _tangent_native(x, y, t, **params):
    return _call("lp_pool_tangent", y.shape, [t.dtype], [x, y, t], "xyxy", **params)


def _backward_native(x, y, dy, **params):
    return _call("lp_pool_backward", x.shape, [x.dtype], [x, y, dy], "xyyx", **params)


# ---------------------------------------------------------------------------------------------------------------------
# The public functions, and one op for each number of spatial dimensions


def _document(rank, template) -> Decorator:
    return template.format(rank=rank, format=FORMATS[rank][0], last=FORMATS[rank][1])


def _lp_pool(rank, x, norm_type, window, strides, ceil_mode, data_format, return_residuals, implementation):
    op = f"lp_pool{rank}d"
    x, params = _arguments(op, rank, x, norm_type, window, strides, ceil_mode, data_format)
    save = checks.flag(op, "return_residuals", return_residuals)
    return _OPS[rank](x, **params, save=save, implementation=implementation)


def _lp_pool_backward(rank, x, y, dy, norm_type, window, strides, ceil_mode, data_format, implementation):
    op = f"lp_pool{rank}d_backward"
    x, params = _arguments(op, rank, x, norm_type, window, strides, ceil_mode, data_format)
    checks.saved_dtype(op, "y", y, wide_dtype(x.dtype), "x", x)
    checks.same_dtype(op, "dy", dy, "x", x)
    for name, value in (("y", y), ("dy", dy)):
        checks.shape(op, name, value, _output_shape(x.shape, **params), "that of the pooled x")
    return _OPS[rank].vjp(x, y, dy, **params, implementation=implementation)


@api
def lp_pool1d(
    x: ArrayLike,
    norm_type: float,
    window: int | Integers,
    strides: int | Integers | None = None,
    *,
    ceil_mode: bool = False,
    data_format: Literal["NCL", "NLC"] = "NCL",
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    return _lp_pool(1, x, norm_type, window, strides, ceil_mode, data_format, return_residuals, implementation)


@api
def lp_pool2d(
    x: ArrayLike,
    norm_type: float,
    window: int | Integers,
    strides: int | Integers | None = None,
    *,
    ceil_mode: bool = False,
    data_format: Literal["NCHW", "NHWC"] = "NCHW",
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    return _lp_pool(2, x, norm_type, window, strides, ceil_mode, data_format, return_residuals, implementation)


@api
def lp_pool3d(
    x: ArrayLike,
    norm_type: float,
    window: int | Integers,
    strides: int | Integers | None = None,
    *,
    ceil_mode: bool = False,
    data_format: Literal["NCDHW", "NDHWC"] = "NCDHW",
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    return _lp_pool(3, x, norm_type, window, strides, ceil_mode, data_format, return_residuals, implementation)


@api
def lp_pool1d_backward(
    x: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    norm_type: float,
    window: int | Integers,
    strides: int | Integers | None = None,
    *,
    ceil_mode: bool = False,
    data_format: Literal["NCL", "NLC"] = "NCL",
    implementation: Implementation = None,
) -> Array:
    return _lp_pool_backward(1, x, y, dy, norm_type, window, strides, ceil_mode, data_format, implementation)


@api
def lp_pool2d_backward(
    x: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    norm_type: float,
    window: int | Integers,
    strides: int | Integers | None = None,
    *,
    ceil_mode: bool = False,
    data_format: Literal["NCHW", "NHWC"] = "NCHW",
    implementation: Implementation = None,
) -> Array:
    return _lp_pool_backward(2, x, y, dy, norm_type, window, strides, ceil_mode, data_format, implementation)


@api
def lp_pool3d_backward(
    x: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    norm_type: float,
    window: int | Integers,
    strides: int | Integers | None = None,
    *,
    ceil_mode: bool = False,
    data_format: Literal["NCDHW", "NDHWC"] = "NCDHW",
    implementation: Implementation = None,
) -> Array:
    return _lp_pool_backward(3, x, y, dy, norm_type, window, strides, ceil_mode, data_format, implementation)


_PUBLIC = {1: lp_pool1d, 2: lp_pool2d, 3: lp_pool3d}
for _rank, _fun in _PUBLIC.items():
    _fun.__doc__ = _document(_rank, _DOC)
for _rank, _fun in {1: lp_pool1d_backward, 2: lp_pool2d_backward, 3: lp_pool3d_backward}.items():
    _fun.__doc__ = _document(_rank, _BACKWARD_DOC)


def _cases(rank):
    sizes = (9, 8, 7)[:rank]

    def draw(rng, channels_last=False):
        # No two magnitudes alike and none near 0, so that finite differences meet no kink.
        shape = (2, *sizes, 3) if channels_last else (2, 3, *sizes)
        magnitude = rng.permutation(np.linspace(0.3, 2, math.prod(shape))).reshape(shape)
        return (magnitude * rng.choice([-1.0, 1.0], shape),)

    last = FORMATS[rank][1]
    return (
        Case("p2", draw, dict(norm_type=2, window=2)),
        Case("p3 overlapping", draw, dict(norm_type=3, window=3, strides=2)),
        Case("p1 ceil", draw, dict(norm_type=1, window=3, strides=2, ceil_mode=True)),
        Case("p2.5 apart", draw, dict(norm_type=2.5, window=2, strides=3, ceil_mode=True)),
        Case("inf", draw, dict(norm_type=math.inf, window=3, strides=1)),
        Case("p3 last", functools.partial(draw, channels_last=True),
             dict(norm_type=3, window=3, strides=2, data_format=last)),
        Case("p1.5 last", functools.partial(draw, channels_last=True),
             dict(norm_type=1.5, window=2, strides=1, data_format=last)),
    )  # fmt: skip


_OPS = {
    rank: declare(
        f"lp_pool{rank}d",
        family="pool",
        category=OpCategory.POOLING,
        public=public,
        dtypes=checks.FLOATS,
        cases=_cases(rank),
        operands=("x",),
        differentiable=("x",),
        results=("y", "wide_y"),
        residuals=("x", "wide_y"),
        forward=Body(_reference, _native),
        tangent=Body(_tangent_reference, _tangent_native),
        backward=Body(_backward_reference, _backward_native),
        batched=as_they_are,
        cut="windows reach over the borders of shards",
        kernels={"forward": ("lp_pool",), "tangent": ("lp_pool_tangent",), "backward": ("lp_pool_backward",)},
    )
    for rank, public in _PUBLIC.items()
}
