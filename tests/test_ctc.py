"""Connectionist temporal classification: sums over all alignments, PyTorch's and optax's values, edges, and errors."""

import itertools

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from by_torch import torch
from programs import FLOATS

import baracuda_jax as bj

F = torch.nn.functional
INF = float("inf")
BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])
# Pairs of a warp are one to four in a lane, then they are a block's, then two in a lane of it.
LABELS = pytest.mark.parametrize("labels", [0, 1, 31, 32, 70, 127, 128, 300])


def _probabilities(rng, *shape):
    p = rng.uniform(0.05, 1, shape)
    return p / p.sum(-1, keepdims=True)


def _merged(alignment, blank):
    return [c for i, c in enumerate(alignment) if c != blank and (i == 0 or c != alignment[i - 1])]


def _by_alignments(p, target, blank):
    """The probability and the posterior of each frame's classes."""
    total, posterior = 0.0, np.zeros(p.shape)
    for alignment in itertools.product(range(p.shape[1]), repeat=len(p)):
        if _merged(alignment, blank) == list(target):
            here = np.prod([p[t, c] for t, c in enumerate(alignment)])
            total += here
            posterior[range(len(p)), alignment] += here
    return total, posterior / total if total else posterior


TARGETS = [
    (3, [], 0), (1, [1], 0), (1, [], 1), (2, [1, 2], 0), (3, [1, 1], 0), (4, [2, 2], 1), (5, [0, 0, 2], 1),
    (5, [1, 2, 1], 0), (2, [1, 1], 0), (2, [1, 2, 1], 0), (4, [0, 1, 0], 3), (5, [0, 1, 1], 2), (0, [], 0), (0, [1], 0),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("frames, target, blank", TARGETS)
def test_sums_over_alignments(frames, target, blank, implementation):
    """Of logits and of logarithms of probabilities; the gradient is that of the sum."""
    p = _probabilities(np.random.default_rng(frames + len(target)), frames, 4)
    total, posterior = _by_alignments(p, target, blank)
    want = -np.log(total) if total else INF
    for log_probs, gradient in ((False, p - posterior), (True, -posterior)):
        fun = lambda x, log_probs=log_probs: bj.ctc_loss(
            x,
            np.array(target, np.int32),
            blank=blank,
            reduction="sum",
            log_probs=log_probs,
            implementation=implementation,
        )
        x = np.log(p) + (0 if log_probs else np.random.default_rng(0).standard_normal((frames, 1)))
        y, dx = jax.jit(jax.value_and_grad(fun))(x)
        np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dx, gradient if total else np.zeros(p.shape), rtol=1e-11, atol=1e-12)


def _drawn(labels, frames=None, batch=5, classes=7, blank=0, seed=0):
    """The arguments of PyTorch: samples of several lengths, one without labels."""
    rng = np.random.default_rng((seed, labels))
    frames = 2 * labels + 5 if frames is None else frames
    targets = rng.integers(0, classes - 1, (batch, labels))
    targets += targets >= blank
    target_lengths = rng.integers(0, labels + 1, batch)
    target_lengths[:2] = labels, 0
    input_lengths = np.maximum(rng.integers(1, frames + 1, batch), 2 * target_lengths)
    input_lengths[0] = frames
    return 2 * rng.standard_normal((batch, frames, classes)), targets, input_lengths, target_lengths


def _torch(x, targets, input_lengths, target_lengths, **options):
    lengths = torch.tensor(input_lengths), torch.tensor(target_lengths)
    return F.ctc_loss(torch.log_softmax(x, -1).transpose(0, 1), torch.tensor(targets), *lengths, **options)


@BOTH
@LABELS
def test_values_and_gradients_are_pytorchs(labels, implementation):
    """Those of float64; of float32 to its digits, however long the target is, where PyTorch's gradients are off by 1e-3."""
    if implementation == "xla" and labels not in (0, 1, 32):
        pytest.skip("plain JAX has one way")
    x, *rest = _drawn(labels)
    dy = np.random.default_rng(1).standard_normal(len(x))
    want, (gradient,) = by_torch.vjp(lambda x: _torch(x, *rest, reduction="none"), (x,), dy)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 3e-6)):
        fun = lambda x: bj.ctc_loss(x, *rest, reduction="none", implementation=implementation)
        y, pull = jax.vjp(jax.jit(fun), jnp.asarray(x, dtype))
        np.testing.assert_allclose(y, want, rtol=tolerance, atol=tolerance)
        (dx,) = pull(jnp.asarray(dy, dtype))
        np.testing.assert_allclose(dx, gradient, rtol=10 * tolerance, atol=2 * tolerance)
        np.testing.assert_allclose(dx.sum(-1), 0, atol=10 * np.finfo(dtype).eps)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_reductions_are_pytorchs(reduction, zero_infinity):
    x, targets, input_lengths, target_lengths = _drawn(6, blank=3)
    input_lengths[3], target_lengths[3] = 5, 6  # there is no alignment
    rest = (targets, input_lengths, target_lengths)
    options = dict(blank=3, reduction=reduction, zero_infinity=zero_infinity)
    want = by_torch.numbers(_torch(torch.tensor(x), *rest, **options))
    np.testing.assert_allclose(bj.ctc_loss(x, *rest, **options), want, rtol=1e-12)
    fun = lambda x: bj.ctc_loss(x, *rest, **options).sum()
    dx = jax.grad(fun)(x)
    assert not dx[3].any() and dx[0].any()
    if zero_infinity:
        (gradient,) = by_torch.vjp(lambda x: _torch(x, *rest, **options).sum(), (x,), np.float64(1))[1]
        np.testing.assert_allclose(dx, gradient, rtol=1e-10, atol=1e-13)


