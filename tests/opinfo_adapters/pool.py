"""PyTorch's samples of pooling."""

import numpy as np
from by_torch import torch
from onnx_adapters import NotApplicable

import baracuda_jax as bj

WINDOWS = {"kernel_size": None, "stride": None, "padding": 0}


def _array(x, rank):
    if x.dtype.kind not in "fV":
        raise NotApplicable("floats alone")
    if 0 in x.shape[x.ndim - rank :]:
        raise NotApplicable("spatial sizes of at least 1")
    return x


def _many(value, rank):
    """PyTorch takes one number in a tuple for all axes, and () for none."""
    if isinstance(value, tuple | list):
        return (tuple(value) * rank if len(value) == 1 else tuple(value)) or None
    return value


def _max(rank):
    def fun(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        windows = (_many(v, rank) for v in (kernel_size, stride, padding))
        how = dict(dilation=_many(dilation, rank), ceil_mode=ceil_mode, return_indices=return_indices)
        return getattr(bj, f"max_pool{rank}d")(_array(x, rank), *windows, **how)

    return fun


def _avg(rank):
    def fun(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        windows = (_many(v, rank) for v in (kernel_size, stride, padding))
        how = dict(ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor_override)
        return getattr(bj, f"avg_pool{rank}d")(_array(x, rank), *windows, **how)

    return fun


def _adaptive_avg(rank):
    return lambda x, output_size: getattr(bj, f"adaptive_avg_pool{rank}d")(_array(x, rank), _many(output_size, rank))


def _adaptive_max(rank):
    def fun(x, output_size, return_indices=False):
        how = dict(return_indices=return_indices)
        return getattr(bj, f"adaptive_max_pool{rank}d")(_array(x, rank), _many(output_size, rank), **how)

    return fun


def _fractional(rank):
    """PyTorch's tests seed what it draws with 42; in two dimensions it is for W and H."""

    def fun(x, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if _random_samples is None:
            lead = x.shape[:2] if x.ndim == rank + 2 else (1, x.shape[0])
            with torch.random.fork_rng():
                torch.manual_seed(42)
                _random_samples = torch.rand(*lead, rank, dtype=torch.from_numpy(x).dtype).numpy()
        if not ((_random_samples >= 0) & (_random_samples < 1)).all():
            raise NotApplicable("samples in [0, 1)")
        samples = _random_samples[..., ::-1] if rank == 2 else _random_samples
        samples = samples if x.ndim == rank + 2 else samples[0]
        how = dict(output_size=output_size, output_ratio=output_ratio, return_indices=return_indices)
        return getattr(bj, f"fractional_max_pool{rank}d")(_array(x, rank), samples, kernel_size, **how)

    return fun


def _unpool(rank):
    def fun(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        windows = (_many(v, rank) for v in (kernel_size, stride, padding))
        size = None if output_size is None else tuple(output_size)[-rank:]
        return getattr(bj, f"max_unpool{rank}d")(_array(x, rank), indices, *windows, size)

    return fun


def max_pool2d_with_indices_backward(x, return_indices=False, *, dilation=1, ceil_mode=False, **windows):
    """Of a cotangent of ones."""
    windows = [_many(windows.get(name, default), 2) for name, default in WINDOWS.items()]
    how = dict(dilation=_many(dilation, 2), ceil_mode=ceil_mode)
    y, index = bj.max_pool2d(_array(x, 2), *windows, **how, return_indices=True)
    return bj.max_pool2d_backward(index, np.ones(y.shape, x.dtype), x.shape[-2:], *windows, **how)


nn_functional_max_pool1d, nn_functional_max_pool2d, nn_functional_max_pool3d = map(_max, (1, 2, 3))
nn_functional_avg_pool1d, nn_functional_avg_pool2d, nn_functional_avg_pool3d = map(_avg, (1, 2, 3))
nn_functional_adaptive_avg_pool1d, nn_functional_adaptive_avg_pool2d, nn_functional_adaptive_avg_pool3d = map(
    _adaptive_avg, (1, 2, 3)
)
nn_functional_adaptive_max_pool1d, nn_functional_adaptive_max_pool2d, nn_functional_adaptive_max_pool3d = map(
    _adaptive_max, (1, 2, 3)
)
nn_functional_max_unpool1d, nn_functional_max_unpool2d, nn_functional_max_unpool3d = map(_unpool, (1, 2, 3))
nn_functional_max_unpool1d_grad, nn_functional_max_unpool2d_grad, nn_functional_max_unpool3d_grad = map(
    _unpool, (1, 2, 3)
)
nn_functional_fractional_max_pool2d, nn_functional_fractional_max_pool3d = map(_fractional, (2, 3))
