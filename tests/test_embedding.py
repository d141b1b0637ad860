"""Embeddings compared with PyTorch: values, gradients and sparse steps; ids of every width; what is never in memory; and what
is refused."""

import functools
import itertools
import re

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close, same_bits
from jax.sharding import PartitionSpec as P
from jax.test_util import check_grads
from oracles import embedding as oracles
from programs import FLOATS, normal
from sharded import collectives, devices, mesh, put

import baracuda_jax as bj
from baracuda_jax._core import checks

RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 6, (3, 8))
OFFSETS = np.array([0, 4, 4, 9, 24])  # with an empty bag, and one at the end
FUNCTIONAL = torch.nn.functional


def _everything(fun, args, dy):
    """The value and the gradients, in one program."""

    @jax.jit
    def run(*args):
        y, pull = jax.vjp(fun, *args)
        return y, pull(dy)

    return run(*args)


def _agree(fun, theirs, args, dtype, scale=8):
    """Value and gradients, PyTorch's of float64."""
    dy = normal(jax.eval_shape(fun, *args).shape, dtype, 1)
    want, gradients = by_torch.vjp(lambda *a: theirs(*(x.double() for x in a)).to(a[0].dtype), args, dy)
    y, got = _everything(fun, args, dy)
    close(y, want, dtype)
    for a, b in zip(got, gradients, strict=True):
        close(a, b, dtype, scale=scale)


# ---------------------------------------------------------------------------------------------------------------------
# Rows

ROWS = {
    "plain": {},
    "padding": {"padding_idx": 2},
    "padding from the end": {"padding_idx": -1},
    "bounded norms": {"max_norm": 1.5},
    "bounded sums": {"max_norm": 2.0, "norm_type": 1.0},
    "bounded maxima": {"max_norm": 0.7, "norm_type": float("inf")},
    "by frequency": {"scale_grad_by_freq": True},
    "all": {"scale_grad_by_freq": True, "padding_idx": 1, "max_norm": 1.0},
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("how", ROWS)
def test_embedding_is_torchs(how, dtype):
    """Of PyTorch the table changes, so it has a copy."""
    weight, options = normal((6, 5), dtype), ROWS[how]
    theirs = lambda w: _embedded(w, **options)
    _agree(lambda w: bj.embedding(IDS, w, **options), theirs, (weight,), dtype)


def _embedded(weight, max_norm=None, norm_type=2.0, **options):
    return FUNCTIONAL.embedding(torch.tensor(IDS), _bounded(weight, max_norm, norm_type), **options)


def _bounded(weight, max_norm, norm_type=2.0):
    """PyTorch's function changes the table in place, which is a leaf; its own lookup says what it becomes."""
    if max_norm is None:
        return weight
    rows = FUNCTIONAL.embedding(torch.arange(len(weight)), weight.detach().clone(), None, max_norm, norm_type)
    return weight + (rows - weight).detach()


@pytest.mark.parametrize("padding", [2, -1])
def test_the_row_of_padding_has_no_gradient_of_any_order(padding):
    weight = normal((6, 5), "float64")
    curvature = jax.jit(jax.hessian(lambda w: (bj.embedding(IDS, w, padding_idx=padding) ** 3).sum()))(weight[:, 0])
    assert not np.asarray(curvature)[padding].any() and np.asarray(curvature).any()
    t = sent.ones_like(weight)
    tangent = jax.jvp(lambda w: bj.embedding(IDS, w, padding_idx=padding), (weight,), (t,))[1]
    same_bits(tangent, jnp.broadcast_to((padding % 6 != IDS)[..., None], tangent.shape).astype(tangent.dtype))


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", checks.INTEGERS)
def test_ids_of_every_width(dtype, implementation):
    """Also where the dtype does not hold the number of rows, and for ids that no row has."""
    weight, ids = normal((300, 2)), np.array([[0, 127], [44, 7], [7, 100]])
    fun = lambda w, x: bj.embedding(x, w, padding_idx=299, implementation=implementation)
    same_bits(fun(weight, sent.asarray(ids, dtype)), weight[ids])
    bag = bj.embedding_bag(sent.asarray(ids, dtype), weight, padding_idx=299, implementation=implementation)
    close(bag, np.asarray(weight)[ids].mean(1), "float32")
    info = jnp.iinfo(dtype)
    outside = sent.asarray([max(info.min, -(2**40)), min(info.max, 2**40)], dtype)
    fun = lambda w, x: bj.embedding(x, w, implementation=implementation)
    y, (gradient,) = _everything(lambda w: fun(w, outside), (weight[:100],), sent.ones((2, 2)))
    if info.min == 0:
        same_bits(y[0], weight[0])
        y, gradient = y[1:], gradient[1:]
    assert not y.any() and not gradient.any()
    rows = bj.embedding_backward_rows(outside[1:], sent.ones((1, 2)), 100, implementation=implementation)
    assert rows[0].tolist() == [100] and not rows[1].any()


@pytest.mark.parametrize("options", ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True}), ids=str)
@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_an_index_stands_for_its_ids(options, implementation):
    ids, table, dy = RNG.integers(-1, 8, 40), normal((7, 5)), normal((40, 5), seed=1)
    index = bj.segment_index(ids, 7)

    def of(x):
        fun = lambda table: bj.embedding(x, table, **options, implementation=implementation)
        back = bj.backward.embedding_backward(x, dy, 7, **options, implementation=implementation)
        return *_everything(fun, (table,), dy), back

    # XLA's scatters have no fixed order on a GPU.
    agree = same_bits if implementation == "native" else functools.partial(close, dtype="float32")
    jax.tree.map(agree, of(index), of(ids))
    program = jax.make_jaxpr(jax.grad(lambda t: bj.embedding(index, t, implementation=implementation).sum()))(table)
    assert "segment_index" not in str(program) and " sort[" not in str(program)


