"""Convolutions of sequences, images and volumes, as deep learning has them: cross-correlations with bias and groups.

XLA calls a library for them. `conv_2d_direct` is shifted products and their sum, except on CUDA."""

import functools
import itertools
import operator
from typing import Protocol

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.data_format import FORMATS, DataFormat
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from .._core.wide import wide, wide_dtype
from ._arguments import Padding, check_window, grouped, image, pairs, parameters
from ._library import convolution


class Convolution(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, strides: int | Integers = 1,
        padding: Padding = 0, *, dilation: int | Integers = 1, groups: int = 1, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_DOC = """{summary}

    Formula:
        y[n, o, i] = bias[o] + sum over c and k of weight[o, c, k] x[n, c, i strides + k dilation - padding], with x = 0
        outside; k counts the elements of a window and i the windows, along each spatial axis. The sum is over the channels
        c of o's group. dx[n, c, j] is the sum of weight[o, c, k] dy[n, o, i] over all o, i and k that read x[n, c, j];
        dweight[o, c, k] that of x[n, c, i strides + k dilation - padding] dy[n, o, i] over n and i; dbias[o] that of dy.

    Args:
        x: floats {format}, or {last} with data_format="{last}"; the batch dimension N may be left out.
        weight: array of x's dtype, {weight}.
        bias: array [Cout] of x's dtype; None for 0.
        strides: static step between windows, an integer or one for each spatial axis.
        padding: zeros around x: an integer, one for each spatial axis, a pair (before, after) for each, "valid" for none, or
            "same" for as many as give x's size with strides 1, the odd one after.
        dilation: static distance between the elements of a window, an integer or one for each spatial axis.{groups}
        data_format: "{format}" or "{last}".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's dtype and form, with Cout channels and, along each spatial axis, (size + padding before and after -
        dilation (window - 1) - 1) // strides + 1 elements.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where no window fits.

    Precision: float16 and bfloat16 are multiplied and summed in float32, and rounded once, after the bias; by cuDNN
        before it too. On GPUs `jax.default_matmul_precision` says whether float32 may be computed with fewer bits.

    Source: {source}.
    """
_GROUPS = """
        groups: static number of groups: output channels of a group read the input channels of that group."""


def windows(op, x, weight, strides, padding, dilation):
    """The parameters of a convolution, checked."""
    window, rank = weight.shape[2:], x.ndim - 2
    strides = checks.integers(op, "strides", strides, rank, 1)
    dilation = checks.integers(op, "dilation", dilation, rank, 1)
    padding = pairs(op, padding, window, strides, dilation)
    check_window(op, x, window, padding, dilation)
    return dict(strides=strides, padding=padding, dilation=dilation)


def finished(y, bias, dtype):
    """The bias is added before the result is rounded; to what cuDNN has rounded, in 16 bits, where nothing wider is written
    for the bias's gradient."""
    if bias is None:
        return y.astype(dtype)
    exact = lambda y, bias: (y + _along(y, bias)).astype(dtype)
    if y.dtype == dtype:
        return exact(y, bias)
    on_cuda = lambda y, bias: y.astype(dtype) + jnp.broadcast_to(_along(y, bias), y.shape).astype(dtype)
    return lax.platform_dependent(y, bias, cuda=on_cuda, default=exact)


def _along(y, bias):
    return jnp.expand_dims(wide(bias), (0, *range(2, y.ndim)))


@compiled("strides", "padding", "dilation", "groups")
def _correlated(x, weight, bias, *, strides, padding, dilation, groups):
    y = convolution(x, weight, strides, padding, rhs_dilation=dilation, feature_group_count=groups)
    return finished(y, bias, x.dtype)


def _shifted(x, weight, *, strides, padding, dilation):
    """(the elements of x that element k of each window reads, weight[:, :, k]) for each k"""
    none = ((0, 0, 0),) * 2
    x = lax.pad(x, jnp.zeros((), x.dtype), (*none, *((*p, 0) for p in padding)))
    window = weight.shape[2:]
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], window, strides, dilation, strict=True)]
    for k in itertools.product(*map(range, window)):
        begin = [i * d for i, d in zip(k, dilation, strict=True)]
        end = [b + (count - 1) * s + 1 for b, count, s in zip(begin, counts, strides, strict=True)]
        yield lax.slice(x, (0, 0, *begin), (*x.shape[:2], *end), (1, 1, *strides)), weight[(..., *k)]


