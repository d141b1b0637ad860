"""Deformable convolution: windows whose elements are each where an offset says.

Data flow: what a window reads is interpolated, as columns, by the kernel of `map_coordinates`, which finds positions once
for the channels that share offsets; a product of matrices, which XLA gives a library, sums them up. Columns are as large as
x times the window."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import OPS, compose
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from .._core.wide import wide, wide_dtype
from ..image import _map_coordinates  # noqa: F401  declares what this is made of
from ._arguments import Padding, grouped, parameters
from ._conv import finished, windows


@api
def deform_conv2d(
    x: ArrayLike,
    offset: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    strides: int | Integers = 1,
    padding: Padding = 0,
    *,
    dilation: int | Integers = 1,
    implementation: Implementation = None,
) -> Array:
    """Deformable convolution of images: a convolution whose windows read between elements, where offsets say.

    Formula:
        y[n, o, i] = bias[o] + sum over c and k of weight[o, c, k] mask[n, g, k, i] x[n, c, p], p being i strides + k
        dilation - padding + offset[n, g, k, i], and x[n, c, p] linear between the four elements around p, 0 for those that
        there are not; k counts the elements of a window and i the windows, along both axes. The sum is over the channels c
        of o's group; g is the group of c among those that share offsets. Gradients are those of `map_coordinates` and of
        products.

    Args:
        x: floats [N, Cin, H, W].
        offset: array [N, G 2 K, H', W'] of x's dtype, or float32 with half precisions: for each of G groups of channels and
            each of the K elements of a window its offsets along H and W.
        weight: array [Cout, Cin / groups, k, l] of x's dtype. It says how many groups of output channels there are, each of
            which reads as many input channels.
        bias: array [Cout] of x's dtype; None for 0.
        mask: array [N, G K, H', W'] of x's dtype, by which what is read is multiplied; None for 1.
        strides: static step between windows, an integer or two.
        padding: zeros around x: an integer, two, a pair (before, after) for each axis, or "valid" for none.
        dilation: static distance between the elements of a window, an integer or two.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [N, Cout, H', W'] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where no window fits.

    Precision: float16 and bfloat16 are interpolated in float32, rounded, multiplied and summed in float32, and rounded once
        more, after the bias. By kernels, gradients of x and of offsets are sums in a fixed order. On GPUs
        `jax.default_matmul_precision` says whether float32 may be multiplied with fewer bits.

    Source: torchvision.ops.deform_conv2d; ONNX's DeformConv; X. Zhu et al., Deformable ConvNets v2, arXiv:1811.11168.
    """
    op = "deform_conv2d"
    x = checks.floats(op, "x", x)
    if x.ndim != 4 or not all(x.shape[1:]):
        raise ValueError(f"{op}: x must be [N, Cin, H, W] with channels and elements, got shape {x.shape}")
    weight = checks.array(op, "weight", weight)
    if weight.ndim != 4 or not weight.shape[1] or x.shape[1] % weight.shape[1]:
        raise ValueError(
            f"{op}: weight must be [Cout, Cin / groups, k, l] for the {x.shape[1]} channels of x, got shape {weight.shape}"
        )
    weight, bias, groups = parameters(op, x, weight, bias, x.shape[1] // weight.shape[1])
    how = windows(op, x, weight, strides, padding, dilation)
    kernel, out = math.prod(weight.shape[2:]), _out(x, weight, **how)
    offset = checks.floats(op, "offset", offset)
    checks.dtype_or_wide(op, "offset", offset, "x", x)
    of_offsets = offset.shape[1] // (2 * kernel) if offset.ndim == 4 else 0
    if not of_offsets or x.shape[1] % of_offsets:
        raise ValueError(
            f"{op}: offset must be [N, G 2 K, H', W'] for windows of K = {kernel} elements and G groups of the {x.shape[1]} "
            f"channels of x, got shape {offset.shape}"
        )
    checks.shape(op, "offset", offset, (x.shape[0], of_offsets * 2 * kernel, *out), "that of offsets of windows")
    if mask is not None:
        mask = checks.array(op, "mask", mask)
        checks.same_dtype(op, "mask", mask, "x", x)
        checks.shape(op, "mask", mask, (x.shape[0], of_offsets * kernel, *out), "an element for each offset")
    return _deformed(x, offset, weight, bias, mask, groups=groups, **how, implementation=implementation)


def _out(x, weight, *, strides, padding, dilation):
    each = zip(x.shape[2:], weight.shape[2:], strides, padding, dilation, strict=True)
    return tuple((n + sum(p) - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each)


@compiled("groups", "strides", "padding", "dilation", "implementation")
def _deformed(x, offset, weight, bias, mask, *, groups, strides, padding, dilation, implementation):
    (n, channels, *size), window = x.shape, weight.shape[2:]
    out, kernel = offset.shape[2:], math.prod(window)
    sets, count = offset.shape[1] // (2 * kernel), math.prod(out)
    # Where each element of each window is without offsets: [axis, K, H', W'].
    starts = np.indices((*window, *out))
    at = np.stack([
        k * d - p[0] + i * s
        for k, i, d, p, s in zip(starts[:2], starts[2:], dilation, padding, strides, strict=True)
    ]).reshape(2, kernel, *out)  # fmt: skip
    at = wide(explicit.reshape(offset, n, sets, kernel, 2, *out)) + np.swapaxes(at, 0, 1)[None, None].astype(
        wide_dtype(offset.dtype)
    )
    # Positions by axis, [n, sets, 2, K H' W'].
    at = explicit.reshape(jnp.moveaxis(at, 3, 2), n, sets, 2, kernel * count)
    images = explicit.reshape(x, n, sets, channels // sets, *size)
    columns = OPS["map_coordinates"](images, at, order=1, mode="grid-constant", fill=0.0, implementation=implementation)
    if mask is not None:
        factors = _reshaped(mask, (n, sets * kernel * count), (n, sets, kernel * count))
        columns = (wide(columns) * wide(jnp.expand_dims(factors, 2))).astype(x.dtype)
    by_group = (n, groups, channels // groups, kernel * count)
    columns = _reshaped(columns, (n, channels, kernel * count), by_group, (*by_group[:3], kernel, count))
    rows = grouped(explicit.reshape(weight, *weight.shape[:2], kernel), groups)
    y = jnp.einsum("ngckp,gock->ngop", columns, rows, preferred_element_type=wide_dtype(x.dtype))
    return finished(_reshaped(y, (n, weight.shape[0], count), (n, weight.shape[0], *out)), bias, x.dtype)


def _reshaped(x, *shapes):
    """One dimension at a time, of which JAX knows how explicit axes of a mesh go on."""
    for shape in shapes:
        x = explicit.reshape(x, *shape)
    return x


def _case(name, shape, weight, sets, out, **kwargs):
    def draw(rng):
        kernel = weight[2] * weight[3]
        offset = rng.uniform(-2, 2, (shape[0], sets * 2 * kernel, *out))
        mask = rng.uniform(0, 1, (shape[0], sets * kernel, *out))
        return rng.standard_normal(shape), offset, rng.standard_normal(weight), rng.standard_normal(weight[0]), mask

    return Case(name, draw, kwargs)


compose(
    "deform_conv2d",
    family="convolution",
    category=OpCategory.CONVOLUTION,
    public=deform_conv2d,
    cases=(
        _case("masked", (2, 4, 5, 6), (4, 2, 2, 3), 2, (4, 4)),
        _case("strides", (1, 2, 7, 6), (3, 2, 3, 2), 1, (4, 3), strides=2, padding=1, dilation=(1, 2)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "offset", "weight", "bias", "mask"),
    made_of=("map_coordinates",),
    differentiable=("x", "offset", "weight", "bias", "mask"),
)