def test_shapes_without_elements_and_of_any_rank():
    weight = normal((6, 2, 3))
    assert bj.embedding(jnp.int32(3), weight).tolist() == weight[3].tolist()
    assert bj.embedding(jnp.int32(3), weight[:, 0, 0]) == weight[3, 0, 0]
    assert bj.embedding(sent.zeros((0, 4), int), weight).shape == (0, 4, 2, 3)
    assert not bj.embedding(sent.zeros(4, int), weight[:0]).any()
    assert not bj.embedding_bag(sent.zeros(0, int), weight, sent.zeros(3, int)).any()
    assert bj.embedding_bag(sent.zeros((0, 4), int), weight).shape == (0, 2, 3)
    assert bj.embedding_bag(sent.zeros((4, 0), int), weight, mode="max").shape == (4, 2, 3)
    assert not bj.embedding_bag(sent.zeros((2, 3), int), weight[:0], mode="max").any()
    for mode in ("sum", "mean", "max"):
        bags = lambda ids, w: bj.embedding_bag(ids, w, mode=mode)
        of_none = weight[:, :, :0]
        tangent = jax.jvp(lambda w: bags(sent.zeros((3, 4), int), w), (of_none,), (of_none,))[1]
        assert tangent.shape == (3, 2, 0)
        assert jax.vmap(bags, (0, None))(sent.zeros((0, 3, 4), int), weight).shape == (0, 3, 2, 3)
    gradient = jax.jit(jax.grad(lambda w: bj.embedding_bag(sent.zeros(0, int), w, sent.zeros(3, int)).sum()))(weight)
    assert not gradient.any()
    ids, rows = bj.embedding_backward_rows(sent.zeros((0, 4), int), sent.zeros((0, 4, 2)), 9)
    assert ids.shape == (0,) and rows.shape == (0, 2)
    same_bits(bj.embedding_sgd_step(weight, sent.zeros(0, int), weight[:0], 0.1), weight)


# ---------------------------------------------------------------------------------------------------------------------
# Bags

BAGS = {
    "sum": {"mode": "sum"},
    "mean": {"mode": "mean"},
    "max": {"mode": "max"},
    "sum, padding": {"mode": "sum", "padding_idx": 2},
    "mean, padding": {"mode": "mean", "padding_idx": -1},
    "max, padding": {"mode": "max", "padding_idx": 0},
    "mean, bounded": {"mode": "mean", "max_norm": 1.5},
    "max, bounded": {"mode": "max", "max_norm": 1.5, "norm_type": 1.0},
}


def _bag(weight, x, offsets=None, max_norm=None, norm_type=2.0, **options):
    offsets = None if offsets is None else torch.tensor(offsets)
    table = _bounded(weight, max_norm, norm_type)
    return FUNCTIONAL.embedding_bag(torch.tensor(x), table, offsets, **options)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("how", BAGS)
