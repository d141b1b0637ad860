"""Transposed convolutions: a window is written around each element of x, and windows that overlap are added.

Three ways give the same sums. One is a convolution of x with strides - 1 zeros between its elements; the gradient of a
convolution in its input, as JAX has it, is the same program, and cuDNN has a kernel for it: CUDA takes that
(`_gradients.py`). Elsewhere a third is taken: the elements of y with the same position modulo the strides are a convolution
of x, with strides 1, by every strides-th element of the window. All of them together are one convolution with so many times
the channels, whose result is then rearranged. No product with zeros is computed, except where the window is filled up to a
multiple of the strides.

On CPUs this is as fast as the others or up to 100 times as fast. Zeros around x are written first, and so x is never
smaller than y's cotangent: otherwise XLA exchanges them in the weight's gradient, for which it has no fast program."""

import math
from typing import Protocol

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.compiled import compiled
from .._core.data_format import FORMATS, DataFormat
from .._core.types import Implementation, Integers
from ._arguments import grouped, image, parameters
from ._conv import _case, declared, finished
from ._gradients import of_platform
from ._library import convolution


class TransposedConvolution(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, strides: int | Integers = 1,
        padding: int | Integers = 0, *, output_padding: int | Integers = 0, groups: int = 1,
        dilation: int | Integers = 1, data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_DOC = """Transposed convolution of {what}: the gradient of `conv{rank}d` in its input, as an op.

    Formula:
        y[n, o, j] = bias[o] + the sum of weight[c, o, k] x[n, c, i] over c, i and k with j = i strides + k dilation -
        padding, along each spatial axis; c is in o's group. dx is `conv{rank}d` of dy by weight; dweight[c, o, k] is the sum
        of x[n, c, i] dy[n, o, i strides + k dilation - padding] over n and i; dbias[o] that of dy.

    Args:
        x: floats {format}, or {last} with data_format="{last}"; the batch dimension N may be left out.
        weight: array of x's dtype, [Cin, Cout / groups, *window].
        bias: array [Cout] of x's dtype; None for 0.
        strides: static distance between windows in y, an integer or one for each spatial axis.
        padding: how many elements at both ends of y are left out, an integer or one for each spatial axis.
        output_padding: how many elements y has more, after its end, an integer or one for each spatial axis; less than
            strides or dilation.
        groups: static number of groups: output channels of a group read the input channels of that group.
        dilation: static distance between the elements of a window, an integer or one for each spatial axis.
        data_format: "{format}" or "{last}".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's dtype and form, with Cout channels and, along each spatial axis, (size - 1) strides - 2 padding +
        dilation (window - 1) + output_padding + 1 elements.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where y would have no elements.

    Precision: float16 and bfloat16 are multiplied and summed in float32, and rounded once, after the bias; by cuDNN
        before it too. On GPUs `jax.default_matmul_precision` says whether float32 may be computed with fewer bits.

    Source: torch.nn.functional.conv_transpose{rank}d; jax.lax.conv_transpose, whose window is turned over unless
        transpose_kernel is set.
    """


@compiled("strides", "padding", "output_padding", "dilation", "groups")
def _transposed(x, weight, bias, *, groups, **how):
    (y,) = _of_platform(x, weight, save=False, groups=groups, **how)
    return finished(y, bias, x.dtype)


def _by_phases(x, weight, *, groups, strides, padding, output_padding, dilation):
    rank, (batch, channels, *spatial) = x.ndim - 2, x.shape
    spans = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    each = zip(spatial, strides, padding, spans, output_padding, strict=True)
    out = [(n - 1) * s - 2 * p + k + more for n, s, p, k, more in each]
    # Of a dilated window, the zeros between its elements are written, except where there is one phase.
    gaps = [0 if s == 1 else d - 1 for s, d in zip(strides, dilation, strict=True)]
    steps = [d if s == 1 else 1 for s, d in zip(strides, dilation, strict=True)]
    sizes = [(k - 1) * (g + 1) + 1 for k, g in zip(weight.shape[2:], gaps, strict=True)]
    parts = [-(-k // s) for k, s in zip(sizes, strides, strict=True)]
    filled = [(0, m * s - k, g) for m, s, k, g in zip(parts, strides, sizes, gaps, strict=True)]
    weight = lax.pad(weight, jnp.zeros((), weight.dtype), ((0, 0, 0), (0, 0, 0), *filled))
    # [groups, Cin / groups, Cout / groups, part, phase, part, phase, ...]: element part * strides + phase of the window
    weight = grouped(weight, groups)
    split = [n for pair in zip(parts, strides, strict=True) for n in pair]
    weight = explicit.reshape(weight, *weight.shape[:3], *split)
    of_parts, of_phases = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
    weight = jnp.transpose(jnp.flip(weight, tuple(of_parts)), (0, 2, *of_phases, 1, *of_parts))
    outputs = weight.shape[0] * weight.shape[1]
    weight = explicit.reshape(weight, outputs * math.prod(strides), channels // groups, *parts)

    around = [((m - 1) * d, (m - 1) * d, 0) for m, d in zip(parts, steps, strict=True)]
    y = convolution(
        lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), (0, 0, 0), *around)), weight, (1,) * rank, "VALID",
        rhs_dilation=steps, feature_group_count=groups,
    )  # fmt: skip
    found = y.shape[2:]
    y = explicit.reshape(y, batch, outputs, *strides, *found)
    y = jnp.transpose(y, (0, 1, *(i for a in range(rank) for i in (2 + rank + a, 2 + a))))
    y = explicit.reshape(y, batch, outputs, *(n * s for n, s in zip(found, strides, strict=True)))
    ends = [p + o - n for p, o, n in zip(padding, out, y.shape[2:], strict=True)]
    cut = [(-p, end, 0) for p, end in zip(padding, ends, strict=True)]
    return lax.pad(y, jnp.zeros((), y.dtype), ((0, 0, 0), (0, 0, 0), *cut))


_of_platform = of_platform(_by_phases)


def _check_size(op, x, weight, strides, padding, output_padding, dilation):
    for i, (more, s, d) in enumerate(zip(output_padding, strides, dilation, strict=True)):
        if more >= max(s, d):
            raise ValueError(
                f"{op}: output_padding must be less than strides or dilation, {s} and {d} along spatial axis {i}, got {more}"
            )
    each = zip(x.shape[2:], weight.shape[2:], strides, padding, output_padding, dilation, strict=True)
    if not all(n > 0 and (n - 1) * s - 2 * p + d * (k - 1) + o + 1 > 0 for n, k, s, p, o, d in each):
        raise ValueError(
            f"{op}: x must have a spatial shape that leaves elements of the result after padding {padding}, "
            f"got {x.shape[2:]} with windows {weight.shape[2:]}"
        )


def _transposed_convolution(rank, what) -> TransposedConvolution:
    name = f"conv_transpose{rank}d"

    def fun(
        x: ArrayLike,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        strides: int | Integers = 1,
        padding: int | Integers = 0,
        *,
        output_padding: int | Integers = 0,
        groups: int = 1,
        dilation: int | Integers = 1,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        x, back = image(name, x, rank, data_format)
        weight, bias, groups = parameters(name, x, weight, bias, groups, is_transposed=True)
        smallest = dict(strides=1, padding=0, output_padding=0, dilation=1)
        given = dict(strides=strides, padding=padding, output_padding=output_padding, dilation=dilation)
        how = {key: checks.integers(name, key, given[key], rank, n) for key, n in smallest.items()}
        _check_size(name, x, weight, **how)
        return back(_transposed(x, weight, bias, groups=groups, **how))

    sizes, (first, last) = (5, 4, 3)[:rank], FORMATS[rank]
    doc = _DOC.format(rank=rank, what=what, format=first, last=last)
    more = dict(
        groups=2, strides=(2, 1, 3)[:rank], padding=(1, 0, 1)[:rank], dilation=2, output_padding=(1, 0, 0)[:rank]
    )
    cases = (
        _case("strides", (2, 3, *sizes), (3, 2, *(3, 2, 2)[:rank]), strides=2, padding=1, is_transposed=True),
        _case("groups", (2, 4, *sizes), (4, 3, *(2, 2, 2)[:rank]), **more, is_transposed=True),
        _case("last", (2, *sizes, 3), (3, 2, *(4, 3, 2)[:rank]), strides=3, data_format=last, is_transposed=True),
    )
    return declared(fun, name, "cudnn", doc, cases)


conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    _transposed_convolution(rank, what) for rank, what in ((1, "sequences"), (2, "images"), (3, "volumes"))
)