@BOTH
def test_values_are_optaxs(implementation):
    x, targets, input_lengths, target_lengths = _drawn(5)
    paddings = lambda lengths, size: (np.arange(size) >= lengths[:, None]).astype(x.dtype)
    ends = paddings(input_lengths, x.shape[1]), paddings(target_lengths, targets.shape[1])
    want = optax.losses.ctc_loss(x, ends[0], targets, ends[1])
    rest = (targets, input_lengths, target_lengths)
    y = bj.ctc_loss(x, *rest, reduction="none", implementation=implementation)
    np.testing.assert_allclose(y, want, rtol=1e-6)


@BOTH
@pytest.mark.parametrize("log_probs", [False, True])
def test_gradients_are_limits_of_differences(log_probs, implementation):
    x, *rest = _drawn(3, frames=9, batch=3)
    x = np.asarray(jax.nn.log_softmax(x)) if log_probs else x
    fun = jax.jit(lambda x: bj.ctc_loss(x, *rest, reduction="sum", log_probs=log_probs, implementation=implementation))
    v, step = np.random.default_rng(2).standard_normal(x.shape), 1e-5
    slope = (fun(x + step * v) - fun(x - step * v)) / (2 * step)
    np.testing.assert_allclose(np.vdot(jax.grad(fun)(x), v), slope, rtol=1e-8)
    np.testing.assert_allclose(jax.jvp(fun, (x,), (v,))[1], slope, rtol=1e-8)


@BOTH
def test_frames_that_do_not_count(implementation):
    """Nothing of them is in a value or a derivative, not even NaN."""
    x, targets, _, target_lengths = _drawn(4, frames=12)
    lengths = np.array([12, 9, 8, 10, 11])
    fun = lambda x, lengths: bj.ctc_loss(
        x, targets, lengths, target_lengths, reduction="none", implementation=implementation
    )
    y, pull = jax.vjp(lambda x: fun(x, lengths), x)
    spoilt = np.where(np.arange(12)[:, None] >= lengths[:, None, None], np.nan, x)
    z, spoilt_pull = jax.vjp(lambda x: fun(x, lengths), spoilt)
    np.testing.assert_array_equal(z, y)
    for (dx,) in (pull(np.ones(5)), spoilt_pull(np.ones(5))):
        np.testing.assert_array_equal(dx[np.arange(12) >= lengths[:, None]], 0)
    t = np.where(np.isnan(spoilt), np.nan, 1.0)
    assert np.isfinite(jax.jvp(lambda x: fun(x, lengths), (x,), (t,))[1]).all() or implementation == "xla"
    np.testing.assert_array_equal(fun(x, np.array([99, 9, 8, 10, 11])), y)  # at most all


@BOTH
@pytest.mark.parametrize("wrong", [-1, 7, 2**31 - 1, -(2**31), 0])
def test_labels_that_are_no_classes(wrong, implementation):
    """A sample with one has no alignment; where it does not count it is not read."""
    x, targets, input_lengths, _ = _drawn(4)
    targets[1, 2] = wrong
    lengths = lambda count: np.array([4, count, 3, 4, 1])
    input_lengths[:] = x.shape[1]

    def fun(x, count):
        return bj.ctc_loss(x, targets, input_lengths, lengths(count), reduction="none", implementation=implementation)

    (y, pull), (z, _) = (jax.vjp(lambda x, count=count: fun(x, count), x) for count in (4, 2))
    assert y[1] == INF and np.isfinite(np.delete(y, 1)).all() and np.isfinite(z).all()
    (dx,) = pull(np.ones(5))
    assert not dx[1].any() and np.isfinite(dx).all() and dx[0].any()