def test_bags_are_torchs(how, dtype):
    """By offsets without and with the end, by lengths, and in rows; an empty bag is 0."""
    weight, options, flat = normal((6, 5), dtype), BAGS[how], IDS.ravel()
    starts, last = OFFSETS[:-1], {"include_last_offset": True}
    theirs = lambda w: _bag(w, flat, starts, **options)
    _agree(lambda w: bj.embedding_bag(flat, w, starts, **options), theirs, (weight,), dtype)
    theirs = lambda w: _bag(w, flat, OFFSETS, **options, **last)
    _agree(lambda w: bj.embedding_bag(flat, w, OFFSETS, **options, **last), theirs, (weight,), dtype)
    _agree(lambda w: bj.embedding_bag(flat, w, lengths=np.diff(OFFSETS), **options), theirs, (weight,), dtype)
    theirs = lambda w: _bag(w, IDS, **options)
    _agree(lambda w: bj.embedding_bag(IDS, w, **options), theirs, (weight,), dtype)
    at_last = jax.jit(lambda w: bj.embedding_bag(flat, w, sent.asarray([0, 24, 24]), **options))(weight)
    assert not at_last[1:].any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "bags, length, rows, columns",
    [(1, 500, 50, 8), (3, 513, 50, 3), (300, 1, 50, 40), (37, 63, 90, 5), (4200, 32, 1030, 8)],
)
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted sum", "weighted mean"])
def test_bags_in_rows_are_those_of_offsets(mode, bags, length, rows, columns, dtype):
    """Of few and many bags, short and long, with ids that no row has and a bag of such alone."""
    ids, weight = RNG.integers(-2, rows + 1, (bags, length)), normal((rows, columns), dtype)
    ids[-1] = -1
    arrays, offsets = (weight,), np.arange(0, ids.size, length)
    if "weighted" in mode:
        arrays = weight, normal(ids.shape, dtype, 2)

    def bag(x, *where):
        def run(table, w=None):
            w = None if w is None else w.reshape(x.shape)
            kind = mode.removeprefix("weighted ")
            return bj.embedding_bag(x, table, *where, mode=kind, per_sample_weights=w, padding_idx=4)

        return run

    dy = normal((bags, columns), dtype, 1)
    y, got = _everything(bag(ids), arrays, dy)
    want_y, want = _everything(bag(ids.ravel(), offsets), arrays, dy)
    close(y, want_y, dtype)
    assert not y[-1].any()
    for a, b in zip(got, want, strict=True):
        close(a, b, dtype, scale=8)


@pytest.mark.skipif(len(devices()) < 2, reason="needs several devices")
@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted sum", "weighted mean"])
def test_bags_in_rows_are_cut_as_their_rows_are(mode, kind):
    """No bag is communicated; also where the table is cut too."""
    ids, dy = RNG.integers(-2, 12, (16, 5)), normal((16, 4), seed=1)
    arrays = (normal((12, 4)), normal(ids.shape, seed=2))[: 2 if "weighted" in mode else 1]

    def bag(x):
        how = dict(mode=mode.removeprefix("weighted "), implementation="native")
        return lambda table, w=None: bj.embedding_bag(x, table, per_sample_weights=w, **how)

    want, gradients = _everything(bag(ids), arrays, dy)
    over = mesh(kind)
    with jax.set_mesh(over):
        by_row = P("d", None)
        x, dy, *arrays = put((ids, dy, *arrays), over, (by_row, by_row, P(), by_row)[: 2 + len(arrays)])
        forward = jax.jit(lambda x, *arrays: bag(x)(*arrays)).lower(x, *arrays).compile()
        assert forward(x, *arrays).sharding.spec == by_row and not collectives(forward.as_text())
        y, got = jax.jit(lambda x, dy, *arrays: _everything(bag(x), arrays, dy))(x, dy, *arrays)
    close(y, want, "float64")
    jax.tree.map(functools.partial(close, dtype="float64"), got, gradients)

    def cubes(x, table):
        y = bag(x)(table)
        return (y**3).sum(), y

    over = mesh(kind, axes=2)
    with jax.set_mesh(over):  # bags along one axis, rows of the table along the other
        x, table = put((ids, arrays[0]), over, (P("d", None), P("e", None)))
        (_, y), got = jax.jit(jax.value_and_grad(cubes, 1, has_aux=True))(x, table)
    (_, want), gradient = jax.value_and_grad(cubes, 1, has_aux=True)(ids, np.asarray(arrays[0]))
    close(y, want, "float64")
    close(got, gradient, "float64")


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_gradients_of_bags_by_frequency(mode):
    """Each row's is divided by the count of its own id. On a CPU, PyTorch divides all but the first by counts of others."""
    weight, dy, ids = normal((6, 5), "float64"), normal((3, 5), "float64", 1), np.minimum(IDS, 4)
    gradient = lambda **how: jax.vjp(lambda w: bj.embedding_bag(ids, w, mode=mode, **how), weight)[1](dy)[0]
    counts = np.maximum(np.bincount(ids.ravel(), minlength=6), 1)
    close(gradient(scale_grad_by_freq=True), np.asarray(gradient()) / counts[:, None], "float64")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padding", [None, 3])
