"""Law: arrays sharded along batch dimensions stay so, on every kind of mesh, with no communication."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import Example, close, has_derivative, loss_of
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

KINDS = {"auto": AxisType.Auto, "explicit": AxisType.Explicit}


def _mesh(kind, shape=(8,), names=("d",)):
    devices = jax.devices("cpu")
    if len(devices) < 8:
        pytest.skip("needs 8 CPU devices")
    return jax.make_mesh(shape, names, axis_types=(KINDS[kind],) * len(shape), devices=devices[:8])


def _collectives(compiled):
    return re.findall(r"\b(all-\w+|collective-\w+|reduce-scatter)(?:-start)?\(", compiled.as_text())


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


PROGRAMS = ("forward", "gradient", "tangent", "second", "shared forward", "shared gradient")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_batches_need_no_communication(op, kind, program):
    if not has_derivative(op) and "forward" not in program:
        pytest.skip("the op has no derivative")
    programs, many, shared = _batched(op)
    if program == "second" and kind == "explicit" and op.name == "segment_prod":
        pytest.xfail("the reference's gathers do not run on sharded explicit arrays yet")
    mesh = _mesh(kind)
    args = shared if program.startswith("shared") else many
    with jax.default_device(jax.devices("cpu")[0]):
        want = programs[program](*jax.device_put(args, jax.devices("cpu")[0]))
    is_batched = [i == 0 or not program.startswith("shared") for i in range(len(args))]
    put = [jax.device_put(a, NamedSharding(mesh, P("d") if b else P())) for a, b in zip(args, is_batched, strict=True)]
    with jax.set_mesh(mesh):
        compiled = jax.jit(programs[program]).lower(*put).compile()
        assert _collectives(compiled) == []
        got = compiled(*put)
        if kind == "explicit":
            assert jax.typeof(got).sharding.spec[0] == "d"
    close(got, want, "float32")


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map(op, check_vma):
    """Every argument sharded, and the gradient of a replicated scale that multiplies a sharded array."""
    programs, many, _ = _batched(op)
    mesh = _mesh("auto")
    cpu = jax.devices("cpu")[0]
    for name in ("forward", "gradient") if has_derivative(op) else ("forward",):
        expected = programs[name](*jax.device_put(many, cpu))
        fun = jax.shard_map(
            programs[name], mesh=mesh, in_specs=(P("d"),) * len(many), out_specs=P("d"), check_vma=check_vma
        )
        close(jax.jit(fun)(*jax.device_put(many, NamedSharding(mesh, P("d")))), expected, "float32")
    if not has_derivative(op):
        return

    def loss(scale, *args):
        y = programs["forward"](scale * args[0], *args[1:])
        return jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y), y, 0)))

    def total(scale, *args):
        local = lambda scale, *args: jax.lax.psum(loss(scale, *args), "d")
        specs = (P(), *(P("d"),) * len(args))
        return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=True)(scale, *args)

    scale = jnp.float32(1.1)
    got = jax.jit(jax.grad(total))(
        jax.device_put(scale, NamedSharding(mesh, P())), *jax.device_put(many, NamedSharding(mesh, P("d")))
    )
    want = jax.grad(loss)(*jax.device_put((scale, *many), cpu))
    close(got, want, "float32", scale=10)


def test_other_dimensions_may_be_sharded_and_cost_communication(op):
    """Rows, features and pixels: the result is right."""
    example = Example(op, op.cases[0], "float32")
    mesh = _mesh("auto", (2, 4), ("a", "b"))
    first, *rest = example.args
    call = jax.jit(example.call)
    want = call(jax.device_put(first, jax.devices("cpu")[0]), *rest)
    divisible = [i for i, n in enumerate(first.shape) if n % 2 == 0]
    for axis in divisible:
        spec = P(*(None,) * axis, "a")
        close(call(jax.device_put(first, NamedSharding(mesh, spec)), *rest), want, "float32")
