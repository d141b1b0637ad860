"""The declaration of an op, and what follows from it.

An op is three primitives. `forward` is the op; `tangent` is its derivative, linear in the tangents; `backward` is the
transpose of that, linear in the cotangents. Each has two bodies with one signature: the *reference*, plain JAX that defines
what is computed, and the *native* one, made of kernel calls. Their operands are

    forward   (*operands)                       -> results, the first of which is the output
    tangent   (*residuals, *tangents)           -> (output's tangent,)
    backward  (*residuals, output's cotangent)  -> cotangents

where residuals are operands and results by name. Results after the first are saved for the derivatives alone, and computed
only when one is taken or when the caller binds with `save=True`.

Derivatives of any order: the tangent and backward primitives are linear in their last operands, so there they serve as
their own derivatives and each other's transposes; with respect to the residuals, JAX differentiates their references. These
must treat results among the residuals as functions of the operands: either recompute them or not depend on them smoothly.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax

from . import compat, library
from . import prefer as preference
from .compat import ad


class Body(NamedTuple):
    """One computation, twice: in plain JAX, and by kernels."""

    reference: Callable
    native: Callable


@dataclasses.dataclass(frozen=True, eq=False)
class Op:
    """A declared op. Calling it binds the forward primitive; users call the public functions of the family's module."""

    name: str
    family: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    differentiable: tuple[str, ...]
    residuals: tuple[str, ...]
    kernels: Mapping[str, tuple[str, ...]]  # of forward, tangent and backward
    dtypes: tuple[str, ...]
    public: Callable
    cases: tuple
    default: str
    forward: compat.Primitive
    tangent: compat.Primitive
    backward: compat.Primitive
    bodies: Mapping[str, Body]

    def __call__(self, *operands, prefer=None, save=False, **params):
        """The output, or with `save` all results."""
        outs = bind(self.forward, *operands, save=save, backend=preference.resolve(self.name, prefer), **params)
        return outs if save else outs[0]

    def vjp(self, *operands, prefer=None, **params):
        """The backward primitive, on (*residuals, output's cotangent): one cotangent, or a list of several."""
        outs = bind(self.backward, *operands, backend=preference.resolve(f"{self.name}_backward", prefer), **params)
        return outs if len(self.differentiable) > 1 else outs[0]


OPS: dict[str, Op] = {}


def declare(
    name: str,
    *,
    family: str,
    public: Callable,
    cases: Sequence,
    dtypes: Sequence[str],
    operands: Sequence[str],
    differentiable: Sequence[str],
    residuals: Sequence[str],
    forward: Body,
    backward: Body,
    kernels: Mapping[str, Sequence[str]],
    results: Sequence[str] = ("y",),
    tangent: Body | None = None,
    linear: Callable[[dict], dict] | None = None,
    shared: Mapping[str, int] | None = None,
    follows: Mapping[str, str] | None = None,
    batched: Callable[[dict], dict] = lambda params: params,
    default: str = "native",
) -> Op:
    """Declares an op and puts it in the table `OPS`.

    public          the function that users call; its docstring is the op's
    operands, ...   names, in order; `results` after the first are saved for the derivatives
    residuals       operands and results that the derivatives read
    tangent         may be left out where the op is its own tangent, under the parameters linear(params)
    kernels         the FFI targets that each native body calls: {"forward": (...), "tangent": ..., "backward": ...}
    shared          operand -> its rank without batches, for operands that need not be repeated for each batch under vmap
    follows         result -> the shared operand from which alone it is computed
    batched         params -> params of the op with one more leading batch dimension
    default         what automatic means for this op: "native", the kernel where there is one, or "xla"
    """
    names = {
        "forward": tuple(operands),
        "tangent": (*residuals, *differentiable),
        "backward": (*residuals, results[0]),
    }
    if linear:
        tangent = _linear_tangent(_all_results(forward), names, linear)
        kernels = {**kernels, "tangent": kernels["forward"]}
    bodies = {"forward": _all_results(forward), "tangent": tangent, "backward": backward}
    returned = {"forward": results, "tangent": results[:1], "backward": differentiable}
    primitives = {}
    for kind, body in bodies.items():
        title = name if kind == "forward" else f"{name}_{kind}"
        primitives[kind] = _primitive(title, body, tuple(kernels[kind]), default)
        _batch(primitives[kind], names[kind], returned[kind], shared or {}, follows or {}, batched)
    _differentiate(primitives, bodies, tuple(operands), tuple(differentiable), tuple(residuals), tuple(results))
    op = OPS[name] = Op(
        name=name,
        family=family,
        operands=tuple(operands),
        results=tuple(results),
        differentiable=tuple(differentiable),
        residuals=tuple(residuals),
        kernels={kind: tuple(targets) for kind, targets in kernels.items()},
        dtypes=tuple(dtypes),
        public=public,
        cases=tuple(cases),
        default=default,
        bodies=bodies,
        **primitives,
    )
    return op


def _all_results(forward):
    """A forward reference computes all results; what nobody saves is cut off, and the compiler drops its computation."""

    def reference(*operands, save, **params):
        return tuple(forward.reference(*operands, **params))[: None if save else 1]

    return Body(reference, forward.native)


def bind(primitive, *operands, **params):
    """Binds a primitive, operands that vary over fewer axes of a shard_map made to vary over those of the others."""
    axes = frozenset().union(*(compat.manual_axes(jax.typeof(x)) for x in operands))
    missing = lambda x: tuple(axes - compat.manual_axes(jax.typeof(x)))
    operands = [jax.lax.pcast(x, missing(x), to="varying") if missing(x) else x for x in operands]
    return primitive.bind(*operands, **params)