def test_weights_of_entries_are_torchs(padding, dtype):
    weight, w, flat = normal((6, 5), dtype), normal((24,), dtype, 2), IDS.ravel()
    theirs = lambda t, w: _bag(t, flat, OFFSETS[:-1], mode="sum", per_sample_weights=w, padding_idx=padding)
    bag = lambda t, w: bj.embedding_bag(
        flat, t, OFFSETS[:-1], mode="sum", per_sample_weights=w, padding_idx=padding
    )  # fmt: skip
    _agree(bag, theirs, (weight, w), dtype)
    theirs = lambda t, w: _bag(t, IDS, mode="sum", per_sample_weights=w, padding_idx=padding)
    bag = lambda t, w: bj.embedding_bag(IDS, t, mode="sum", per_sample_weights=w, padding_idx=padding)
    _agree(bag, theirs, (weight, w.reshape(3, 8)), dtype)


def test_a_mean_has_weights_too():
    """Over the number of entries, as of a sum; dropped entries count nowhere and have no gradient."""
    weight, w, ids = normal((6, 5), "float64"), normal((24,), "float64", 2), IDS.ravel().copy()
    ids[[1, 5]] = -1, 6
    bag = lambda t, w: bj.embedding_bag(ids, t, OFFSETS[:-1], per_sample_weights=w, padding_idx=4)
    kept = (ids >= 0) & (ids < 6) & (ids != 4)
    want = np.zeros((4, 5))
    for b, (low, high) in enumerate(itertools.pairwise(OFFSETS)):
        rows = [np.asarray(w)[n] * np.asarray(weight)[ids[n]] for n in range(low, high) if kept[n]]
        want[b] = np.mean(rows, 0) if rows else 0
    close(bag(weight, w), want, "float64")
    check_grads(bag, (weight, w), order=2, modes=("fwd", "rev"))
    dw = jax.jit(jax.grad(lambda w: bag(weight, w).sum()))(w)
    assert not np.asarray(dw)[~kept].any() and np.asarray(dw)[kept].all()


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_on_ties_the_first_entry_takes_the_gradient_of_a_maximum(implementation):
    weight = sent.asarray([[1.0, 5.0], [1.0, 0.0], [0.0, 5.0]])
    bag = lambda w: bj.embedding_bag(sent.asarray([[1, 0, 2, -1]]), w, mode="max", implementation=implementation)
    assert bag(weight).tolist() == [[1, 5]]
    assert jax.jit(jax.grad(lambda w: bag(w).sum()))(weight).tolist() == [[0, 1], [1, 0], [0, 0]]
    assert bag(weight - 9).tolist() == [[-8, -4]]  # the entry that is dropped is not 0


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_backward_functions_of_bags(mode):
    weight, dy = normal((6, 5), "float64"), normal((4, 5), "float64", 1)
    want = jax.vjp(lambda w: bj.embedding_bag(IDS.ravel(), w, OFFSETS[:-1], mode=mode, padding_idx=1), weight)[1](dy)
    backward = getattr(bj.backward, f"embedding_bag_{mode}_backward")
    for options in (dict(offsets=OFFSETS[:-1]), dict(lengths=np.diff(OFFSETS))):
        close(backward(IDS.ravel(), weight, dy, padding_idx=1, **options), want[0], "float64")
    close(
        backward(IDS, weight, dy[:3]),
        jax.vjp(lambda w: bj.embedding_bag(IDS, w, mode=mode), weight)[1](dy[:3])[0],
        "float64",
    )


