"""Normalization compared with PyTorch's, at the edges, across devices, and what it refuses."""

import functools

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close, same_bits
from jax.sharding import PartitionSpec as P
from programs import FLOATS, normal
from sharded import devices, mesh, put

import baracuda_jax as bj

F = torch.nn.functional
LAST = lambda x: x.movedim(1, -1)
FIRST = lambda x: x.movedim(-1, 1)

# name: (shape of x, of weight and bias, whether there is a bias, baracuda_jax's function, PyTorch's)
CALLS = {
    "layer_norm": (
        (3, 4, 5), (4, 5), True,
        lambda x, w, b: bj.layer_norm(x, w, b, (1, 2), eps=1e-4), lambda x, w, b: F.layer_norm(x, (4, 5), w, b, 1e-4),
    ),
    "rms_norm": (
        (3, 4, 5), (4, 5), False,
        lambda x, w: bj.rms_norm(x, w, (1, 2), eps=1e-4), lambda x, w: F.rms_norm(x, (4, 5), w, 1e-4),
    ),
    "rms_norm offset": (
        (6, 8), (8,), False,
        lambda x, w: bj.rms_norm(x, w, offset=1), lambda x, w: F.rms_norm(x, (8,), 1 + w, 1e-6),
    ),
    "group_norm": (
        (2, 6, 4, 3), (6,), True,
        lambda x, w, b: bj.group_norm(x, w, b, num_groups=3), lambda x, w, b: F.group_norm(x, 3, w, b),
    ),
    "group_norm channels last": (
        (2, 4, 3, 6), (6,), True,
        lambda x, w, b: bj.group_norm(x, w, b, num_groups=2, axis=-1), lambda x, w, b: LAST(F.group_norm(FIRST(x), 2, w, b)),
    ),
    "group_norm no batch": (
        (6, 7), (6,), True,
        lambda x, w, b: bj.group_norm(x, w, b, num_groups=2, axis=0), lambda x, w, b: F.group_norm(x[None], 2, w, b)[0],
    ),
    "instance_norm": (
        (2, 3, 4, 5), (3,), True,
        lambda x, w, b: bj.instance_norm(x, w, b), lambda x, w, b: F.instance_norm(x, None, None, w, b),
    ),
    "instance_norm channels last": (
        (2, 9, 3), (3,), True,
        lambda x, w, b: bj.instance_norm(x, w, b, axis=-1), lambda x, w, b: LAST(F.instance_norm(FIRST(x), None, None, w, b)),
    ),
    "batch_norm": (
        (4, 3, 5), (3,), True,
        lambda x, w, b: bj.batch_norm(x, None, None, w, b, training=True)[0],
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    ),
    "batch_norm channels last": (
        (4, 5, 3), (3,), True,
        lambda x, w, b: bj.batch_norm(x, None, None, w, b, training=True, axis=-1)[0],
        lambda x, w, b: LAST(F.batch_norm(FIRST(x), None, None, w, b, True)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CALLS)
def test_value_and_gradients_are_torchs(name, dtype):
    shape, of_weight, has_bias, function, theirs = CALLS[name]
    args = [normal(s, dtype, i) for i, s in enumerate([shape, of_weight, of_weight][: 2 + has_bias])]
    dy = normal(shape, dtype, 3)
    wide = [np.asarray(a, np.float64) for a in args]  # PyTorch rounds some steps of half precisions
    want, gradients = by_torch.vjp(theirs, wide, np.asarray(dy, np.float64))

    @jax.jit
    def both(*args):
        y, pull = jax.vjp(function, *args[:-1])
        return y, pull(args[-1])

    y, pulled = both(*args, dy)
    assert y.dtype == dtype
    close(y, want, dtype, scale=4)
    for got, expected in zip(pulled, gradients, strict=True):
        close(got, expected, dtype, scale=8)


def test_weight_and_bias_may_be_left_out():
    x, ones, zeros = normal((3, 4)), sent.ones(4), sent.zeros(4)
    close(bj.layer_norm(x), bj.layer_norm(x, ones, zeros), "float64")
    close(bj.layer_norm(sent.full((2, 3), 5.0)), sent.zeros((2, 3)), "float64")
    close(bj.rms_norm(x, offset=1), bj.rms_norm(x, ones), "float64")
    close(bj.group_norm(x, num_groups=2), bj.group_norm(x, ones, zeros, num_groups=2), "float64")
    close(bj.instance_norm(x[None]), bj.instance_norm(x[None], sent.ones(3), sent.zeros(3)), "float64")
    got, want = (bj.batch_norm(x, zeros, ones, *more)[0] for more in ((), (ones, zeros)))
    close(got, want, "float64")


@pytest.mark.parametrize("name", [name for name in CALLS if " " not in name])
def test_half_precisions_take_weights_of_float32(name):
    """Which are not rounded."""
    shape, of_weight, has_bias, function, _ = CALLS[name]
    x, *more = (normal(s, "float32", i) for i, s in enumerate([shape, of_weight, of_weight][: 2 + has_bias]))
    x = x.astype(jnp.bfloat16)
    y, pull = jax.vjp(function, x, *more)
    assert y.dtype == jnp.bfloat16 and [g.dtype for g in pull(y)] == [jnp.bfloat16, *[jnp.float32] * len(more)]
    same_bits(y, function(x.astype(jnp.float32), *more).astype(jnp.bfloat16))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_gradients_as_functions(name, dtype):
    """Of any axes, with and without a weight."""
    x, dy = normal((4, 3, 5), dtype), normal((4, 3, 5), dtype, 1)
    weight, bias = normal((4, 5), "float32", 2), normal((4, 5), "float32", 3)
    fun, gradient = getattr(bj, name), getattr(bj, f"{name}_backward")
    vectors = (weight, bias)[: 1 + (name == "layer_norm")]
    got = gradient(x, weight, dy, (0, 2), eps=1e-3)
    want = jax.vjp(lambda x, *vectors: fun(x, *vectors, axis=(0, 2), eps=1e-3), x, *vectors)[1](dy)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        close(a, b, dtype)
    dx, *sums = gradient(x, None, dy)
    assert [(a.dtype, a.shape) for a in sums] == [(dtype, (5,))] * len(vectors)
    close(dx, jax.vjp(fun, x)[1](dy)[0], dtype)


@pytest.mark.parametrize("shape", [(40, 21000), (3, 21001), (300, 8192), (5000, 24), (700, 33)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_rows_in_registers_and_longer_ones(name, dtype, shape):
    """Few long rows, many short ones, aligned or not: the sums of columns are made of parts, or are a pass of their own."""
    x, dy = normal(shape, dtype), normal(shape, dtype, 1)
    vectors = [normal(shape[-1:], "float32", i) for i in (2, 3)][: 1 + (name == "layer_norm")]
    of = lambda x, *vectors, implementation: getattr(bj, name)(x, *vectors, implementation=implementation)

    def both(implementation, x, dy, *vectors):
        y, pull = jax.vjp(functools.partial(of, implementation=implementation), x, *vectors)
        return y, *pull(dy)

    got, want = (jax.jit(functools.partial(both, of))(x, dy, *vectors) for of in ("native", "xla"))
    for a, b in zip(got, want, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol={"float32": 2e-6, "float16": 2e-3}[dtype] * np.abs(b).max())


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["group_norm", "instance_norm"])
def test_gradients_of_groups_as_functions(name, dtype, axis):
    """With channels on any axis, with and without a weight."""
    x, dy = normal((4, 4, 4, 5)[: axis % 4 + 2], dtype), normal((4, 4, 4, 5)[: axis % 4 + 2], dtype, 1)
    more = dict(axis=axis, eps=1e-3) | (
        {"num_groups": x.shape[axis] if x.shape[axis] == 5 else 2} if name[0] == "g" else {}
    )
    weight, bias = (normal((x.shape[axis],), "float32", i) for i in (2, 3))
    fun, gradient = getattr(bj, name), getattr(bj, f"{name}_backward")
    got, want = gradient(x, weight, dy, **more), jax.vjp(lambda *args: fun(*args, **more), x, weight, bias)[1](dy)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        close(a, b, dtype, scale=4)
    dx, *sums = gradient(x, None, dy, **more)
    assert [(a.dtype, a.shape) for a in sums] == [(dtype, weight.shape)] * 2
    close(dx, jax.vjp(lambda x: fun(x, **more), x)[1](dy)[0], dtype, scale=4)


# Batch, channels, space, groups: groups in the memory of a block, of a cluster, and longer ones; unaligned channels,
# channels in several parts, many short ones, of which a block has several, and a batch that is added in two steps.
GROUPS = [
    (3, 8, 3136, 2), (2, 3, 70001, 3), (1, 2, 140000, 1), (1, 40, 5000, 1), (2, 96, 49, 3), (70, 6, 12, 2), (2, 300, 1, 2),
    (1, 600, 260, 1), (1, 3, 200001, 1), (320, 8, 49, 8), (600, 16, 49, 1), (300, 12, 7, 3), (1100, 2, 5, 1),
]  # fmt: skip


@pytest.mark.parametrize("shape", GROUPS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_groups_in_memory_of_blocks_and_longer_ones(dtype, shape):
    n, channels, space, groups = shape
    x, dy = normal((n, channels, space), dtype), normal((n, channels, space), dtype, 1)
    weight, bias = (normal((channels,), dtype if channels % 4 else "float32", i) for i in (2, 3))
    weight, bias = (a.astype(dtype) if dtype == "float64" else a for a in (weight, bias))

    def both(implementation, x, dy, *parameters):
        of = functools.partial(bj.group_norm, num_groups=groups, implementation=implementation)
        y, pull = jax.vjp(of, x, *parameters)
        return y, *pull(dy)

    got, want = (jax.jit(functools.partial(both, of))(x, dy, weight, bias) for of in ("native", "xla"))
    tolerance = {"float32": 4e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    for a, b in zip(got, want, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=tolerance * np.abs(b).max())


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_of_channels_as_functions(dtype, axis):
    """With channels on any axis, with and without a weight."""
    x, dy = normal((4, 5, 3), dtype), normal((4, 5, 3), dtype, 1)
    weight, bias = (normal((x.shape[axis],), "float32", i) for i in (2, 3))
    of = lambda *args: bj.batch_norm(args[0], None, None, *args[1:], training=True, axis=axis, eps=1e-3)[0]
    got = bj.batch_norm_backward(x, weight, dy, axis=axis, eps=1e-3)
    for a, b in zip(got, jax.vjp(of, x, weight, bias)[1](dy), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        close(a, b, dtype, scale=4)
    dx, *sums = bj.batch_norm_backward(x, None, dy, axis=axis, eps=1e-3)
    assert [(a.dtype, a.shape) for a in sums] == [(dtype, weight.shape)] * 2
    close(dx, jax.vjp(of, x)[1](dy)[0], dtype, scale=4)


# Batch, channels, space: channels in the memory of a block, of a cluster, and longer ones; several for a block, whole or
# in a cluster or in parts; unaligned ones, whose number is no multiple of a vector, or that are too long to be several.
CHANNELS = [
    (32, 4, 3136), (3, 3, 12), (2, 2, 300000), (256, 16, 49), (128, 64, 1), (20000, 64, 1), (7, 6, 35), (3, 8, 5001),
    (700, 32, 3), (9, 16, 4), (1, 5, 128), (3, 1, 1), (600, 24, 98),
]  # fmt: skip


@pytest.mark.parametrize("shape", CHANNELS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_channels_in_memory_of_blocks_and_longer_ones(dtype, shape):
    """Also gradients of the statistics."""
    x, dy = normal(shape, dtype), normal(shape, dtype, 1)
    of_weight = "float64" if dtype == "float64" else "float32" if shape[1] % 4 else dtype
    weight, bias = (normal(shape[1:2], of_weight, i) for i in (2, 3))

    def both(implementation, x, dy, *parameters):
        of = lambda x, *vectors: bj.batch_norm(x, None, None, *vectors, training=True, implementation=implementation)
        y, pull = jax.vjp(of, x, *parameters)
        return y, pull((dy, *map(jnp.zeros_like, y[1:]))), pull((dy, *y[1:]))

    got, want = (jax.jit(functools.partial(both, of))(x, dy, weight, bias) for of in ("native", "xla"))
    tolerance = {"float32": 4e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    for a, b in zip(*map(jax.tree.leaves, (got, want)), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=tolerance * np.abs(b).max())


def test_a_weight_that_vmap_does_not_map_is_one():
    """Its gradient is that of all rows, or of each batch; and a mapped weight is one for each batch."""
    x, weights = normal((3, 4, 8)), normal((3, 8), seed=1)
    for fun in (
        lambda x, w: bj.layer_norm(x, w, w),
        lambda x, w: bj.rms_norm(x, w),
        lambda x, w: bj.group_norm(x[..., None], w, w, num_groups=2, implementation="native")[..., 0],
        lambda x, w: bj.batch_norm(x, None, None, w, w, training=True, implementation="native")[0],
    ):
        loss = lambda x, w, fun=fun: (fun(x, w) * sent.arange(8.0)).sum()
        of_one = jax.grad(loss, (0, 1))
        whole = lambda x, w, loss=loss: jax.vmap(loss, (0, None))(x, w).sum()

        @jax.jit
        def pairs(x, weights, of_one=of_one, whole=whole):
            by_batch = [
                jnp.stack(a) for a in zip(*(of_one(a, w) for a, w in zip(x, weights, strict=True)), strict=True)
            ]
            shared = [jnp.stack(a) for a in zip(*(of_one(a, weights[0]) for a in x), strict=True)]
            return (
                (jax.vmap(of_one)(x, weights), by_batch),
                (jax.vmap(of_one, (0, None))(x, weights[0]), shared),
                (jax.grad(whole, (0, 1))(x, weights[0]), (shared[0], shared[1].sum(0))),
            )

        for got, want in pairs(x, weights):
            for a, b in zip(got, want, strict=True):
                close(a, b, "float64", scale=4)


def test_means_far_from_0_leave_variances_exact():
    """Of squares minus the square of the mean nothing would be left in float32."""
    x = normal((4, 6, 64), "float32")
    far = x + 4096
    y = bj.layer_norm(far)
    exact = np.asarray(far, np.float64)
    exact = (exact - exact.mean(-1, keepdims=True)) / np.sqrt(exact.var(-1, keepdims=True) + 1e-5)
    of_groups = (
        fun(far, implementation=implementation)
        for fun in (bj.instance_norm, functools.partial(bj.group_norm, num_groups=6))
        for implementation in ("native", "xla")
    )
    for got in (y, *of_groups):
        np.testing.assert_allclose(got, exact, atol=1e-3)
    channels = far.reshape(24, 64).T[:, :, None]
    for implementation in ("native", "xla"):
        got = bj.batch_norm(channels, training=True, implementation=implementation)[0]
        np.testing.assert_allclose(got[..., 0].T.reshape(far.shape), exact, atol=1e-3)


def test_rounding_before_the_weight():
    x, weight = normal((4, 64), "bfloat16"), normal((64,), "bfloat16", 1)
    normalized = bj.rms_norm(x)
    same_bits(bj.rms_norm(x, weight, round_before_weight=True), normalized * weight)
    assert (bj.rms_norm(x, weight) != normalized * weight).any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_sum_is_normalized_as_it_is_rounded(dtype):
    """In a program of its own, and in one where XLA could leave the rounding out; with the gradients of the two steps."""
    x, residual, dy, dtotal = (normal((4, 64), dtype, i) for i in range(4))
    weight = normal((64,), "float32", 4)
    step = lambda x, residual, weight: (bj.rms_norm(x + residual, weight), x + residual)
    for fun in (bj.add_rms_norm, jax.jit(bj.add_rms_norm)):
        y, total = fun(x, residual, weight)
        same_bits(total, x + residual)
        close(y, bj.rms_norm(total, weight), dtype)
    got, want = (jax.vjp(f, x, residual, weight)[1]((dy, dtotal)) for f in (bj.add_rms_norm, step))
    for a, b in zip(got, want, strict=True):
        close(a, b, dtype, scale=8)


@pytest.mark.parametrize("shape", [(12, 21000), (300, 64), (7, 33)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_sum_and_its_gradient_by_kernels(dtype, shape):
    """Of each result alone, and of both; and as a function."""
    x, residual, dy, dtotal = (normal(shape, dtype, i) for i in range(4))
    weight = normal(shape[-1:], "float32", 4)

    def both(implementation, args, dy, dtotal):
        of = lambda *args: bj.add_rms_norm(*args, offset=1, implementation=implementation)
        (y, total), pull = jax.vjp(of, *args)
        of_each = [jax.vjp(lambda *args, i=i: of(*args)[i], *args)[1](ct) for i, ct in enumerate((dy, dtotal))]
        as_function = bj.add_rms_norm_backward(total, weight, dy, dtotal, offset=1, implementation=implementation)
        return y, total, pull((dy, dtotal)), of_each, as_function

    args = (x, residual, weight), dy, dtotal
    got, want = (jax.jit(functools.partial(both, of))(*args) for of in ("native", "xla"))
    same_bits(got[1], want[1])
    same_bits(got[2][0], got[2][1])
    for a, b in zip(*map(jax.tree.leaves, (got, want)), strict=True):
        close(a, b, dtype, scale=8)
    for a, b in zip(got[2][1:], got[4], strict=True):  # r as the function finds it again is another sum
        close(a, b, dtype, scale=8)


def test_groups_of_nothing():
    """No NaN, in values and gradients."""
    with jax.debug_nans(True):
        for fun, shape in (
            (lambda x, w: bj.layer_norm(x, w), (3, 0)),
            (lambda x, w: bj.rms_norm(x, w), (3, 0)),
            (lambda x, w: bj.group_norm(x, w, num_groups=2), (2, 4, 0)),
            (lambda x, w: bj.instance_norm(x, w), (0, 4, 3)),
            (lambda x, w: bj.batch_norm(x, None, None, w, training=True)[0], (0, 4, 3)),
        ):
            x, w = sent.ones(shape), sent.ones(shape[1])
            gradients = jax.jit(jax.grad(lambda x, w: fun(x, w).sum(), (0, 1)))(x, w)
            assert not any(np.any(g) for g in gradients) and fun(x, w).shape == shape
        mean, var = sent.arange(3.0), sent.ones(3)
        _, *new = bj.batch_norm(sent.ones((0, 3)), mean, var, training=True)
        assert (new[0] == mean).all() and (new[1] == var).all()
        _, *new = bj.batch_norm(sent.full((1, 3), 2.0), training=True)
        assert (new[0] == 2).all() and (new[1] == 0).all()


# ---------------------------------------------------------------------------------------------------------------------
# batch_norm


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_are_torchs(training, dtype):
    """They may have float32 next to half precisions."""
    x, weight, bias = normal((4, 3, 5), dtype), normal((3,), dtype, 1), normal((3,), dtype, 2)
    wide = "float64" if dtype == "float64" else "float32"
    mean, var = normal((3,), wide, 3), normal((3,), wide, 4) ** 2
    theirs = [by_torch.tensor(a, "float64") for a in (x, mean, var, weight, bias)]
    want = F.batch_norm(*theirs, training, 0.3, 1e-3)
    y, *new = bj.batch_norm(x, mean, var, weight, bias, training=training, momentum=0.3, eps=1e-3)
    close(y, want, dtype, scale=4)
    for got, expected in zip(new, theirs[1:3], strict=True):
        assert got.dtype == wide
        close(got, expected, wide, scale=4)


def _whole(x):
    y, *new = bj.batch_norm(x, sent.zeros(3), sent.ones(3), training=True)
    return y, *new


def _loss(fun):
    return lambda x: sum((sent.arange(1.0, y.size + 1).reshape(y.shape) * y**2).sum() for y in fun(x))


def test_parts_of_a_batch_have_the_statistics_of_all():
    """By the names of mapped axes: values, and gradients through the sums over parts."""
    x = normal((8, 3, 5)) + 3 * sent.arange(8.0)[:, None, None]  # the means of the parts differ

    def of_parts(x):
        call = lambda x: bj.batch_norm(x, sent.zeros(3), sent.ones(3), training=True, axis_name=("i", "j"))
        y, mean, var = jax.vmap(jax.vmap(call, axis_name="j"), axis_name="i")(x.reshape(2, 2, 2, 3, 5))
        return y.reshape(x.shape), mean[0, 0], var[0, 0]

    both = jax.jit(lambda x: [(fun(x), jax.grad(_loss(fun))(x)) for fun in (of_parts, _whole)])
    for got, want in zip(*map(jax.tree.leaves, both(x)), strict=True):
        close(got, want, "float64", scale=10)


@pytest.mark.parametrize("by", ["shard_map", "auto", "explicit"])
def test_shards_of_a_batch_have_the_statistics_of_all(by):
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    x, over = normal((16, 3, 5)), mesh("explicit" if by == "explicit" else "auto")

    def of_shards(x):
        call = lambda x: bj.batch_norm(x, sent.zeros(3), sent.ones(3), training=True, axis_name="d")
        return jax.shard_map(call, mesh=over, in_specs=P("d"), out_specs=(P("d"), P(), P()))(x)

    program = lambda fun: jax.jit(lambda x: (fun(x), jax.grad(_loss(fun))(x)))
    want = program(_whole)(x)
    with jax.set_mesh(over):
        got = program(of_shards if by == "shard_map" else _whole)(*put((x,), over, (P("d"),)))
    for a, b in zip(*map(jax.tree.leaves, (got, want)), strict=True):
        close(a, b, "float64", scale=10)


@pytest.mark.parametrize("kind", ["auto", "explicit"])
def test_rows_and_columns_that_are_both_sharded(kind):
    """Sums of rows are over the shards of columns, and those of weights over the shards of rows."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    x, weight, bias, dy = normal((16, 32)), normal((32,), seed=1), normal((32,), seed=2), normal((16, 32), seed=3)

    def both(x, weight, bias, dy):
        y, pull = jax.vjp(lambda *args: bj.layer_norm(*args, implementation="native"), x, weight, bias)
        return y, *pull(dy)

    want = jax.jit(both)(x, weight, bias, dy)
    over, of_x, of_column = mesh(kind, 2), P("d", "e"), P("e")
    placed = put((x, weight, bias, dy), over, (of_x, of_column, of_column, of_x))
    with jax.set_mesh(over):
        got = jax.jit(both)(*placed)
    for a, b in zip(got, want, strict=True):
        close(a, b, "float64", scale=4)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused

ONES, THREE = sent.ones(3), sent.ones(3, jnp.float32)
COMMON = [
    (TypeError, "x must have one of the dtypes .*, got int32", {"x": sent.arange(3, dtype=jnp.int32)}),
    (ValueError, r"axis must be in \[-2, 1\] for x of shape \(2, 3\), got 2", {"axis": 2}),
    (ValueError, r"weight must have shape \(3,\), .*, got \(2,\)", {"weight": sent.ones(2)}),
    (TypeError, "weight must have the dtype of x, float64, got float32", {"weight": THREE}),
    (ValueError, "eps must be a static number of at least 0, got -1", {"eps": -1}),
]
NO_KERNEL = [
    (
        ValueError,
        rf"implementation='native', but there are kernels for training .* got {got}; xla computes the others",
        {"implementation": "native"} | kwargs,
    )
    for got, kwargs in (
        ("training=False, axis_name=None and axis 1 of shape .*", {}),
        (
            r"training=True, axis_name=None and axis 2 of shape \(2, 4, 3\)",
            {"x": normal((2, 4, 3)), "training": True, "axis": -1},
        ),
    )
]
FIRST_AXES = [
    (
        ValueError,
        r"implementation='native', but there are kernels for groups .* got axis 2 of shape \(2, 4, 3\); xla computes",
        {"x": normal((2, 4, 3)), "axis": -1, "implementation": "native"},
    ),
]
BIASED = [(TypeError, "bias must have the dtype of x, float64, got float32", {"bias": THREE})]
SEVERAL = [(ValueError, r"axis must be one axis or several different ones, got \(0, -2\)", {"axis": (0, -2)})]
REFUSED = {
    "layer_norm": [*COMMON, *BIASED, *SEVERAL],
    "rms_norm": [
        *COMMON, *SEVERAL,
        (ValueError, "offset must be a static number, got nan", {"offset": float("nan")}),
        (TypeError, "round_before_weight must be True or False, got 1", {"round_before_weight": 1}),
    ],
    "add_rms_norm": [
        *COMMON, *SEVERAL,
        (ValueError, r"residual must have shape \(2, 3\), that of x, got \(3,\)", {"residual": ONES}),
        (TypeError, "residual must have the dtype of x, float64, got float32", {"residual": normal((2, 3), "float32")}),
    ],
    "group_norm": [
        *COMMON, *BIASED, *FIRST_AXES,
        (ValueError, "num_groups must divide the 3 channels of x, got 2", {"num_groups": 2}),
        (ValueError, "num_groups must be at least 1, got 0", {"num_groups": 0}),
        (TypeError, "num_groups must be an integer, got 1.5", {"num_groups": 1.5}),
    ],
    "instance_norm": [*COMMON, *BIASED, *FIRST_AXES],
    "batch_norm": [
        *COMMON, *BIASED, *NO_KERNEL,
        (ValueError, r"running_var must have shape \(3,\), one for each channel .*, got \(2,\)", {"running_var": sent.ones(2)}),
        (ValueError, "running_mean must be given unless training, got None", {"running_mean": None}),
        (ValueError, r"momentum must be a static number in \[0, 1\], got 1.5", {"momentum": 1.5}),
        (TypeError, "training must be True or False, got None", {"training": None}),
        (ValueError, "axis_name must be an axis of .* around the call, got 'rows'", {"training": True, "axis_name": "rows"}),
    ],
}  # fmt: skip
ALWAYS = {
    "add_rms_norm": {"residual": normal((2, 3))},
    "group_norm": {"num_groups": 1},
    "batch_norm": {"running_mean": ONES, "running_var": ONES},
}


@pytest.mark.parametrize("name, error, match, kwargs", [(name, *row) for name, rows in REFUSED.items() for row in rows])
def test_what_is_refused(name, error, match, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(**({"x": normal((2, 3))} | ALWAYS.get(name, {}) | kwargs))


BACKWARD = [
    (ValueError, r"dy must have shape \(2, 3\), that of x, got \(3,\)", {"dy": ONES}),
    (TypeError, "dy must have the dtype of x, float64, got float32", {"dy": normal((2, 3), "float32")}),
    (ValueError, r"weight must have shape \(3,\), .*, got \(2,\)", {"weight": sent.ones(2)}),
]


@pytest.mark.parametrize(
    "name",
    [
        "layer_norm_backward",
        "rms_norm_backward",
        "group_norm_backward",
        "instance_norm_backward",
        "batch_norm_backward",
    ],
)
@pytest.mark.parametrize("error, match, kwargs", BACKWARD)
def test_what_a_gradient_refuses(name, error, match, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        more = ALWAYS["group_norm"] if name == "group_norm_backward" else {}
        getattr(bj, name)(**({"x": normal((2, 3)), "weight": ONES, "dy": normal((2, 3))} | more | kwargs))


def test_the_strided_one_is_the_same():
    assert bj.norm_strided is bj.layer_norm
