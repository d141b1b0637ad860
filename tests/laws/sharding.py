"""Laws of sharding: sharded arrays give what whole ones give, and communicate what docs/collectives.csv says."""

import zlib

import jax
import numpy as np
from examples_of import close, loss_of
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from sharded import collectives, devices, expected, mesh, put

EXPECTED = expected()


def is_silent(e):
    return not any(EXPECTED[e.op, e.way])


def _stacked(specs):
    return [P(None, *spec) for spec in specs]


def programs(e):
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


def equal(got, want, scale=4):
    jax.tree.map(lambda a, b: close(a, b, "float32", scale), got, want)


def communicates(e, kind, program):
    fun, has_gradient, is_stacked = programs(e)[program]
    stack = lambda a: np.stack([a, np.roll(a, 1, 0)]) if np.ndim(a) else np.stack([a, a])
    args, specs = (list(map(stack, e.args)), _stacked(e.specs)) if is_stacked else (e.args, e.specs)
    want = jax.jit(fun)(*jax.device_put(args, devices()[0]))
    over = mesh(kind)
    placed = put(args, over, specs)
    with jax.set_mesh(over):
        compiled = jax.jit(fun).lower(*placed).compile()
        got = compiled(*placed)
    found = collectives(compiled.as_text())
    if program == "tangent":
        # A tangent that is a sum over what is sharded is summed where its parts are.
        assert set(found) <= {*EXPECTED[e.op, e.way][0], *EXPECTED[e.op, e.way][1], "all-reduce"}
    else:
        assert found == EXPECTED[e.op, e.way][has_gradient]
    equal(got, want)
    if kind == "explicit" and program == "forward":
        assert [name for name in jax.typeof(got).sharding.spec if name] == [name for name in e.out if name]
    if kind == "explicit" and program == "gradient":
        for ct, x in zip(got, placed, strict=False):
            assert jax.typeof(ct).sharding.spec == jax.typeof(x).sharding.spec


def shard_map_over_all_axes(e):
    """The op of each shard; and the gradient of a replicated scale that multiplies a sharded array, under check_vma."""
    over = mesh("auto")
    want = jax.jit(e.fun)(*jax.device_put(e.args, devices()[0]))
    placed = put(e.args, over, e.specs)
    check_vma = bool(zlib.crc32(str(e).encode()) % 2)
    fun = jax.shard_map(e.fun, mesh=over, in_specs=e.specs, out_specs=e.out, check_vma=check_vma)
    compiled = jax.jit(fun).lower(*placed).compile()
    assert collectives(compiled.as_text()) == {}
    equal(compiled(*placed), want)
    if not e.moving:
        return

    def loss(scale, *args):
        return loss_of(e.fun)(scale * args[0], *args[1:])

    def total(scale, *args):
        local = lambda scale, *args: jax.lax.psum(loss(scale, *args), "d")
        return jax.shard_map(local, mesh=over, in_specs=(P(), *e.specs), out_specs=P(), check_vma=True)(scale, *args)

    scale = np.float32(1.1)
    got = jax.jit(jax.grad(total))(jax.device_put(scale, NamedSharding(over, P())), *placed)
    equal(got, jax.jit(jax.grad(loss))(*jax.device_put((scale, *e.args), devices()[0])), scale=20)


def shard_map_over_some_axes(e):
    """Axis d by hand, another left to the compiler."""
    over = mesh("auto", axes=2)
    want = jax.jit(e.fun)(*jax.device_put(e.args, devices()[0]))
    with jax.set_mesh(over):
        fun = jax.shard_map(e.fun, axis_names={"d"}, in_specs=e.specs, out_specs=e.out)
        equal(jax.jit(fun)(*put(e.args, over, e.specs)), want)