@pytest.mark.parametrize("how", ROWS)
def test_the_backward_function_of_rows(how):
    weight, dy = normal((6, 5), "float64"), normal((3, 8, 5), "float64", 1)
    options = {name: value for name, value in ROWS[how].items() if "norm" not in name}
    want = jax.vjp(lambda w: bj.embedding(IDS, w, **options), weight)[1](dy)[0]
    close(bj.backward.embedding_backward(IDS, dy, 6, **options), want, "float64")


# ---------------------------------------------------------------------------------------------------------------------
# The rows of a gradient, and steps with them


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [None, 3, 20])
def test_rows_of_a_gradient(size, dtype):
    x, dy = RNG.integers(-2, 12, (3, 8)), normal((3, 8, 2, 3), dtype)
    ids, rows = jax.jit(lambda x, dy: bj.embedding_backward_rows(x, dy, 10, size=size, padding_idx=-1))(x, dy)
    want = oracles.embedding_backward_rows(x, np.asarray(dy, np.float64), 10, size, 9)
    assert ids.dtype == jnp.int32 and rows.dtype == dtype
    np.testing.assert_array_equal(ids, want[0])
    close(rows, want[1], dtype, scale=4)
    if size is None:
        dense = sent.zeros((10, 2, 3), dtype).at[ids].set(rows, mode="drop")
        close(dense, bj.backward.embedding_backward(x, dy, 10, padding_idx=-1), dtype)


def _steps_of_torch(kind, weight, x, dys, padding, **options):
    """The table, and the state's sums, after a step for each dy."""
    table = torch.nn.Embedding(*weight.shape, padding_idx=padding, sparse=True, dtype=torch.float64)
    with torch.no_grad():
        table.weight.copy_(by_torch.tensor(weight))
    optimizer = kind(table.parameters(), **options)
    for dy in dys:
        optimizer.zero_grad()
        table(torch.tensor(x)).backward(by_torch.tensor(dy))
        assert table.weight.grad.is_sparse
        optimizer.step()
    state = optimizer.state[table.weight]
    return by_torch.numbers(table.weight), by_torch.numbers(state["sum"]) if "sum" in state else None


@pytest.mark.parametrize("padding", [None, 4])
def test_steps_are_those_of_sparse_tables_of_torch(padding):
    weight, dys = normal((40, 5), "float64"), [normal((3, 8, 5), "float64", i) for i in range(3)]
    want, _ = _steps_of_torch(torch.optim.SGD, weight, IDS, dys, padding, lr=0.3)
    step = jax.jit(lambda w, dy, rate: bj.embedding_sgd_step(w, IDS, dy, rate, padding_idx=padding))
    got = weight
    for dy in dys:
        got = step(got, dy, 0.3)
    close(got, want, "float64")
    same_bits(got[6:], weight[6:])

    start = sent.full_like(weight, 0.25)
    want, sums = _steps_of_torch(
        torch.optim.Adagrad, weight, IDS, dys, padding, lr=0.3, eps=1e-8, initial_accumulator_value=0.25
    )
    step = jax.jit(lambda *a: bj.embedding_adagrad_step(*a[:2], IDS, *a[2:], eps=1e-8, padding_idx=padding))
    state = weight, start
    for dy in dys:
        state = step(*state, dy, 0.3)
    close(state[0], want, "float64")
    close(state[1], sums, "float64")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_steps_of_half_precision_are_rounded_once(dtype):
    """Of what is added up in float32, and with accumulators of float32."""
    weight, x, dy = normal((9, 4), dtype), sent.zeros(500, int), sent.ones((500, 4), dtype)
    got = bj.embedding_sgd_step(weight, x, dy, 1e-3)
    close(got[0], np.asarray(weight[0], np.float64) - 0.5, dtype, scale=0.3)
    sums = sent.zeros((9, 4), jnp.float32)
    new, sums = bj.embedding_adagrad_step(weight, sums, x, dy, 0.5)
    assert new.dtype == dtype and sums.dtype == jnp.float32
    same_bits(sums[0], sent.full(4, 250000.0, jnp.float32))
    close(new[0], np.asarray(weight[0], np.float64) - 0.5, dtype, scale=0.3)  # a GPU's quotient may be a rounding off


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_steps_are_the_same_by_all_rows_and_by_those_that_a_batch_has(dtype):
    """With room for all, given or not; rows that a batch does not have keep their bits, also NaNs."""
    weight, sums = np.array(normal((70, 6), dtype)), np.array(normal((70, 6), dtype, 1)) ** 2
    x = RNG.integers(0, 60, (3, 40))
    weight[61], sums[62] = np.nan, np.nan
    dy = normal((*x.shape, 6), dtype, 2)
    for step, tables in ((bj.embedding_sgd_step, [weight]), (bj.embedding_adagrad_step, [weight, sums])):
        all_rows, those = (jax.tree.leaves(step(*tables, x, dy, 0.3, size=size, padding_idx=5)) for size in (None, 60))
        for a, b, before in zip(all_rows, those, tables, strict=True):
            close(a, b, dtype)
            same_bits(a[60:], before[60:])
            same_bits(a[5], before[5])


