"""The transducer's loss: sums over all paths, edges, and errors."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import FLOATS

import baracuda_jax as bj
from baracuda_jax.backward import rnnt_loss_backward

INF = float("inf")
BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])
# States of a warp are one to four in a lane, then they are a block's, then two in a lane of it.
LABELS = pytest.mark.parametrize("labels", [0, 1, 31, 32, 70, 127, 128])


def _probabilities(rng, *shape):
    p = rng.uniform(0.05, 1, shape)
    return p / p.sum(-1, keepdims=True)


def _by_paths(p, target, blank):
    """The probability, and the posterior of each node's classes, of p [T, U + 1, C]."""
    frames, labels = p.shape[0], len(target)
    total, posterior = 0.0, np.zeros(p.shape)
    for writes in itertools.combinations(range(frames + labels - 1), labels) if frames else ():  # the last is a blank
        t, u, nodes = 0, 0, []
        for step in range(frames + labels):
            is_label = step in writes
            nodes.append((t, u, target[u] if is_label else blank))
            t, u = (t, u + 1) if is_label else (t + 1, u)
        here = np.prod([p[node] for node in nodes])
        total += here
        for node in nodes:
            posterior[node] += here
    return total, posterior / total if total else posterior


@BOTH
@pytest.mark.parametrize(
    "frames, target, blank",
    [(1, [], 0), (1, [1, 2], 0), (3, [], 1), (2, [1, 1], 0), (4, [2, 0, 2], 1), (5, [1, 3, 1, 2], 0), (0, [1], 0)],
)
def test_sums_over_paths(frames, target, blank, implementation):
    """Of logits and of logarithms of probabilities; the gradient is that of the sum."""
    rng = np.random.default_rng(frames + len(target))
    p = _probabilities(rng, frames, len(target) + 1, 4)
    total, posterior = _by_paths(p, target, blank)
    want = -np.log(total) if total else INF
    of_logits = p * posterior.sum(-1, keepdims=True) - posterior
    for log_probs, gradient in ((False, of_logits), (True, -posterior)):
        fun = lambda x, log_probs=log_probs: bj.rnnt_loss(
            x,
            np.array(target, np.int32),
            blank=blank,
            reduction="sum",
            log_probs=log_probs,
            implementation=implementation,
        )
        x = np.log(p) + (0 if log_probs else rng.standard_normal((frames, len(target) + 1, 1)))
        y, dx = jax.jit(jax.value_and_grad(fun))(x)
        np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(dx, gradient, rtol=1e-11, atol=1e-12)


def _drawn(labels, frames=None, batch=5, classes=7, blank=0, seed=0):
    """Samples of several lengths, one without labels and one of one frame."""
    rng = np.random.default_rng((seed, labels))
    frames = labels // 2 + 5 if frames is None else frames
    targets = rng.integers(0, classes - 1, (batch, labels))
    targets += targets >= blank
    target_lengths = rng.integers(0, labels + 1, batch)
    target_lengths[:2] = labels, 0
    input_lengths = rng.integers(1, frames + 1, batch)
    input_lengths[0], input_lengths[-1] = frames, 1
    return 2 * rng.standard_normal((batch, frames, labels + 1, classes)), targets, input_lengths, target_lengths


def _forward_backward(x, target, blank):
    """Graves's recursions of logarithms, node by node: the loss and its gradient in the logits [T, U + 1, C]."""
    log = x - np.logaddexp.reduce(x, -1, keepdims=True)
    frames, states = log.shape[:2]
    alpha, beta = np.full((frames + 1, states), -np.inf), np.full((frames + 1, states + 1), -np.inf)
    alpha[0, 0], beta[frames, states - 1] = 0, 0
    for t, u in np.ndindex(frames, states):
        if t:
            alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t - 1, u] + log[t - 1, u, blank])
        if u:
            alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t, u - 1] + log[t, u - 1, target[u - 1]])
    for t, u in itertools.product(reversed(range(frames)), reversed(range(states))):
        beta[t, u] = beta[t + 1, u] + log[t, u, blank]
        if u + 1 < states:
            beta[t, u] = np.logaddexp(beta[t, u], beta[t, u + 1] + log[t, u, target[u]])
    dx = np.exp(log + (alpha[:frames] + beta[:frames, :states] - beta[0, 0])[..., None])
    for t, u in np.ndindex(frames, states):
        dx[t, u, blank] -= np.exp(alpha[t, u] + log[t, u, blank] + beta[t + 1, u] - beta[0, 0])
        if u + 1 < states:
            dx[t, u, target[u]] -= np.exp(alpha[t, u] + log[t, u, target[u]] + beta[t, u + 1] - beta[0, 0])
    return -beta[0, 0], dx


