"""PyTorch's samples of convolutions."""

from onnx_adapters import NotApplicable

import baracuda_jax as bj


def _array(x):
    if x is not None and x.dtype.kind not in "fV":
        raise NotApplicable("floats alone")
    return x


def _convolution(rank):
    def fun(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        arrays = [_array(a) for a in (input, weight, bias)]
        how = _rank(stride, rank), _rank(padding, rank)
        dilation = _rank(dilation, rank)
        if groups == weight.shape[0] > 1 and weight.shape[1] == 1:
            fun = getattr(bj, f"depthwise_conv{rank}d")
            return fun(*arrays, *how, dilation=dilation, implementation="native")
        return getattr(bj, f"conv{rank}d")(*arrays, *how, dilation=dilation, groups=groups)

    return fun


def _transposed(rank):
    def fun(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        arrays = map(_array, (input, weight, bias))
        return getattr(bj, f"conv_transpose{rank}d")(
            *arrays, _rank(stride, rank), _rank(padding, rank), output_padding=_rank(output_padding, rank), groups=groups,
            dilation=_rank(dilation, rank),
        )  # fmt: skip

    return fun


def _rank(value, rank):
    """PyTorch takes one number in a tuple for all axes."""
    return tuple(value) * rank if isinstance(value, tuple | list) and len(value) == 1 else value


nn_functional_conv1d, nn_functional_conv2d, nn_functional_conv3d = map(_convolution, (1, 2, 3))
nn_functional_conv_transpose1d, nn_functional_conv_transpose2d, nn_functional_conv_transpose3d = map(
    _transposed, (1, 2, 3)
)