def test_a_step_of_zeros_and_without_eps_changes_nothing():
    weight = normal((9, 4))
    new, sums = bj.embedding_adagrad_step(weight, sent.zeros((9, 4)), sent.arange(3), sent.zeros((3, 4)), 0.5, eps=0.0)
    same_bits(new, weight)
    assert not sums.any()


def test_steps_have_no_derivative():
    weight, x, dy = normal((9, 4)), sent.arange(3), sent.ones((3, 4))
    gradient = jax.jit(jax.grad(lambda w, dy: bj.embedding_sgd_step(w, x, dy, 0.5).sum(), (0, 1)))(weight, dy)
    assert not any(g.any() for g in gradient)


# ---------------------------------------------------------------------------------------------------------------------
# What runs, and what is never in memory

V, N, D, B = 1009, 770, 24, 77


def _text(fun, *args, donate=()):
    text = jax.jit(fun, donate_argnums=donate).lower(*args).compile().as_text()
    return text, set(re.findall(r'custom_call_target="baracuda\.(\w+)"', text))


def _made(text, *shape):
    """Instructions whose result has this shape, other than what is given."""
    of = rf"= f32\[{','.join(map(str, shape))}\]\S* (\w[\w-]*)\("
    return [name for name in re.findall(of, text) if name != "parameter"]