@BOTH
@LABELS
def test_values_and_gradients_are_those_of_a_double_loop(labels, implementation):
    if implementation == "xla" and labels not in (0, 1, 32):
        pytest.skip("plain JAX has one way")
    x, targets, frames, counts = _drawn(labels)
    dy = np.random.default_rng(1).standard_normal(len(x))
    want, gradient = np.zeros(len(x)), np.zeros(x.shape)
    for b, (t, u) in enumerate(zip(frames, counts, strict=True)):
        want[b], gradient[b, :t, : u + 1] = _forward_backward(x[b, :t, : u + 1], targets[b, :u], 0)
    gradient *= dy[:, None, None, None]
    for dtype, tolerance in (("float64", 1e-12), ("float32", 3e-6)):
        rough = 30 if dtype == "float32" and implementation == "xla" else 1  # of logarithms
        fun = lambda x: bj.rnnt_loss(x, targets, frames, counts, reduction="none", implementation=implementation)
        y, pull = jax.vjp(jax.jit(fun), jnp.asarray(x, dtype))
        np.testing.assert_allclose(y, want, rtol=rough * tolerance, atol=tolerance)
        (dx,) = pull(jnp.asarray(dy, dtype))
        np.testing.assert_allclose(dx, gradient, rtol=10 * tolerance, atol=3 * rough * tolerance)
        np.testing.assert_allclose(dx.sum(-1), 0, atol=10 * rough * np.finfo(dtype).eps)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_reductions(reduction):
    x, *rest = _drawn(6, blank=3)
    losses = np.asarray(bj.rnnt_loss(x, *rest, blank=3, reduction="none"))
    y = bj.rnnt_loss(x, *rest, blank=3, reduction=reduction)
    np.testing.assert_allclose(y, getattr(losses, reduction)(), rtol=1e-14)


@BOTH
@pytest.mark.parametrize("log_probs", [False, True])
def test_gradients_are_limits_of_differences(log_probs, implementation):
    x, *rest = _drawn(3, batch=3)
    x = np.asarray(jax.nn.log_softmax(x)) if log_probs else x
    fun = jax.jit(lambda x: bj.rnnt_loss(x, *rest, reduction="sum", log_probs=log_probs, implementation=implementation))
    v, step = np.random.default_rng(2).standard_normal(x.shape), 1e-5
    slope = (fun(x + step * v) - fun(x - step * v)) / (2 * step)
    np.testing.assert_allclose(np.vdot(jax.grad(fun)(x), v), slope, rtol=1e-8)
    np.testing.assert_allclose(jax.jvp(fun, (x,), (v,))[1], slope, rtol=1e-8)


def _counts(x, frames, labels):
    """Whether a node does."""
    is_frame = np.arange(x.shape[1]) < np.asarray(frames)[:, None]
    return is_frame[:, :, None] & (np.arange(x.shape[2]) <= np.asarray(labels)[:, None])[:, None]


@BOTH
def test_nodes_that_do_not_count(implementation):
    """Nothing of them is in a value or a derivative, not even NaN."""
    x, targets, frames, labels = _drawn(4)
    fun = lambda x, frames: bj.rnnt_loss(x, targets, frames, labels, reduction="none", implementation=implementation)
    y, pull = jax.vjp(lambda x: fun(x, frames), x)
    counts = _counts(x, frames, labels)
    spoilt = np.where(counts[..., None], x, np.nan)
    z, spoilt_pull = jax.vjp(lambda x: fun(x, frames), spoilt)
    np.testing.assert_array_equal(z, y)
    for (dx,) in (pull(np.ones(5)), spoilt_pull(np.ones(5))):
        np.testing.assert_array_equal(dx[~counts], 0)
        assert np.isfinite(dx).all() and dx[0].any()
    np.testing.assert_array_equal(fun(x, np.where(frames == x.shape[1], 99, frames)), fun(x, frames))  # at most all


@BOTH
@pytest.mark.parametrize("wrong", [-1, 7, 2**31 - 1, -(2**31), 0])
def test_labels_that_are_no_classes(wrong, implementation):
    """A sample with one has no path; where it does not count it is not read."""
    x, targets, *_ = _drawn(4)
    targets[1, 2] = wrong
    lengths = lambda count: np.array([4, count, 3, 4, 1])

    def fun(x, count):
        return bj.rnnt_loss(x, targets, None, lengths(count), reduction="none", implementation=implementation)

    (y, pull), (z, _) = (jax.vjp(lambda x, count=count: fun(x, count), x) for count in (4, 2))
    assert y[1] == INF and np.isfinite(np.delete(y, 1)).all() and np.isfinite(z).all()
    (dx,) = pull(np.ones(5))
    assert not dx[1].any() and np.isfinite(dx).all() and dx[0].any()


