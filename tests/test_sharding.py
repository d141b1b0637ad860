"""Law: sharded arrays give what whole ones give, and communicate what the table says, on every kind of mesh."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import Example, close, has_derivative, loss_of
from jax.sharding import PartitionSpec as P
from laws import LAWS
from laws.sharding import (
    EXPECTED,
    communicates,
    equal,
    is_silent,
    programs,
    shard_map_over_all_axes,
    shard_map_over_some_axes,
)
from sharded import SHARDED, collectives, devices, mesh, put

import baracuda_jax as bj
from baracuda_jax._core.op import OPS
from baracuda_jax.packed._family import random_blocks

# Inside a shard_map, dropout has the mask of the array that it is given.
SILENT = [e for e in SHARDED if is_silent(e) and e.op != "dropout"]
KINDS = ("auto", "explicit")
REDUCED_BY_ROWS = [
    e
    for e in SHARDED
    if e.op.startswith("segment") and e.op not in ("segment_take", "segment_softmax") and e.way == "rows"
]


@pytest.fixture(autouse=True)
def _several_devices():
    if len(devices()) < 2:
        pytest.skip("needs several devices")


def pytest_generate_tests(metafunc):
    if "sharded" in metafunc.fixturenames:
        runs = [(e, kind, program) for e in SHARDED for kind in KINDS for program in programs(e)]
        names = ["-".join((str(e), kind, program.replace(" ", "_"))) for e, kind, program in runs]
        metafunc.parametrize("sharded, kind, program", runs, ids=names)
    if "silent" in metafunc.fixturenames:
        metafunc.parametrize("silent", SILENT, ids=str)


def test_communicates_what_the_table_says(sharded, kind, program):
    communicates(sharded, kind, program)


def test_the_table_has_every_op_and_way():
    assert set(EXPECTED) == {(e.op, e.way) for e in SHARDED}
    known = {op for op, _ in EXPECTED}
    is_known = lambda name: name in known or (OPS[name].made_of and all(map(is_known, OPS[name].made_of)))
    assert [op.name for op in OPS.values() if not op.is_facade and not is_known(op.name)] == []


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("by_rows", REDUCED_BY_ROWS, ids=str)
def test_segments_that_are_empty_on_every_shard(by_rows, dtype):
    e = by_rows
    if dtype not in OPS[e.op].dtypes:
        pytest.skip("the op has no such dtype")
    data, ids = np.round(e.args[0]).astype(dtype), np.where(e.args[1] == 2, -1, e.args[1])
    fun = functools.partial(e.fun, empty_value=5)
    got = jax.jit(fun)(*put((data, ids), mesh("auto"), e.specs))
    assert (np.asarray(got)[2] == 5).all()
    close(got, fun(jnp.asarray(data), jnp.asarray(ids)), dtype, scale=4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_edges_and_rows_along_two_axes(reduce, kind):
    """Where shards of one are combined in another way than those of the other, one is cut."""
    rng = np.random.default_rng(2)
    x, edges = rng.standard_normal((8, 3)).astype("float32"), rng.integers(-1, 9, (2, 16))
    fun = lambda x, *edges: bj.aggregate(x, *edges, reduce=reduce, num_segments=5, implementation="native")
    both = lambda *args: (fun(*args), jax.grad(lambda *args: (fun(*args) ** 2).sum())(*args))
    over = mesh(kind, 2)
    with jax.set_mesh(over):
        got = jax.jit(both)(*put((x, *edges), over, (P("d", None), P("e"), P("e"))))
    equal(got, both(x, *edges))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_packed_weights_are_not_cut(kind):
    """Four blocks of a row on eight devices, which divide its bytes."""
    data, x = (
        random_blocks(np.random.default_rng(0), "Q8_0", 16, 4),
        np.linspace(-1, 1, 8 * 128, dtype="f4").reshape(8, 128),
    )
    multiply = jax.jit(lambda x, data: bj.gguf_mmvq(x, data, "Q8_0", implementation="native"))
    want, over = multiply(x, data), mesh(kind)
    with jax.set_mesh(over):
        got = multiply(*put((x, data), over, (P(None, "d"),) * 2))
    equal(got, want)


def test_shard_map_over_all_axes(silent):
    shard_map_over_all_axes(silent)


def test_shard_map_over_some_axes(silent):
    shard_map_over_some_axes(silent)


def test_a_kernel_call_says_what_its_batches_are():
    """A law, on an op whose sharded batches are known by that alone: each run has it."""
    op = OPS["lp_pool1d"]
    LAWS["vmap_with_spmd_axis_name"].check(Example(op, op.cases[0], "float32"))


# ---------------------------------------------------------------------------------------------------------------------
# Batches of the cases of the laws, which have other sizes


def _batched(op):
    """The op on 8 examples at once, an argument that has a derivative first, those after it mapped too or shared."""
    example = Example(op, op.cases[0], "float32" if "float32" in op.dtypes else op.dtypes[0])
    rng = np.random.default_rng(0)
    shuffled = lambda a: rng.permutation(np.asarray(a)) if a.ndim else np.asarray(a)
    first = example.moving[0]
    order = [first, *(i for i in range(len(example.args)) if i != first)]
    args = [example.args[i] for i in order]
    many = [np.stack([shuffled(a) for _ in range(8)]) for a in args]
    call = lambda *args: example.call(*(args[order.index(i)] for i in range(len(args))))
    loss = loss_of(call)
    shared = [many[0], *args[1:]]
    in_axes = (0, *(None,) * (len(many) - 1))
    programs = {
        "second": jax.vmap(lambda x, *rest: jax.jvp(lambda x: jax.grad(loss)(x, *rest), (x,), (x,))[1]),
        "shared forward": jax.vmap(call, in_axes),
        "shared gradient": jax.vmap(jax.grad(loss), in_axes),
    }
    return programs, many, shared


BATCHED = ("second", "shared forward", "shared gradient")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", BATCHED)
def test_batches_need_no_communication(op, kind, program):
    if not has_derivative(op) and "forward" not in program:
        pytest.skip("the op has no derivative")
    if op.library in ("cudnn", "cufft", "cusolver"):
        pytest.skip("XLA gathers the operands of these libraries")
    programs, many, shared = _batched(op)
    if any(jnp.dtype(a.dtype) == jnp.int4 for a in many):
        pytest.skip("JAX's compiled programs take no sharded arrays of 4 bits")
    args = shared if program.startswith("shared") else many
    want = jax.jit(programs[program])(*jax.device_put(args, devices()[0]))
    over = mesh(kind)
    placed = put(args, over, [P("d") if i == 0 or args is many else P() for i in range(len(args))])
    with jax.set_mesh(over):
        compiled = jax.jit(programs[program]).lower(*placed).compile()
        assert collectives(compiled.as_text()) == {}
        got = compiled(*placed)
    if kind == "explicit":
        assert jax.typeof(got).sharding.spec[0] == "d"
    equal(got, want, 1)