def _arrays():
    rng = np.random.default_rng(0)
    return normal((V, D)), rng.integers(0, V, N), np.arange(0, N, N // B)


def test_kernels_compute_an_embedding_and_its_gradient():
    weight, x, _ = _arrays()
    _, called = _text(lambda w, x: bj.embedding(x, w), weight, x)
    assert called == {"take_rows"}
    _, called = _text(lambda w, x: jax.grad(lambda w: (bj.embedding(x, w) ** 2).sum())(w), weight, x)
    assert "segment_sum" in called


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_form_no_row_for_each_entry(mode):
    """Neither in the result nor in the gradient; and nothing is sorted or searched for the result."""
    weight, x, offsets = _arrays()
    bag = lambda w, x, offsets: bj.embedding_bag(x, w, offsets, mode=mode, padding_idx=3)
    text, called = _text(bag, weight, x, offsets)
    # On a GPU a kernel searches in the offsets.
    assert called - {"searchsorted"} == {
        {"sum": "segment_sum", "mean": "segment_mean_of_sources", "max": "segment_max"}[mode]
    }
    assert not _made(text, N, D) and not _made(text, V, D)
    assert "baracuda.take_along" not in text and " sort(" not in text
    text, called = _text(jax.grad(lambda *a: (bag(*a) ** 2).sum()), weight, x, offsets)
    assert ("segment_sum_of_arg" if mode == "max" else "segment_sum") in called
    assert not _made(text, N, D) and set(_made(text, V, D)) <= {"custom-call", "get-tuple-element", "copy", "bitcast"}


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_in_rows_are_neither_indexed_nor_searched(mode):
    weight, ids = normal((1030, 8), "float32"), RNG.integers(0, 1030, (4200, 32))
    bag = lambda w, x: bj.embedding_bag(x, w, mode=mode)
    _, called = _text(bag, weight, ids)
    assert called == {{"sum": "segment_sum", "mean": "segment_mean_of_sources", "max": "segment_max"}[mode]}
    text, called = _text(jax.grad(lambda *a: (bag(*a) ** 2).sum()), weight, ids)
    assert not called & {"segment_index", "searchsorted"} and not _made(text, *ids.shape, 8)


def test_weights_of_entries_form_no_row_for_each():
    weight, x, offsets = _arrays()
    bag = lambda t, w: (bj.embedding_bag(x, t, offsets, mode="sum", per_sample_weights=w) ** 2).sum()
    text, called = _text(jax.grad(bag, (0, 1)), weight, normal((N,)))
    assert {"segment_weighted_sum", "sampled_dot"} <= called and not _made(text, N, D)


def test_rows_of_a_gradient_are_not_made_of_all_rows():
    _, x, _ = _arrays()
    text, called = _text(lambda x, dy: bj.embedding_backward_rows(x, dy, V, size=500), x, normal((N, D)))
    assert called == {"sort", "run_starts", "cumsum", "segment_sum"}
    assert not _made(text, V, D) and not _made(text, N, D)


@pytest.mark.parametrize("size", [None, 500])
def test_steps_update_a_donated_table_in_place(size):
    weight, x, _ = _arrays()
    text, called = _text(
        lambda w, x, dy, rate: bj.embedding_sgd_step(w, x, dy, rate, size=size),
        weight, x, normal((N, D)), 0.1, donate=(0,),
    )  # fmt: skip
    made = lambda called: called - {"segment_index"}  # a GPU has kernels for it
    assert "segment_sum" in called if size else made(called) == {"segment_sgd_step"}
    assert "input_output_alias={ {}: (0, {}," in text and "copy" not in _made(text, V, D)
    text, called = _text(
        lambda w, a, x, dy: bj.embedding_adagrad_step(w, a, x, dy, 0.1, size=size),
        weight, sent.ones_like(weight), x, normal((N, D)), donate=(0, 1),
    )  # fmt: skip
    assert "segment_sum" in called if size else made(called) == {"segment_adagrad_step"}
    assert "{0}: (0, {}," in text and "{1}: (1, {}," in text and "copy" not in _made(text, V, D)


def test_under_vmap_and_in_jitted_loops():
    weight, x = normal((3, 6, 5), "float64"), RNG.integers(-1, 7, (3, 8))
    for fun in (
        lambda x, w: bj.embedding(x, w, padding_idx=2, max_norm=1.0, scale_grad_by_freq=True),
        lambda x, w: bj.embedding_bag(x, w, sent.asarray([0, 3, 3]), mode="max", padding_idx=1),
        lambda x, w: bj.embedding_backward_rows(x, w[sent.zeros(8, int)], 6)[1],
        lambda x, w: bj.embedding_sgd_step(w, x, w[sent.zeros(8, int)], 0.5),
    ):
        mapped = jax.jit(jax.vmap(fun))(x, weight)
        each = np.stack([fun(*a) for a in zip(x, weight, strict=True)])
        close(mapped, each, "float64")


# ---------------------------------------------------------------------------------------------------------------------
# Refused

I, X, W = np.zeros(4, int), np.zeros((4, 2), jnp.float32), {"offsets": np.zeros(2, int)}


@pytest.mark.parametrize(
    "name, error, match, args, kwargs",
    [
        ("embedding", TypeError, "x must have one of the dtypes int8.*got float32", (X, X), {}),
        ("embedding", ValueError, r"x must be a SegmentIndex of ids \[N\], without batches, got ids \(2, 2\)", (bj.segment_index(I.reshape(2, 2), 4), X), {}),
        ("embedding", ValueError, "weight must be left out or have the 4 segments of the index, got 3", (bj.segment_index(I, 4), X[:3]), {}),
        ("embedding", TypeError, "weight must have one of the dtypes float32.*got int32", (I, X.astype(jnp.int32)), {}),
        ("embedding", ValueError, "weight must have at least one dimension, the rows; got a scalar", (I, 1.0), {}),
        ("embedding", ValueError, r"padding_idx must be in \[-4, 3\] for 4 rows, got 4", (I, X), {"padding_idx": 4}),
        ("embedding", ValueError, "padding_idx must be at least -4, got -5", (I, X), {"padding_idx": -5}),
        ("embedding", TypeError, "padding_idx must be an integer, got 1.5", (I, X), {"padding_idx": 1.5}),
        ("embedding", ValueError, "max_norm must be None or a static number of at least 0, got -1", (I, X), {"max_norm": -1}),
        ("embedding", ValueError, "norm_type must be a static number above 0, got 0", (I, X), {"norm_type": 0}),
        ("embedding", TypeError, "scale_grad_by_freq must be True or False, got 1", (I, X), {"scale_grad_by_freq": 1}),
        ("embedding", TypeError, "got an unexpected keyword argument 'input'; use x", (), {"input": I}),
        ("embedding_bag", TypeError, "x must have one of the dtypes int8.*got float32", (X, X), {}),
        ("embedding_bag", ValueError, r"x must have one dimension, or two .* got shape \(1, 2, 2\)", (I.reshape(1, 2, 2), X), {}),
        ("embedding_bag", TypeError, "either offsets or lengths must be given .* got neither", (I, X), {}),
        ("embedding_bag", TypeError, "either offsets or lengths must be given .* got both", (I, X), {**W, "lengths": I}),
        ("embedding_bag", ValueError, "offsets and lengths must be None for x of two", (I.reshape(2, 2), X), W),
        ("embedding_bag", TypeError, "offsets must have one of the dtypes int8.*got float32", (I, X, X), {}),
        ("embedding_bag", ValueError, r"offsets must have one dimension, the bags; got shape \(2, 2\)", (I, X, I.reshape(2, 2)), {}),
        ("embedding_bag", ValueError, r"lengths must have one dimension, the bags; got shape \(\)", (I, X), {"lengths": 4}),
        ("embedding_bag", ValueError, "include_last_offset must be False without offsets", (I, X), {"lengths": I, "include_last_offset": True}),
        ("embedding_bag", ValueError, "mode must be one of 'sum', 'mean', 'max', got 'min'", (I, X), {**W, "mode": "min"}),
        ("embedding_bag", ValueError, "per_sample_weights must be None with mode 'max'", (I, X), {**W, "mode": "max", "per_sample_weights": X[:, 0]}),
        ("embedding_bag", ValueError, r"per_sample_weights must have shape \(4,\), that of x, got \(4, 2\)", (I, X), {**W, "per_sample_weights": X}),
        ("embedding_bag", TypeError, "per_sample_weights must have the dtype of weight, float32, got float16", (I, X), {**W, "per_sample_weights": X[:, 0].astype("float16")}),
        ("embedding_backward_rows", ValueError, r"dy must have shape \(4, 2\), that of x and of a row, got \(3, 2\)", (I, X[:3], 5), {}),
        ("embedding_backward_rows", TypeError, "dy must have one of the dtypes float32.*got int", (I, I, 5), {}),
        ("embedding_backward_rows", ValueError, "num_rows must be at least 0, got -1", (I, X, -1), {}),
        ("embedding_backward_rows", ValueError, "size must be at least 0, got -1", (I, X, 5), {"size": -1}),
        ("embedding_sgd_step", ValueError, r"dy must have shape \(4, 2\), that of x and of a row, got \(4,\)", (X, I, X[:, 0]), {}),
        ("embedding_sgd_step", TypeError, "dy must have the dtype of weight, float32, got bfloat16", (X, I, X.astype("bfloat16")), {}),
        ("embedding_sgd_step", ValueError, r"learning_rate must have shape \(\)", (X, I, X, X), {}),
        ("embedding_adagrad_step", ValueError, r"accumulator must have shape \(4, 2\), that of weight, got \(4,\)", (X, X[:, 0], I, X), {}),
        ("embedding_adagrad_step", ValueError, "eps must be a static number at least 0, got -1", (X, X, I, X), {"eps": -1}),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)


def test_docstrings_of_several_parts_have_one_indentation():
    """Where Python leaves that of what is written in a function, and where it takes it away, as 3.13 does."""
    for fun in (bj.embedding_sgd_step, bj.embedding_adagrad_step):
        lines = fun.__doc__.splitlines()
        for section in ("Args:", "Returns:", "Raises:"):
            assert section in lines and lines[lines.index(section) + 1].startswith("    ")
        assert any(line.startswith("Precision: ") for line in lines)
