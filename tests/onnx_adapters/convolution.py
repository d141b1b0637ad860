"""ONNX's convolutions."""

import numpy as np

import baracuda_jax as bj

from . import NotApplicable


def _rank(name, x):
    return getattr(bj, name.format(x.ndim - 2), None)


def Conv(x, weight, bias=None, *, strides=1, dilations=1, group=1, pads=None, auto_pad=b"NOTSET", kernel_shape=None):
    rank, window = x.ndim - 2, weight.shape[2:]
    if auto_pad != b"NOTSET" and auto_pad != b"VALID":
        steps = [strides] * rank if isinstance(strides, int) else strides
        zeros = [max((-(-n // s) - 1) * s + k - n, 0) for n, s, k in zip(x.shape[2:], steps, window, strict=True)]
        before = [n // 2 if auto_pad == b"SAME_UPPER" else n - n // 2 for n in zeros]
        pads = [*before, *(n - b for n, b in zip(zeros, before, strict=True))]
    padding = tuple(zip(pads[:rank], pads[rank:], strict=True)) if pads else 0
    if group == x.shape[1] > 1 and rank <= 3:
        return _rank("depthwise_conv{}d", x)(
            x, weight, bias, strides, padding, dilation=dilations, implementation="native"
        )
    return _rank("conv{}d", x)(x, weight, bias, strides, padding, dilation=dilations, groups=group)


def ConvTranspose(
    x, weight, bias=None, *, strides=1, dilations=1, group=1, pads=None, auto_pad=b"NOTSET", kernel_shape=None,
    output_padding=0, output_shape=None,
):  # fmt: skip
    """ONNX's pads may differ at both ends, and output_shape says them: y is then cut off here."""
    rank = x.ndim - 2
    many = lambda v: (v,) * rank if isinstance(v, int) else tuple(v)
    each = zip(x.shape[2:], weight.shape[2:], many(strides), many(dilations), many(output_padding), strict=True)
    whole = [(n - 1) * s + d * (k - 1) + 1 + more for n, k, s, d, more in each]
    y = _rank("conv_transpose{}d", x)(
        x, weight, bias, strides, output_padding=output_padding, groups=group, dilation=dilations
    )
    if output_shape is None and auto_pad in (b"SAME_UPPER", b"SAME_LOWER"):
        output_shape = [n * s for n, s in zip(x.shape[2:], many(strides), strict=True)]
    if output_shape is None:
        pads = pads or (0,) * (2 * rank)
        before, after = pads[:rank], pads[rank:]
        output_shape = [n - b - a for n, b, a in zip(whole, before, after, strict=True)]
    else:
        cut = [n - m for n, m in zip(whole, output_shape, strict=True)]
        before = [c // 2 if auto_pad == b"SAME_UPPER" else c - c // 2 for c in cut]
    if min(n - m for n, m in zip(whole, output_shape, strict=True)) < 0:
        missing = [max(m - n, 0) for n, m in zip(whole, output_shape, strict=True)]
        if bias is not None:
            raise NotApplicable("elements that no window reaches have the bias alone: output_padding offers fewer")
        return np.pad(np.asarray(y), [(0, 0), (0, 0), *((0, m) for m in missing)])
    return y[(..., *(slice(b, b + n) for b, n in zip(before, output_shape, strict=True)))]


def DeformConv(
    x, weight, offset, bias=None, mask=None, *, strides=1, dilations=1, group=1, offset_group=1, pads=None,
    kernel_shape=None,
):  # fmt: skip
    padding = tuple(zip(pads[:2], pads[2:], strict=True)) if pads else 0
    return bj.deform_conv2d(x, offset, weight, bias, mask, strides, padding, dilation=dilations)


def Col2Im(x, image_shape, block_shape, *, dilations=1, pads=None, strides=1):
    rank = len(image_shape)
    if rank > 3:
        raise NotApplicable("one to three spatial axes")
    pads = pads or (0,) * (2 * rank)
    before, after = pads[:rank], pads[rank:]
    window = tuple(map(int, block_shape))
    how = dict(strides=strides, dilation=dilations)
    if tuple(before) == tuple(after):
        sizes = tuple(map(int, image_shape))
        names = {1: bj.col2im_1d, 2: bj.fold_2d}
        return names.get(rank, bj.fold)(x, sizes, window, padding=tuple(before), **how)
    size = tuple(int(n) + b + a for n, b, a in zip(image_shape, before, after, strict=True))
    y = bj.fold(x, size, window, **how)
    return y[(..., *(slice(b, b + int(n)) for b, n in zip(before, image_shape, strict=True)))]
