"""Laws of vmap: a stack of singles, whatever is mapped, along whichever axis."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from examples_of import close, loss_of, stacked
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from .table import derivable, law


def _other(a):
    """Another argument of the same shape, of other elements and not only in another order; what is sorted stays sorted, and
    numbers that differ, such as those of rows that are written, differ."""
    a = np.asarray(a)
    if not jnp.issubdtype(a.dtype, jnp.integer):
        return a[np.arange(len(a)) // 2] if a.ndim else a
    is_sorted, given = (np.diff(a.ravel()) >= 0).all(), a[a >= 0]
    return np.minimum(a, 3).astype(a.dtype) if is_sorted or len(np.unique(given)) < given.size else np.flip(a)


def _few(e, count=3):
    """The arguments of so many calls, the second of which has others, except for an index, whose parts agree."""
    owners = [argument for argument in e.drawn for _ in jax.tree.leaves(argument)]
    others = [np.asarray(a) if dataclasses.is_dataclass(o) else _other(a) for a, o in zip(e.args, owners, strict=True)]
    return [others if i == 1 else [np.asarray(a) for a in e.args] for i in range(count)]


def _vmap(e, axis, out_axes):
    """All arguments mapped, one alone, all but one: one program of all maps, and one of a single call."""
    position = lambda a: min(axis, a.ndim)
    few, n = _few(e), len(e.args)
    alone = [tuple(int(i == k) for i in range(n)) for k in range(n)]
    ways = dict.fromkeys([(1,) * n, *alone, *(tuple(1 - m for m in way) for way in alone if n > 1)])
    axes = [[position(a) if m else None for a, m in zip(e.args, mapped, strict=True)] for mapped in ways]
    many = [
        [few[0][k] if d is None else stacked([args[k] for args in few], d) for k, d in enumerate(way)] for way in axes
    ]
    got = jax.jit(lambda many: [jax.vmap(e.call, way, out_axes)(*args) for way, args in zip(axes, many, strict=True)])(
        many
    )
    for mapped, y in zip(ways, got, strict=True):
        take = lambda i: [few[i if m else 0][k] for k, m in enumerate(mapped)]
        e.same(y, stacked([e.single(*take(i)) for i in range(3)], out_axes))


@law()
def vmap_front(e):
    _vmap(e, 0, 0)


@law(about="declaration")
def vmap_middle(e):
    _vmap(e, 1, min(1, e.y.ndim))


@law()
def vmap_back(e):
    _vmap(e, -1, -1)


@law()
def vmap_of_vmap(e):
    """The outer map has all arguments, the inner the first alone: the others have fewer batches than the data."""
    few = _few(e)
    rows = [[args[0], _other(args[0])] for args in few]
    xs, many = stacked([stacked(row) for row in rows]), [stacked(a) for a in list(zip(*few, strict=True))[1:]]
    nested = jax.vmap(lambda row, *rest: jax.vmap(lambda x: e.call(x, *rest))(row))
    want = stacked([stacked([e.single(x, *args[1:]) for x in row]) for row, args in zip(rows, few, strict=True)])
    e.same(jax.jit(nested)(xs, *many), want)


@law(derivable, about="declaration")
def vmap_of_grad(e):
    few = [np.asarray(e.x), _other(e.x), np.asarray(e.x)]
    close(jax.jit(jax.vmap(jax.grad(e.loss)))(stacked(few)), stacked([e.slope(x) for x in few]), e.dtype, scale=4)


@law(derivable)
def grad_of_vmap(e):
    """With the first argument mapped, with others that serve all, or that are mapped too. The cotangent of one that serves
    all is a sum."""
    few, position = _few(e), e.moving[0]

    def loss(*args):
        y = e.call(*args)
        return jnp.sum(jnp.where(jnp.isfinite(y), y, 0) * e.w).real

    gradient = jax.jit(jax.grad(loss, position))
    for mapped in {False, len(e.args) > 1}:
        axes = (0, *(0 if mapped else None for _ in e.args[1:]))
        many = [stacked([args[k] for args in few]) if d == 0 else few[0][k] for k, d in enumerate(axes)]
        got = jax.jit(jax.grad(lambda *args: jax.vmap(loss, axes)(*args).sum(), position))(*many)
        rest = lambda args: (args if mapped else few[0])[1:]
        each = stacked([gradient(args[0], *rest(args)) for args in few])
        close(got, each if axes[position] == 0 else each.sum(0), e.dtype, scale=4)


@law(derivable)
def grad_of_vmap_of_vmap(e):
    """The cotangent of an argument that has fewer batches than the data is summed over the others."""
    few, position = _few(e, 2), e.moving[0]
    rows = [[args[0], _other(args[0])] for args in few]
    xs, many = stacked([stacked(row) for row in rows]), [stacked(a) for a in list(zip(*few, strict=True))[1:]]
    single = lambda x, *rest: loss_of(e.call)(x, *rest).real
    nested = jax.vmap(lambda row, *rest: jax.vmap(lambda x: single(x, *rest))(row))
    got = jax.jit(jax.grad(lambda *args: nested(*args).sum(), position))(xs, *many)
    gradient = jax.jit(jax.grad(single, position))
    each = stacked([stacked([gradient(x, *args[1:]) for x in row]) for row, args in zip(rows, few, strict=True)])
    close(got, each if position == 0 else each.sum(1), e.dtype, scale=4)


def _whole_bytes(op, dtype):
    return "JAX's compiled programs take no sharded arrays of 4 bits" if dtype.name.endswith("int4") else None


@law(_whole_bytes)
def vmap_with_spmd_axis_name(e):
    """What is mapped over an axis of a mesh stays on it, except where XLA gathers the operands of a library, or asks for each
    step of a loop whether any element needs it."""
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:2])
    few = [jax.device_put(args, jax.devices("cpu")[0]) for args in _few(e, 2)]
    fun = jax.jit(jax.vmap(e.call, spmd_axis_name="d"))
    want = stacked([e.single(*args) for args in few])
    put = [jax.device_put(np.stack(a), NamedSharding(mesh, P("d"))) for a in zip(*few, strict=True)]
    with jax.set_mesh(mesh):
        compiled = fun.lower(*put).compile()
        asks = e.op.name == "multilabel_margin_loss"
        assert "all-" not in compiled.as_text() or asks or e.op.library in ("cudnn", "cufft")
        e.same(compiled(*put), want)
