"""One primitive of an op: the types of its results, its lowering to kernel calls or to the reference, and vmap."""

import functools

import jax

from . import choice, compat, explicit, partition, promote
from . import prefer as preference
from .call import Call, untyped
from .names import has_star, spelled, spelled_keys


def bind(primitive, *operands, **params):
    """Binds a primitive, operands that vary over fewer axes of a shard_map made to vary over those of the others."""
    axes = frozenset().union(*(compat.manual_axes(jax.typeof(x)) for x in operands))
    missing = lambda x: tuple(axes - compat.manual_axes(jax.typeof(x)))
    operands = [jax.lax.pcast(x, missing(x), to="varying") if missing(x) else x for x in operands]
    return primitive.bind(*operands, **params)


def primitive(name, kind, body, cut_of, primitives, weak, op):
    """The primitive of one kind, with its types and its lowerings. `op()` is the declared Op, which is not there yet;
    `primitives` are all of the op's."""
    p = compat.Primitive(name if kind == "forward" else f"{name}_{kind}")
    p.multiple_results = True
    p.def_impl(compat.apply(p))

    def types(*avals, implementation, **params):
        if cut_of is None:
            try:
                outs = compat.trace(body.typed, avals, params).out_avals
                return [y.update(weak_type=is_weak) for y, is_weak in zip(outs, weakness(avals, outs), strict=True)]
            except (
                compat.ShardingTypeError,
                ValueError,
            ):  # JAX raises either where it has no rule for what the body does
                if not any(any(aval.sharding.spec) for aval in avals):
                    raise
                outs = untyped(body.typed, avals, params)
                specs = [explicit.first_dimensions(avals, y) for y in outs]
        else:
            outs = untyped(body.typed, avals, params)
            specs = partition.result_specs(cut_of(params, avals, outs), avals)
        return [
            compat.with_type(avals, y.shape, y.dtype, spec, is_weak)
            for y, spec, is_weak in zip(outs, specs, weakness(avals, outs), strict=True)
        ]

    def weakness(avals, outs):
        """Of each result. Those of a forward call after the first are indices and the like."""
        may = [weak and (kind != "forward" or i == 0) for i in range(len(outs))]
        return [is_one and promote.follows(y, avals) for is_one, y in zip(may, outs, strict=True)]

    def lower(ctx, *operands, implementation, **params):
        backend, _ = chosen(ctx, implementation, params)
        cut = cut_of and cut_of(params, ctx.avals_in, ctx.avals_out)
        if cut and (backend == "native" or cut.partition.plain):
            run = {
                kind: functools.partial(bind, q, implementation=implementation) for kind, q in primitives.items() if q
            }
            outs = partition.lower(ctx, cut, run, params, operands)
            if outs is not None:
                return outs
        fun = body.native if backend == "native" else functools.partial(reference, types=ctx.avals_out)
        return compat.lower_fun(functools.partial(fun, **params), multiple_results=True)(ctx, *operands)

    def chosen(ctx, implementation, params):
        call = Call(op(), kind, tuple(ctx.avals_in), tuple(ctx.avals_out), params)
        return choice.choose(call, preference.for_call(implementation, call), ctx.module_context.platforms)

    def reference(*operands, types, **params):
        return explicit.left_to_compiler(functools.partial(body.reference, **params), types)(*operands)

    p.def_abstract_eval(types)
    for platform in (None, "tpu", "rocm"):
        compat.register_lowering(p, lower, **({"platform": platform} if platform else {}))
    if cut_of:
        compat.partitioned(p)
    return p


def batch(p, names_of, shared, follows, batched, together=()):
    """vmap: one more leading batch dimension, which the kernels have. Of the shared operands in `together`, if one gets it
    all do."""

    def rule(axis, args, dims, /, **params):
        if all(dim is None for dim in dims):
            return (outs := p.bind(*args, **params)), [None] * len(outs)
        names, results = names_of(params)
        known, ranks = spelled(names, len(args)), spelled_keys(shared, names, len(args))
        kept = {}
        for name, x, dim in zip(known, args, dims, strict=True):  # residuals and tangents may have one name
            kept[name] = kept.get(name, True) and dim is None and x.ndim == ranks.get(name, -1)
        if not all(kept.get(name, True) for name in together):
            kept |= dict.fromkeys(together, False)
        # What is said of an operand more, by those of the star, is mapped as these are.
        if not all(kept[name] for name in known if name not in names):
            kept |= dict.fromkeys(follows.values(), False)
        args = [
            x if kept[name] else compat.bdim_at_front(x, dim, axis.size, axis.explicit_mesh_axis)
            for name, x, dim in zip(known, args, dims, strict=True)
        ]
        outs = bind(p, *args, **{**batched(params), **{k: v for k, v in params.items() if k == "outputs"}})
        made = spelled(results, len(outs)) if has_star(results) else results
        return outs, [None if kept.get(follows.get(name)) else 0 for name, _ in zip(made, outs, strict=False)]

    compat.register_batcher(p, rule)