def _primitive(name, body, targets, default):
    p = compat.Primitive(name)
    p.multiple_results = True
    p.def_impl(compat.apply(p))

    def types(*avals, backend, **params):
        return compat.trace(body.native, avals, params)

    def lower(ctx, *operands, backend, **params):
        is_native = _is_native(name, targets, backend, default, ctx.module_context.platforms)
        fun = body.native if is_native else functools.partial(reference, types=ctx.avals_out)
        return compat.lower_fun(functools.partial(fun, **params), multiple_results=True)(ctx, *operands)

    def reference(*operands, types, **params):
        """The reference, on an explicit mesh with the compiler left to place it."""
        mesh = jax.sharding.get_abstract_mesh()
        if not mesh.explicit_axes:
            return body.reference(*operands, **params)
        auto = jax.sharding.auto_axes(
            functools.partial(body.reference, **params), axes=mesh.explicit_axes,
            out_sharding=tuple(t.sharding.spec for t in types),
        )  # fmt: skip
        return auto(*operands)

    p.def_abstract_eval(types)
    for platform in (None, "tpu", "rocm"):
        compat.register_lowering(p, lower, **({"platform": platform} if platform else {}))
    return p


def _is_native(name, targets, backend, default, platforms):
    if (backend or default) == "xla":
        return False
    if backend == "native":
        missing = [platform for platform in platforms if platform not in library.MODULES]
        if missing:
            raise ValueError(f"{name}: prefer='native', but there is no kernel for platform {', '.join(missing)}")
        return True
    return all(library.available(platform, targets) for platform in platforms)


def _linear_tangent(forward, names, linear):
    """A linear op's tangent: the op itself, with the tangents where its operands were."""

    def of(fun):
        def tangent(*values, **params):
            known = dict(zip(names["tangent"], values, strict=True))
            return fun(*(known[name] for name in names["forward"]), save=False, **linear(params))

        return tangent

    return Body(of(forward.reference), of(forward.native))


def _batch(p, names, results, shared, follows, batched):
    """vmap: one more leading batch dimension, which the kernels have."""

    def rule(axis, args, dims, /, **params):
        if all(dim is None for dim in dims):
            return (outs := p.bind(*args, **params)), [None] * len(outs)
        kept = {
            name: dim is None and x.ndim == shared.get(name, -1) for name, x, dim in zip(names, args, dims, strict=True)
        }
        args = [
            x if kept[name] else compat.bdim_at_front(x, dim, axis.size, axis.explicit_mesh_axis)
            for name, x, dim in zip(names, args, dims, strict=True)
        ]
        outs = bind(p, *args, **batched(params))
        return outs, [None if kept.get(follows.get(name)) else 0 for name, _ in zip(results, outs, strict=False)]

    compat.register_batcher(p, rule)


def _differentiate(primitives, bodies, operands, differentiable, residuals, results):
    forward, tangent, backward = (primitives[kind] for kind in ("forward", "tangent", "backward"))
    n = len(residuals)

    def forward_jvp(primals, tangents, *, save, **params):
        values, dots = dict(zip(operands, primals, strict=True)), dict(zip(operands, tangents, strict=True))
        dots = [dots[name] for name in differentiable]
        if all(type(t) is ad.Zero for t in dots):
            outs = bind(forward, *primals, save=save, **params)
            return outs, [_zero(y) for y in outs]
        outs = bind(forward, *primals, save=True, **params)
        values |= zip(results, outs, strict=True)
        dots = [ad.instantiate_zeros(t) for t in dots]
        (dot,) = bind(tangent, *(values[name] for name in residuals), *dots, **params)
        outs = outs if save else outs[:1]
        return outs, [dot, *(_zero(y) for y in outs[1:])]

    ad.primitive_jvps[forward] = forward_jvp
    for this, other, body in ((tangent, backward, bodies["tangent"]), (backward, tangent, bodies["backward"])):
        ad.primitive_jvps[this] = functools.partial(_linear_jvp, this, body, n)
        ad.primitive_transposes[this] = functools.partial(_linear_transpose, other, n)


def _linear_jvp(p, body, n, primals, tangents, **params):
    """Linear operands: the kernel again. Residuals: the derivative of the reference."""
    outs = bind(p, *primals, **params)
    known, linear = primals[:n], primals[n:]
    moving = [i for i, t in enumerate(tangents[:n]) if type(t) is not ad.Zero]
    dots = [_zero(y) for y in outs]
    if any(type(t) is not ad.Zero for t in tangents[n:]):
        dots = bind(p, *known, *map(ad.instantiate_zeros, tangents[n:]), **params)
    if moving:

        def of_residuals(*some):
            residuals = list(known)
            for i, x in zip(moving, some, strict=True):
                residuals[i] = x
            return tuple(body.reference(*residuals, *linear, **{k: v for k, v in params.items() if k != "backend"}))

        more = jax.jvp(of_residuals, tuple(known[i] for i in moving), tuple(tangents[i] for i in moving))[1]
        dots = [ad.add_tangents(a, b) for a, b in zip(dots, more, strict=True)]
    return outs, dots


def _linear_transpose(transposed, n, cotangents, *operands, **params):
    nothing = [None] * n
    if all(type(ct) is ad.Zero for ct in cotangents):
        return [*nothing, *(ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in operands[n:])]
    outs = bind(transposed, *operands[:n], *map(ad.instantiate_zeros, cotangents), **params)
    return [*nothing, *(ct if ad.is_undefined_primal(x) else None for ct, x in zip(outs, operands[n:], strict=True))]


def _zero(x):
    return ad.Zero(jax.typeof(x).to_tangent_aval())
