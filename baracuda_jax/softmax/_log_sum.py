"""What softmax and its logarithm share: the logarithm of each slice's sum of exponentials, from which gradients compute
softmax again, whatever rounding took from the result; declarations; and the computation on shards of slices."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .._core import checks
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.wide import wide, wide_dtype, with_rest
from ..reduce._family import slices
from ._rows import Rows


def forward_reference(value, x, *, axes, over=()):
    """(value(x - m, e^(x - m), their sum), with the largest element m; the logarithm of the sum of e^x, and what rounding
    took from it). `over` are axes of a mesh along which slices are sharded."""
    largest = wide(x).max(axes, keepdims=True, initial=-jnp.inf)
    largest = lax.pmax(largest, over) if over else largest
    shifted = wide(x) - largest
    powers = jnp.exp(shifted)
    sums = total(powers, axes, over)
    log_sum = with_rest(largest.squeeze(axes), jnp.log(sums).squeeze(axes), x.dtype)
    return (value(shifted, powers, sums).astype(x.dtype), *log_sum)


def total(a, axes, over=()):
    of_shard = a.sum(axes, keepdims=True)
    return lax.psum(of_shard, over) if over else of_shard


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def weights(x, lse, rest, axes, over):
    """Softmax of x, of which what `lse` and `rest` are is known. -infinity gives 0."""
    power = jnp.exp((x - slices(wide(lse), axes)) - slices(rest, axes))
    return jnp.where(x == -jnp.inf, 0, power)


@weights.defjvp
def _weights_tangent(axes, over, primals, tangents):
    """lse is a function of x, whose tangent need not be known."""
    p, t = weights(*primals, axes, over), tangents[0]
    return p, weighted(p, t - total(weighted(p, t), axes, over))


def weighted(p, t):
    """Their product. An element of weight 0 takes no part, whatever its tangent is."""
    return jnp.where(p == 0, 0, p * t)


def from_mean(p, t, axes, over):
    return t - total(weighted(p, t), axes, over)


def _full_or_by_slice(names, types, params):
    """Labels of the dimensions that slices consist of, and of the others."""

    def of(name, x):
        if name in ("lse", "rest"):
            return tuple(f"kept{i}" for i in range(x.ndim))
        kept = iter(range(x.ndim))
        return tuple(f"reduced{i}" if i in params["axes"] else f"kept{next(kept)}" for i in range(x.ndim))

    return [of(name, x) for name, x in zip(names, types, strict=True)]


def _forward(name, value, x, *, axes, save):
    if 0 in x.shape:  # slices of nothing are not read
        return forward_reference(value, x, axes=axes)[: None if save else 1]
    rows = Rows(x, axes)
    by_row = jax.ShapeDtypeStruct(rows.shape[: rows.kept], x.dtype)
    out = [rows.like(x.dtype), by_row, by_row.update(dtype=wide_dtype(x.dtype))]
    dims = "...n -> ...n, ..., ..." if save else "...n -> ...n"
    y, *saved = kernel(name, dims, rows.of(x), out=out[: None if save else 1], workspace=rows.workspace(x.dtype))
    return rows.back(y), *saved


def _linear(target, x, lse, rest, t, *, axes):
    rows = Rows(x, axes)
    (y,) = kernel(
        target, "...n, ..., ..., ...n -> ...n", rows.of(x), lse, rest, rows.of(t), out=[rows.like(t.dtype)],
        workspace=rows.workspace(t.dtype),
    )  # fmt: skip
    return (rows.back(y),)


def _linear_reference(rule, x, lse, rest, t, *, axes, over=()):
    p = weights(wide(x), lse, rest, axes, over)
    return (rule(p, wide(t), axes, over).astype(t.dtype),)


def _draw(*shape):
    return lambda rng: (4 * rng.standard_normal(shape),)


def declared(name, public, value, tangent, backward, targets):
    """Declares the op whose elements are `value(x - m, e^(x - m), their sum)`. Tangent and backward are functions of
    softmax, of what they are linear in, and of axes; `targets` has their kernels."""

    def on_shards(fun):
        def run(run, over, *arrays, axes, save=True, **_):
            return list(fun(*arrays, axes=axes, over=over))[: None if save else 1]

        return run

    forward = functools.partial(forward_reference, value)
    linear = {"tangent": tangent, "backward": backward}
    references = {kind: functools.partial(_linear_reference, rule) for kind, rule in linear.items()}
    of_kinds = {kind: on_shards(fun) for kind, fun in (("forward", forward), *references.items())}
    bodies = {
        kind: Body(fun, functools.partial(_linear, target))
        for (kind, fun), target in zip(references.items(), targets, strict=True)
    }
    return declare(
        name,
        family="softmax",
        category=OpCategory.SOFTMAX,
        public=public,
        cases=(
            Case("rows", _draw(5, 41)),
            Case("columns", _draw(17, 6), {"axis": 0}),
            Case("two axes", _draw(3, 4, 5), {"axis": (0, -1)}),
            Case("aligned rows", _draw(3, 4, 64)),
        ),
        dtypes=checks.FLOATS,
        operands=("x",),
        results=("y", "lse", "rest"),
        differentiable=("x",),
        residuals=("x", "lse", "rest"),
        regime=along_axes,
        batched=lambda params: {**params, "axes": tuple(i + 1 for i in params["axes"])},
        cut=Partition(_full_or_by_slice, combine={f"reduced{i}": of_kinds for i in range(64)}),
        forward=Body(forward, functools.partial(_forward, name, value)),
        **bodies,
        kernels={"forward": (name,), **{kind: (target,) for kind, target in zip(linear, targets, strict=True)}},
    )