def _summed(products, weight, bias, dtype):
    """The sum of arrays [N, groups, Cout / groups, *spatial], and the bias."""
    total = functools.reduce(operator.add, products)
    return finished(explicit.reshape(total, total.shape[0], weight.shape[0], *total.shape[3:]), bias, dtype)


@compiled("strides", "padding", "dilation", "groups")
def _direct(x, weight, bias, *, groups, **how):
    """On a GPU XLA's own choice, as `conv2d` has."""
    on_cuda = functools.partial(_correlated, groups=groups, **how)
    return lax.platform_dependent(
        x, weight, bias, cuda=on_cuda, default=functools.partial(_by_products, groups=groups, **how)
    )


def _by_products(x, weight, bias, *, groups, **how):
    def product(part, w):
        part = explicit.reshape(part, part.shape[0], groups, part.shape[1] // groups, *part.shape[2:])
        wide = wide_dtype(x.dtype)
        return jnp.einsum("ngc...,goc->ngo...", part, grouped(w, groups), preferred_element_type=wide)

    return _summed(itertools.starmap(product, _shifted(x, weight, **how)), weight, bias, x.dtype)


def _case(name, shape, weight, **kwargs):
    groups = kwargs.get("groups", 1)
    outputs = weight[1] * groups if kwargs.pop("is_transposed", False) else weight[0]
    draw = lambda rng: (rng.standard_normal(shape), rng.standard_normal(weight), rng.standard_normal(outputs))
    return Case(name, draw, kwargs)


def declared(fun, name, library, doc, cases):
    """A public function of x, weight and bias, as an op of the family."""
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc
    public = facade_api(library)(fun)
    facade(
        name, family="convolution", category=OpCategory.CONVOLUTION, public=public, cases=cases, dtypes=checks.FLOATS,
        operands=("x", "weight", "bias"), differentiable=("x", "weight", "bias"),
    )  # fmt: skip
    return public


def _convolution(name, rank, library, body, source, summary) -> Convolution:
    def fun(
        x: ArrayLike,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        strides: int | Integers = 1,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        groups: int = 1,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        x, back = image(name, x, rank, data_format)
        weight, bias, groups = parameters(name, x, weight, bias, groups)
        how = windows(name, x, weight, strides, padding, dilation)
        return back(body(x, weight, bias, groups=groups, **how))

    sizes, two = (7, 6, 5)[:rank], (2,) * rank
    first, last = FORMATS[rank]
    doc = _DOC.format(
        summary=summary, format=first, last=last, weight="[Cout, Cin / groups, *window]", groups=_GROUPS, source=source
    )
    more = dict(strides=2, padding=((2, 1), (0, 2), (1, 0))[:rank], dilation=(2, 1, 1)[:rank])
    cases = (
        _case("one group", (2, 3, *sizes), (4, 3, *two), padding=1),
        _case("groups", (2, 4, *sizes), (6, 2, *(3, 2, 1)[:rank]), groups=2, **more),
        _case("channels last", (2, *sizes, 3), (2, 3, *(3, 2, 2)[:rank]), padding="same", data_format=last),
    )
    return declared(fun, name, library, doc, cases)


conv1d, conv2d, conv3d = (
    _convolution(
        f"conv{rank}d", rank, "cudnn", _correlated,
        f"torch.nn.functional.conv{rank}d; jax.lax.conv_general_dilated",
        f"Convolution of {what}, without turning the window over: a cross-correlation.",
    )
    for rank, what in ((1, "sequences"), (2, "images"), (3, "volumes"))
)  # fmt: skip
conv_2d_direct = _convolution(
    "conv_2d_direct", 2, "cudnn", _direct, "the definition of torch.nn.functional.conv2d",
    "`conv2d` as its definition says it: for each element of the window a product of matrices, and their sum.",
)  # fmt: skip