@BOTH
def test_samples_without_frames(implementation):
    """There is nothing to read, and so nothing may be written."""
    x, targets, *_ = _drawn(3, batch=3)
    frames, labels = np.array([0, 0, 2]), np.array([0, 3, 3])
    fun = lambda x: bj.rnnt_loss(x, targets, frames, labels, reduction="none", implementation=implementation)
    y, pull = jax.vjp(fun, x)
    np.testing.assert_array_equal(y[:2], [0, INF])
    (dx,) = pull(np.ones(3))
    assert not dx[:2].any() and dx[2].any() and np.isfinite(dx).all()


def test_labels_of_any_integer_type():
    x, targets, *lengths = _drawn(4)
    want = bj.rnnt_loss(x, targets, *lengths, reduction="none")
    for dtype in ("uint8", "int16", "int64"):
        same = bj.rnnt_loss(x, *(a.astype(dtype) for a in (targets, *lengths)), reduction="none")
        np.testing.assert_array_equal(same, want)


@BOTH
@pytest.mark.parametrize("dtype", FLOATS)
def test_losses_of_sure_predictions_are_not_negative(dtype, implementation):
    x, targets = np.full((3, 4, 2, 5), -30.0), np.ones((3, 1), np.int32)
    x[..., 0] = np.array([5, 20, 40])[:, None, None]
    x[:, 0, 0, 1] = 60
    y = bj.rnnt_loss(x.astype(dtype), targets, reduction="none", implementation=implementation)
    assert y.dtype == dtype and (np.asarray(y, np.float64) >= 0).all() and float(y[-1]) < 1e-3


@BOTH
def test_probabilities_that_no_float_has(implementation):
    """A loss of thousands, with a gradient; and classes that are masked."""
    x = np.zeros((100, 3, 4), np.float32)
    x[..., 3] = 60
    fun = lambda x, labels=(1, 2): bj.rnnt_loss(x, np.array(labels), reduction="sum", implementation=implementation)
    y, dx = jax.value_and_grad(fun)(x)
    want, gradient = jax.value_and_grad(fun)(jnp.asarray(x, jnp.float64))
    assert 5000 < want < 7000
    np.testing.assert_allclose(y, want, rtol=2e-6)
    np.testing.assert_allclose(dx, gradient, atol=1e-5 if implementation == "native" else 5e-3)
    x = np.zeros((4, 3, 4), np.float32)
    x[..., 3] = -INF  # which no path needs
    y, dx = jax.value_and_grad(fun)(x)
    np.testing.assert_allclose(y, 6 * np.log(3) - np.log(10), rtol=1e-6)
    assert np.isfinite(dx).all() and not dx[..., 3].any()
    x[:, 0, 1] = -INF  # which all need
    y, dx = jax.value_and_grad(fun)(x)
    assert y == INF and not dx.any()
    x[..., 0, 2] = INF
    assert np.isnan(fun(x))


@BOTH
def test_nan_is_seen(implementation):
    x, targets, *_ = _drawn(3, batch=2)
    x[0, 2, 1, 4] = np.nan
    fun = lambda x: bj.rnnt_loss(x, targets, reduction="none", implementation=implementation)
    y, pull = jax.vjp(fun, x)
    assert np.isnan(y[0]) and np.isfinite(y[1])
    (dx,) = pull(np.ones(2))
    assert np.isnan(dx[0]).any() and np.isfinite(dx[1]).all()


@BOTH
def test_empty_arrays(implementation):
    call = lambda x, targets, **options: bj.rnnt_loss(
        np.zeros(x), np.zeros(targets, int), implementation=implementation, **options
    )
    assert call((0, 5, 3, 4), (0, 2), reduction="none").shape == (0,)
    assert np.isnan(call((0, 5, 3, 4), (0, 2)))
    np.testing.assert_array_equal(call((2, 0, 1, 3), (2, 0), reduction="none"), [0, 0])
    np.testing.assert_array_equal(call((2, 0, 3, 3), (2, 2), reduction="none"), [INF, INF])
    np.testing.assert_allclose(call((2, 4, 1, 3), (2, 0), reduction="none"), [4 * np.log(3)] * 2)
    gradient = jax.grad(lambda x: bj.rnnt_loss(x, np.zeros((2, 0), int), implementation=implementation))
    assert gradient(np.zeros((2, 0, 1, 3))).shape == (2, 0, 1, 3)


