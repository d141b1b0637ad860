"""Linear functions of one array whose transpose is known, so that a gradient is as direct as the value.

Each is one primitive, in no table: a facade calls it. Its transpose, and what JAX differentiates, are the same primitive
with other parameters."""

import functools
from collections.abc import Callable

import jax

from . import compat, explicit
from .compat import ad
from .primitive import bind


def linear(name: str, fun: Callable, transposed: Callable) -> Callable:
    """The function (x, **params) -> y of plain JAX, `fun`, in which y is linear.

    transposed      (params) -> those of the transpose

    Parameters are hashable, and hold for any number of batch dimensions in front."""
    p = compat.Primitive(name)
    p.multiple_results = True
    p.def_impl(compat.apply(p))
    body = lambda x, /, **params: (fun(x, **params),)
    p.def_abstract_eval(lambda x, **params: compat.trace(body, (x,), params).out_avals)

    def lower(ctx, x, **params):
        placed = explicit.left_to_compiler(functools.partial(body, **params), ctx.avals_out)
        return compat.lower_fun(placed, multiple_results=True)(ctx, x)

    compat.register_lowering(p, lower)
    compat.partitioned(p)

    def jvp(primals, tangents, /, **params):
        ys = bind(p, *primals, **params)
        (t,) = tangents
        if type(t) is ad.Zero:
            return ys, [ad.Zero(jax.typeof(y).to_tangent_aval()) for y in ys]
        return ys, bind(p, t, **params)

    def transpose(cotangents, x, /, **params):
        (ct,) = cotangents
        if type(ct) is ad.Zero:
            return [ad.Zero(x.aval)]
        (dx,) = bind(p, ct, **transposed(params))
        return [compat.place_as(dx, x.aval)]

    def batched(axis, args, dims, /, **params):
        if dims[0] is None:
            return bind(p, *args, **params), [None]
        x = compat.bdim_at_front(*args, *dims, axis.size, axis.explicit_mesh_axis)
        return bind(p, x, **params), [0]

    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose
    compat.register_batcher(p, batched)
    return lambda x, /, **params: bind(p, x, **params)[0]
