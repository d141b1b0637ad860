"""Law: sharded arrays give what whole ones give, and communicate what the table says, on every kind of mesh.

`pytest tests/test_sharding.py --full` runs every program, not a sample."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import Example, close, has_derivative, loss_of
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from sharded import SHARDED, collectives, expected, mesh, put

from baracuda_jax._core.op import OPS

EXPECTED = expected()
SILENT = [e for e in SHARDED if not EXPECTED[e.op, e.way][0] and not EXPECTED[e.op, e.way][1]]
KINDS = ("auto", "explicit")


@pytest.fixture(autouse=True)
def _eight_devices():
    if len(jax.devices("cpu")) < 8:
        pytest.skip("needs 8 CPU devices")


def _stacked(specs):
    return [P(None, *spec) for spec in specs]


def _programs(e):
    """{name: (program, whether it has a gradient, whether its arguments are stacked)}; a stack is not sharded."""
    argnums = tuple(range(e.moving))
    gradient = jax.grad(loss_of(e.fun), argnums=argnums)
    scan = lambda *args: jax.lax.scan(lambda carry, xs: (carry, e.fun(*xs)), 0, args)[1]
    out = {"forward": (e.fun, False, False), "scan": (scan, False, True)}
    if e.moving:
        tangent = lambda *args: jax.jvp(lambda x: e.fun(x, *args[1:]), args[:1], args[:1])[1]
        out |= {
            "gradient": (gradient, True, False),
            "tangent": (tangent, True, False),
            "vmap of gradient": (jax.vmap(gradient), True, True),
            "scan of gradient": (
                lambda *args: jax.lax.scan(lambda carry, xs: (carry, gradient(*xs)), 0, args)[1], True, True,
            ),
        }  # fmt: skip
    return out


def _cells(full):
    """Forward and gradient on both kinds of mesh, and of the other programs, in turn, one on one."""
    for e in SHARDED:
        others = [name for name in _programs(e) if name not in ("forward", "gradient")]
        turn = zlib.crc32(str(e).encode())
        for kind in KINDS:
            for name in _programs(e):
                sampled = name == others[turn % len(others)] and kind == KINDS[turn // 7 % 2]
                if full or name in ("forward", "gradient") or sampled:
                    yield pytest.param(e, kind, name, id=f"{e}-{kind}-{name.replace(' ', '_')}")


def pytest_generate_tests(metafunc):
    if "sharded" in metafunc.fixturenames:
        metafunc.parametrize("sharded, kind, program", list(_cells(metafunc.config.getoption("full"))))


def _equal(got, want, scale=4):
    jax.tree.map(lambda a, b: close(a, b, "float32", scale), got, want)


def test_communicates_what_the_table_says(sharded, kind, program):
    e = sharded
    fun, has_gradient, is_stacked = _programs(e)[program]
    stack = lambda a: np.stack([a, np.roll(a, 1, 0)]) if np.ndim(a) else np.stack([a, a])
    args, specs = (list(map(stack, e.args)), _stacked(e.specs)) if is_stacked else (e.args, e.specs)
    want = jax.jit(fun)(*jax.device_put(args, jax.devices("cpu")[0]))
    over = mesh(kind)
    placed = put(args, over, specs)
    with jax.set_mesh(over):
        compiled = jax.jit(fun).lower(*placed).compile()
        got = compiled(*placed)
    found = collectives(compiled.as_text())
    if program == "tangent":
        assert set(found) <= set(EXPECTED[e.op, e.way][0]) | set(EXPECTED[e.op, e.way][1])
    else:
        assert found == EXPECTED[e.op, e.way][has_gradient]
    _equal(got, want)
    if kind == "explicit" and program == "forward":
        assert [name for name in jax.typeof(got).sharding.spec if name] == [name for name in e.out if name]
    if kind == "explicit" and program == "gradient":
        for ct, x in zip(got, placed, strict=False):
            assert jax.typeof(ct).sharding.spec == jax.typeof(x).sharding.spec


def test_the_table_has_every_op_and_way():
    assert set(EXPECTED) == {(e.op, e.way) for e in SHARDED}
    assert {op for op, _ in EXPECTED} == set(OPS)


@pytest.mark.parametrize("sharded_alone", SILENT, ids=str)
def test_shard_map_over_all_axes(sharded_alone):
    """The op of each shard; and the gradient of a replicated scale that multiplies a sharded array, under check_vma."""
    e, over = sharded_alone, mesh("auto")
    want = e.fun(*jax.device_put(e.args, jax.devices("cpu")[0]))
    placed = put(e.args, over, e.specs)
    check_vma = bool(zlib.crc32(str(e).encode()) % 2)
    fun = jax.shard_map(e.fun, mesh=over, in_specs=e.specs, out_specs=e.out, check_vma=check_vma)
    compiled = jax.jit(fun).lower(*placed).compile()
    assert collectives(compiled.as_text()) == {}
    _equal(compiled(*placed), want)
    if not e.moving:
        return

    def loss(scale, *args):
        y = e.fun(scale * args[0], *args[1:])
        return jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y), y, 0)))

    def total(scale, *args):
        local = lambda scale, *args: jax.lax.psum(loss(scale, *args), "d")
        return jax.shard_map(local, mesh=over, in_specs=(P(), *e.specs), out_specs=P(), check_vma=True)(scale, *args)

    scale = jnp.float32(1.1)
    got = jax.jit(jax.grad(total))(jax.device_put(scale, NamedSharding(over, P())), *placed)
    _equal(got, jax.grad(loss)(*jax.device_put((scale, *e.args), jax.devices("cpu")[0])), scale=20)


@pytest.mark.parametrize("sharded_alone", SILENT, ids=str)
def test_shard_map_over_some_axes(sharded_alone):
    """Axis d by hand, another left to the compiler."""
    e, over = sharded_alone, mesh("auto", (4, 2), ("d", "e"))
    want = e.fun(*jax.device_put(e.args, jax.devices("cpu")[0]))
    with jax.set_mesh(over):
        fun = jax.shard_map(e.fun, axis_names={"d"}, in_specs=e.specs, out_specs=e.out)
        _equal(jax.jit(fun)(*put(e.args, over, e.specs)), want)


# ---------------------------------------------------------------------------------------------------------------------
# Batches of the cases of the laws, which have other sizes


def _batched(op, dtype="float32"):
    """The op on 8 examples at once, the arguments after the first mapped too or shared."""
    example = Example(op, op.cases[0], dtype)
    rng = np.random.default_rng(0)
    shuffled = lambda a: jnp.asarray(rng.permutation(np.asarray(a)) if a.ndim else a)
    many = [jnp.stack([shuffled(a) for _ in range(8)]) for a in example.args]
    call = example.call
    loss = loss_of(call)
    programs = {
        "forward": jax.vmap(call),
        "gradient": jax.vmap(jax.grad(loss)),
        "tangent": jax.vmap(lambda x, *rest: jax.jvp(lambda x: call(x, *rest), (x,), (x,))[1]),
        "second": jax.vmap(lambda x, *rest: jax.jvp(lambda x: jax.grad(loss)(x, *rest), (x,), (x,))[1]),
    }
    shared = [many[0], *example.args[1:]]
    in_axes = (0, *(None,) * (len(many) - 1))
    programs |= {"shared forward": jax.vmap(call, in_axes), "shared gradient": jax.vmap(jax.grad(loss), in_axes)}
    return programs, many, shared


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", ["second", "shared forward", "shared gradient"])
def test_batches_need_no_communication(op, kind, program, request):
    if not has_derivative(op) and "forward" not in program:
        pytest.skip("the op has no derivative")
    if program == "second" and kind != KINDS[len(op.name) % 2] and not request.config.getoption("full"):
        pytest.skip("not in the sample")
    programs, many, shared = _batched(op)
    if program == "second" and kind == "explicit" and op.name == "segment_prod":
        pytest.xfail("the reference's gathers do not run on sharded explicit arrays yet")
    args = shared if program.startswith("shared") else many
    want = programs[program](*jax.device_put(args, jax.devices("cpu")[0]))
    over = mesh(kind)
    placed = put(args, over, [P("d") if i == 0 or args is many else P() for i in range(len(args))])
    with jax.set_mesh(over):
        compiled = jax.jit(programs[program]).lower(*placed).compile()
        assert collectives(compiled.as_text()) == {}
        got = compiled(*placed)
    if kind == "explicit":
        assert jax.typeof(got).sharding.spec[0] == "d"
    _equal(got, want, 1)