def test_lengths_of_each_sample_under_vmap():
    x, *rest = _drawn(5, batch=6)
    one = lambda *args: bj.rnnt_loss(*args, reduction="none")
    want = one(x, *rest)
    np.testing.assert_array_equal(jax.vmap(one)(x, *rest), want)
    gradients = jax.grad(lambda x: one(x, *rest).sum())(x)
    np.testing.assert_array_equal(jax.vmap(jax.grad(one))(x, *rest), gradients)
    targets = rest[0][0]
    many = jax.vmap(lambda x: one(x, targets))(x)
    np.testing.assert_array_equal(many, [one(a, targets) for a in x])


def test_padding_changes_nothing():
    """More frames and labels than a sample has, so that a block has its states."""
    x, targets, *lengths = _drawn(12)
    fun = lambda x, targets: bj.rnnt_loss(x, targets, *lengths)
    want, dx = jax.value_and_grad(fun)(x, targets)
    padded = np.pad(x, [(0, 0), (0, 3), (0, 200), (0, 0)], constant_values=np.nan)
    same, same_dx = jax.value_and_grad(fun)(padded, np.pad(targets, [(0, 0), (0, 200)], constant_values=-5))
    np.testing.assert_allclose(same, want, rtol=1e-14)
    np.testing.assert_allclose(same_dx[:, :-3, :13], dx, rtol=1e-12, atol=1e-15)
    assert not same_dx[:, -3:].any() and not same_dx[:, :, 13:].any()


def test_second_derivatives_are_the_definitions():
    x, *rest = _drawn(2, frames=3, batch=2, classes=3)
    fun = lambda implementation: lambda x: bj.rnnt_loss(x, *rest, implementation=implementation)
    native, plain = (jax.jit(jax.hessian(fun(implementation)))(x) for implementation in ("native", "xla"))
    np.testing.assert_allclose(native, plain, rtol=1e-10, atol=1e-13)
    assert np.abs(plain).max() > 0.01


def test_more_labels_than_a_kernel_has_states_for():
    """Plain JAX computes them."""
    labels = 2048
    x, targets = np.zeros((1, 1, labels + 1, 2)), np.ones((1, labels), np.int32)
    y, dx = jax.value_and_grad(lambda x: bj.rnnt_loss(x, targets, None, np.array([2])))(x)
    np.testing.assert_allclose(y, 3 * np.log(2))
    np.testing.assert_allclose(dx[0, 0, :3], [[0.5, -0.5], [0.5, -0.5], [-0.5, 0.5]])
    assert not dx[0, 0, 3:].any()


def test_the_backward_function():
    x, targets, *lengths = _drawn(4)
    dy = np.random.default_rng(3).standard_normal(len(x))
    (want,) = jax.vjp(lambda x: bj.rnnt_loss(x, targets, *lengths, reduction="none"), x)[1](dy)
    np.testing.assert_array_equal(rnnt_loss_backward(x, targets, dy, *lengths), want)
    text = jax.jit(lambda x: rnnt_loss_backward(x, targets, dy, *lengths)).lower(x).compile().as_text()
    assert 'custom_call_target="baracuda.rnnt_loss_backward"' in text
    with pytest.raises(
        ValueError, match=r"rnnt_loss_backward: dy must have shape \(5,\), one for each sample, got \(\)"
    ):
        rnnt_loss_backward(x, targets, 1.0)


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(x=np.zeros((3, 4))), ValueError, "x must have three dimensions or more, frames, numbers of labels and classes"),
        (dict(x=np.zeros((2, 4, 3, 5), int)), TypeError, "x must have one of the dtypes .*, got int64"),
        (dict(x=np.zeros((2, 4, 2, 5))), ValueError, r"x must have scores after each number of labels, 0 to 2, .*\(2, 4, 2, 5\)"),
        (dict(targets=np.zeros((3, 2), int)), ValueError, r"targets must have the dimensions of x before its frames, \(2,\)"),
        (dict(targets=np.zeros((2, 2))), TypeError, "targets must have one of the dtypes int8.*, got float64"),
        (dict(input_lengths=np.zeros(3, int)), ValueError, r"input_lengths must have shape \(2,\), one for each sample"),
        (dict(target_lengths=3), ValueError, r"target_lengths must have shape \(2,\), one for each sample, got \(\)"),
        (dict(blank=5), ValueError, "blank must be one of 5 classes, got 5"),
        (dict(blank=-1), ValueError, "blank must be at least 0, got -1"),
        (dict(reduction="batch"), ValueError, "reduction must be one of 'mean', 'sum', 'none', got 'batch'"),
        (dict(log_probs=1), TypeError, "log_probs must be True or False, got 1"),
    ],
)  # fmt: skip
@pytest.mark.exhaustive
def test_errors(change, error, message):
    arguments = dict(x=np.zeros((2, 4, 3, 5)), targets=np.zeros((2, 2), int)) | change
    with pytest.raises(error, match=f"rnnt_loss: {message}"):
        bj.rnnt_loss(**arguments)