def test_labels_of_any_integer_type():
    x, targets, *lengths = _drawn(4)
    want = bj.ctc_loss(x, targets, *lengths, reduction="none")
    for dtype in ("int8", "uint8", "int16", "uint32", "int64", "uint64"):
        same = bj.ctc_loss(x, *(a.astype(dtype) for a in (targets, *lengths)), reduction="none")
        np.testing.assert_array_equal(same, want)
    for label in (2**32 + 1, -(2**32) + 1):  # which is not class 1
        far = targets.copy()
        far[0, 0] = label
        assert bj.ctc_loss(x, far, *lengths, reduction="none")[0] == INF


@BOTH
@pytest.mark.parametrize("dtype", FLOATS)
def test_losses_of_sure_predictions_are_not_negative(dtype, implementation):
    x, targets = np.full((8, 40, 5), -30.0), np.ones((8, 1), np.int32)
    x[..., 0] = np.linspace(5, 40, 8)[:, None]
    x[:, 3] = -30
    x[:, 3, 1] = 60
    y = bj.ctc_loss(x.astype(dtype), targets, reduction="none", implementation=implementation)
    assert y.dtype == dtype and (np.asarray(y, np.float64) >= 0).all() and float(y[-1]) < 1e-3


@BOTH
def test_probabilities_that_no_float_has(implementation):
    """A loss of thousands, with a gradient; and one of a class that is masked."""
    x = np.zeros((600, 3), np.float32)
    x[:, 2] = 50
    fun = lambda x: bj.ctc_loss(x, np.array([1, 1, 1]), reduction="sum", implementation=implementation)
    y, dx = jax.value_and_grad(fun)(x)
    x64 = jnp.asarray(x, jnp.float64)
    want, gradient = jax.value_and_grad(fun)(x64)
    assert 20000 < want < 40000
    np.testing.assert_allclose(y, want, rtol=1e-6 if implementation == "native" else 1e-5)
    np.testing.assert_allclose(dx, gradient, atol=1e-5 if implementation == "native" else 0.05)
    for masked in (-INF, -1e9, -2e38):
        x = np.zeros((5, 3), np.float32)
        x[2, 1] = masked
        y, dx = jax.value_and_grad(fun)(x)
        want = _by_alignments(np.exp(x) / np.exp(x).sum(-1, keepdims=True), [1, 1, 1], 0)
        np.testing.assert_allclose(y, INF if masked == -INF else -masked + 4 * np.log(3) + np.log(2), rtol=1e-6)
        assert not want[0] and np.isfinite(dx).all() and (masked > -INF or not dx.any())
        x[2] = 0
        x[2, 2] = masked
        y, dx = jax.value_and_grad(fun)(x)
        np.testing.assert_allclose(y, 4 * np.log(3) + np.log(2), rtol=1e-5)
        np.testing.assert_allclose(dx.sum(-1), 0, atol=1e-6)
        assert np.isfinite(dx).all() and dx[2, 2] == 0


@BOTH
def test_nan_is_seen(implementation):
    x, targets, *_ = _drawn(3, frames=9, batch=2)
    x[0, 5, 2] = np.nan
    fun = lambda x: bj.ctc_loss(x, targets, reduction="none", implementation=implementation)
    y, pull = jax.vjp(fun, x)
    assert np.isnan(y[0]) and np.isfinite(y[1])
    (dx,) = pull(np.ones(2))
    assert np.isnan(dx[0]).any() and np.isfinite(dx[1]).all()


@BOTH
def test_empty_arrays(implementation):
    call = lambda x, targets, **options: bj.ctc_loss(
        np.zeros(x), np.zeros(targets, int), implementation=implementation, **options
    )
    assert call((0, 5, 3), (0, 2), reduction="none").shape == (0,)
    assert np.isnan(call((0, 5, 3), (0, 2)))
    np.testing.assert_array_equal(call((2, 0, 3), (2, 0), reduction="none"), [0, 0])
    np.testing.assert_array_equal(call((2, 0, 3), (2, 2), reduction="none"), [INF, INF])
    np.testing.assert_allclose(call((2, 4, 3), (2, 0), reduction="none"), [4 * np.log(3)] * 2)
    assert jax.grad(lambda x: bj.ctc_loss(x, np.zeros((2, 0), int), implementation=implementation))(
        np.zeros((2, 0, 3))
    ).shape == (2, 0, 3)


def test_lengths_of_each_sample_under_vmap():
    x, *rest = _drawn(5, batch=6)
    want = bj.ctc_loss(x, *rest, reduction="none")
    one = lambda *args: bj.ctc_loss(*args, reduction="none")
    np.testing.assert_array_equal(jax.vmap(one)(x, *rest), want)
    split = lambda a: a.reshape(2, 3, *a.shape[1:])
    np.testing.assert_array_equal(jax.vmap(one)(*map(split, (x, *rest))), want.reshape(2, 3))
    gradients = jax.grad(lambda x: one(x, *rest).sum())(x)
    np.testing.assert_array_equal(jax.vmap(jax.grad(one))(x, *rest), gradients)
    targets = rest[0][0]
    many = jax.vmap(lambda x: bj.ctc_loss(x, targets, reduction="none"))(x)
    np.testing.assert_array_equal(many, [one(a, targets) for a in x])


