"""Where the values or the gradients are not PyTorch's, on purpose."""

import math

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from programs import wide

import baracuda_jax as bj

F = torch.nn.functional
NAN, INF = math.nan, math.inf


def _torch_grad(fun, *data, **kwargs):
    x = torch.tensor(*data, **kwargs, requires_grad=True)
    return torch.autograd.grad(fun(x).sum(), x)[0]


def _grad(fun, data):
    return jax.jit(jax.grad(lambda x: fun(x).sum()))(sent.asarray(data, jnp.float32))


def _raises(call):
    try:
        return call()
    except RuntimeError:
        return "an error"


def _torch_fractional(samples):
    x = torch.arange(49.0).reshape(1, 1, 7, 7)
    return F.fractional_max_pool2d(x, 2, 3, _random_samples=torch.tensor([[samples]]))


def _fractional(samples):
    x = sent.asarray(np.arange(49.0).reshape(1, 1, 7, 7))
    return bj.fractional_max_pool2d(x, sent.asarray([[samples]]), 2, 3)


def _torch_max(x):
    return x.new_zeros(1).scatter_reduce(0, torch.tensor([0, 0]), x, "amax", include_self=False)


def _torch_fake(x, zero=0, scale=1.0):
    scale, zero = torch.tensor([scale]), torch.tensor([zero], dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(torch.tensor(x), scale, zero, 0, -128, 127)


def _fake(x, zero=0):
    return bj.fake_quantize(sent.asarray(x, jnp.float32), sent.ones(1), sent.asarray([zero]), axis=0)


def _quantized(x, scale, zero):
    return bj.quantize_per_channel(sent.asarray(x, jnp.float32), sent.asarray([scale]), sent.asarray([zero]), 0)


def _torch_quantized(x, scale, zero):
    return by_torch.quantized(np.array(x, np.float32), [scale], [zero], 0, torch.qint8).int_repr()


def _column(*values):
    return [[list(values)]]


UNDEFINED = object()  # it depends on the processor, as conversions of what no integer holds

# name: (PyTorch's call, baracuda_jax's, PyTorch's value, baracuda_jax's, why)
DIFFERENCES = {
    "the index of max_pool's NaN": (
        lambda: F.max_pool1d(torch.tensor(_column(1.0, NAN, NAN)), 3, return_indices=True)[1],
        lambda: bj.max_pool1d(sent.asarray(_column(1.0, NAN, NAN)), 3, return_indices=True)[1],
        _column(2), _column(1),
        "the first of equal elements is the maximum too",
    ),
    "the order of fractional_max_pool2d's samples": (
        lambda: _torch_fractional([0.9, 0.3]), lambda: _fractional([0.9, 0.3]),
        [[[[8, 10, 13], [29, 31, 34], [43, 45, 48]]]], [[[[8, 11, 13], [22, 25, 27], [43, 46, 48]]]],
        "one axis after the other, as in three dimensions",
    ),
    "max_unpool of an index outside": (
        lambda: _raises(lambda: F.max_unpool1d(torch.tensor(_column(1.0)), torch.tensor(_column(9)), 2)),
        lambda: bj.max_unpool1d(sent.asarray(_column(1.0)), sent.asarray(_column(9)), 2),
        "an error", _column(0, 0),
        "no program can raise for what it computes; it is dropped",
    ),
    "padding of more than half of max_pool's window": (
        lambda: _raises(lambda: F.max_pool1d(torch.tensor(_column(1.0)), 2, 1, 2)),
        lambda: bj.max_pool1d(sent.asarray(_column(1.0)), 2, 1, 2),
        "an error", _column(-INF, 1, 1, -INF),
        "the maximum of no elements is -inf",
    ),
    "lp_pool of negative values, p odd": (
        lambda: F.lp_pool1d(torch.tensor(_column(-3.0, -4)), 1, 2),
        lambda: bj.lp_pool1d(sent.asarray(_column(-3.0, -4)), 1, 2),
        _column(-7), _column(7),
        "a norm is of magnitudes; PyTorch sums x^p with its sign",
    ),
    "lp_pool of a negative sum": (
        lambda: F.lp_pool1d(torch.tensor(_column(0.0, -4)), 3, 2),
        lambda: bj.lp_pool1d(sent.asarray(_column(0.0, -4)), 3, 2),
        _column(NAN), _column(4),
        "so there is no root of a negative number",
    ),
    "lp_pool of a window that is cut off": (
        lambda: F.lp_pool1d(torch.tensor(_column(1.0, 1, 1)), 1, 2, ceil_mode=True),
        lambda: bj.lp_pool1d(sent.asarray(_column(1.0, 1, 1)), 1, 2, ceil_mode=True),
        _column(2, 2), _column(2, 1),
        "the norm of the elements that are there; PyTorch scales their mean to the whole window",
    ),
    "lp_pool's gradient at 0, p < 1": (
        lambda: _torch_grad(lambda x: F.lp_pool1d(x, 0.5, 2), _column(0.0, 4)),
        lambda: _grad(lambda x: bj.lp_pool1d(x, 0.5, 2), _column(0.0, 4)),
        _column(INF, 1), _column(0, 1),
        "a subgradient that training survives",
    ),
    "lp_pool's gradient at 0, p = 1": (
        lambda: _torch_grad(lambda x: F.lp_pool1d(x, 1, 2), _column(0.0, 4)),
        lambda: _grad(lambda x: bj.lp_pool1d(x, 1, 2), _column(0.0, 4)),
        _column(1, 1), _column(0, 1),
        "the slope of |x| at 0 is 0, as PyTorch's own abs has it; here it sums x",
    ),
    "lp_pool in float16": (
        lambda: F.lp_pool1d(torch.tensor(_column(300.0, 400), dtype=torch.float16), 2, 2),
        lambda: bj.lp_pool1d(sent.asarray(_column(300.0, 400), jnp.float16), 2, 2),
        _column(INF), _column(500),
        "half types compute in float32, so that powers do not overflow",
    ),
    "repeat with fewer repeats than axes": (
        lambda: _raises(lambda: torch.ones(1, 2).repeat(2)),
        lambda: bj.repeat(sent.ones((1, 2)), (2,)),
        "an error", [[1, 1, 1, 1]],
        "they are those of the last axes, as in numpy.tile",
    ),
    "the index of a cumulative maximum among ties": (
        lambda: torch.cummax(torch.tensor([1.0, 3, 3]), 0).indices,
        lambda: bj.cummax(sent.asarray([1.0, 3, 3]), return_indices=True)[1],
        [0, 1, 2], [0, 1, 1],
        "the first, as of argmax; it has the gradient",
    ),
    "the gradient of a cumulative maximum among ties": (
        lambda: _torch_grad(lambda x: torch.cummax(x, 0).values, [1.0, 3, 3]),
        lambda: _grad(bj.cummax, [1.0, 3, 3]),
        [1, 1, 1], [1, 2, 0],
        "that of the index",
    ),
    "logcumsumexp's gradient where all before are -inf": (
        lambda: _torch_grad(lambda x: torch.logcumsumexp(x, 0)[1:], [-INF, -INF, 1.0]),
        lambda: _grad(lambda x: bj.logcumsumexp(x)[1:], [-INF, -INF, 1.0]),
        [NAN, NAN, 1], [0, 0, 1],
        "what adds nothing has no gradient",
    ),
    "cumsum of int8": (
        lambda: torch.cumsum(torch.tensor([100, 100], dtype=torch.int8), 0),
        lambda: bj.cumsum(sent.asarray([100, 100], jnp.int8)),
        [100, 200], [100, -56],
        "integers keep their dtype, as in jax.lax",
    ),
    "the median of an even number": (
        lambda: torch.median(torch.tensor([1.0, 2, 4, 9])),
        lambda: bj.median(sent.asarray([1.0, 2, 4, 9])),
        2, 3,
        "the mean of the two in the middle, as in jax.numpy",
    ),
    "values at ties, zero point odd": (
        lambda: _torch_quantized([[0.5, 1.5, 2.5]], 1.0, 1),
        lambda: _quantized([[0.5, 1.5, 2.5]], 1.0, 1),
        UNDEFINED, [[1, 3, 3]],
        "round(x / scale) + zero_point is the definition, and what PyTorch's fake_quantize does; on some processors its "
        "PyTorch rounds the sum",
    ),
    "values next to ties": (
        lambda: _torch_quantized([[10.849999]], 0.7, 0),
        lambda: _quantized([[10.849999]], 0.7, 0),
        [[16]], [[15]],
        "x / scale, here below 15.5, is rounded once; PyTorch multiplies by 1 / scale",
    ),
    "values at NaN": (
        lambda: _torch_quantized([[NAN]], 1.0, 10),
        lambda: _quantized([[NAN]], 1.0, 10),
        UNDEFINED, [[10]],
        "NaN is the zero point, on every platform",
    ),
    "fake_quantize of huge values": (
        lambda: _torch_fake([[3e38, INF, -INF]], 10),
        lambda: _fake([[3e38, INF, -INF]], 10),
        UNDEFINED, [[117, 117, -138]],
        "clamped as floats, so that they saturate; PyTorch converts to integers first",
    ),
    "fake_quantize of NaN": (
        lambda: _torch_fake([[NAN]], 10),
        lambda: _fake([[NAN]], 10),
        UNDEFINED, [[0]],
        "the value of the zero point",
    ),
    "dequantize in float64": (
        lambda: by_torch.quantized(np.array([[3.0]], np.float32), [1 / 3], [0], 0, torch.qint8).dequantize(),
        lambda: bj.dequantize_per_channel(sent.asarray([[9]], jnp.int8), sent.asarray([1 / 3]), None, 0, "float64") - 3,
        [[np.float32(1 / 3) * np.float32(9)]], [[0]],
        "PyTorch's result is float32; baracuda_jax's has the dtype asked for, with a scale as precise",
    ),
    "the gradient of a maximum among ties": (
        lambda: _torch_grad(_torch_max, [3.0, 3]),
        lambda: _grad(lambda x: bj.segment_max(x, sent.asarray([0, 0]), 1), [3.0, 3]),
        [0.5, 0.5], [1, 0],
        'the first row decides; ties="split" is PyTorch\'s rule',
    ),
    "the maximum of no rows": (
        lambda: torch.zeros(1).scatter_reduce(0, torch.zeros(0, dtype=int), torch.zeros(0), "amax", include_self=False),
        lambda: bj.segment_max(sent.zeros(0), sent.zeros(0, int), 1),
        [0], [-INF],
        "as in jax.ops; PyTorch leaves what the result held. empty_value sets another",
    ),
    "a negative id that is counted": (
        lambda: _raises(lambda: torch.bincount(torch.tensor([-1, 2]))),
        lambda: bj.bincount(sent.asarray([-1, 2]), length=3),
        "an error", [0, 0, 1],
        "it is dropped, as ids of segments are",
    ),
    "distinct values with NaN": (
        lambda: torch.unique(torch.tensor([NAN, NAN, 1])),
        lambda: bj.unique(sent.asarray([NAN, NAN, 1])),
        [1, NAN, NAN], [1, NAN],
        "one value, as in jax.numpy; equal_nan=False makes each its own",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_differs_from_torch_on_purpose(name):
    theirs, function, their_value, here_value, why = DIFFERENCES[name]
    assert why
    np.testing.assert_allclose(wide(function()), here_value, rtol=1e-6)
    got = theirs()
    if isinstance(their_value, str):
        assert got == their_value
    elif their_value is not UNDEFINED:
        np.testing.assert_allclose(by_torch.numbers(got), their_value, rtol=1e-6)
        assert np.shape(here_value) != np.shape(their_value) or not np.array_equal(here_value, their_value)