def test_padding_of_targets_changes_nothing():
    x, targets, *lengths = _drawn(40)
    want, dx = jax.value_and_grad(lambda x: bj.ctc_loss(x, targets, *lengths))(x)
    padded = np.pad(targets, [(0, 0), (0, 200)], constant_values=-5)  # of which a block has the states
    same, same_dx = jax.value_and_grad(lambda x: bj.ctc_loss(x, padded, *lengths))(x)
    np.testing.assert_allclose(same, want, rtol=1e-14)
    np.testing.assert_allclose(same_dx, dx, rtol=1e-12, atol=1e-15)


def test_second_derivatives_are_the_definitions():
    x, *rest = _drawn(2, frames=6, batch=2, classes=4)
    fun = lambda implementation: lambda x: bj.ctc_loss(x, *rest, implementation=implementation)
    native, plain = (jax.jit(jax.hessian(fun(implementation)))(x) for implementation in ("native", "xla"))
    np.testing.assert_allclose(native, plain, rtol=1e-10, atol=1e-13)
    assert np.abs(plain).max() > 0.01


def test_more_labels_than_a_kernel_has_states_for():
    """Plain JAX computes them."""
    labels = 2048
    x, targets = np.zeros((1, 3, 4)), np.ones((1, labels), np.int32)
    y, dx = jax.value_and_grad(lambda x: bj.ctc_loss(x, targets, np.array([3]), np.array([2])))(x)
    np.testing.assert_allclose(y, -np.log(1 / 64) / 2)
    np.testing.assert_allclose(dx.sum(-1), 0, atol=1e-15)


def test_the_backward_function():
    x, *rest = _drawn(4)
    dy = np.random.default_rng(3).standard_normal(len(x))
    (want,) = jax.vjp(lambda x: bj.ctc_loss(x, *rest, reduction="none"), x)[1](dy)
    targets, *lengths = rest
    np.testing.assert_array_equal(bj.ctc_loss_backward(x, targets, dy, *lengths), want)
    text = jax.jit(lambda x: bj.ctc_loss_backward(x, targets, dy, *lengths)).lower(x).compile().as_text()
    assert 'custom_call_target="baracuda.ctc_loss_backward"' in text
    with pytest.raises(
        ValueError, match=r"ctc_loss_backward: dy must have shape \(5,\), one for each sample, got \(\)"
    ):
        bj.ctc_loss_backward(x, targets, 1.0)
    with pytest.raises(TypeError, match="ctc_loss_backward: dy must have the dtype of x, float64, got float32"):
        bj.ctc_loss_backward(x, targets, dy.astype("float32"))


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(x=np.zeros(3)), ValueError, "x must have two dimensions or more, frames and classes"),
        (dict(x=np.zeros((2, 4, 3), int)), TypeError, "x must have one of the dtypes .*, got int64"),
        (dict(targets=np.zeros((3, 2), int)), ValueError, r"targets must have the dimensions of x before its frames, \(2,\)"),
        (dict(targets=np.zeros(4, int)), ValueError, r"targets must .* and one of labels, got shape \(4,\)"),
        (dict(targets=np.zeros((2, 2))), TypeError, "targets must have one of the dtypes int8.*, got float64"),
        (dict(input_lengths=np.zeros(3, int)), ValueError, r"input_lengths must have shape \(2,\), one for each sample"),
        (dict(input_lengths=np.zeros(2)), TypeError, "input_lengths must have one of the dtypes int8.*, got float64"),
        (dict(target_lengths=3), ValueError, r"target_lengths must have shape \(2,\), one for each sample, got \(\)"),
        (dict(blank=3), ValueError, "blank must be one of 3 classes, got 3"),
        (dict(blank=-1), ValueError, "blank must be at least 0, got -1"),
        (dict(reduction="batch"), ValueError, "reduction must be one of 'mean', 'sum', 'none', got 'batch'"),
        (dict(log_probs=1), TypeError, "log_probs must be True or False, got 1"),
        (dict(zero_infinity=None), TypeError, "zero_infinity must be True or False, got None"),
    ],
)  # fmt: skip
@pytest.mark.exhaustive
def test_errors(change, error, message):
    arguments = dict(x=np.zeros((2, 4, 3)), targets=np.zeros((2, 2), int)) | change
    with pytest.raises(error, match=f"ctc_loss: {message}"):
        bj.ctc_loss(**arguments)
