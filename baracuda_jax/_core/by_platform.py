"""Functions that a library computes on CUDA and plain JAX elsewhere, derivatives included.

Each is three primitives, as an op's are, but in no table: a facade calls them. A program for several platforms has both
bodies. Derivatives beyond the first, and with respect to residuals, are those of plain JAX."""

import functools
from collections.abc import Callable, Mapping, Sequence

import jax

from . import compat, explicit
from .body import Body, all_results, of_some_outputs
from .derivatives import differentiate
from .primitive import batch, bind


def by_platform(
    name: str,
    *,
    operands: Sequence[str],
    differentiable: Sequence[str],
    outputs: Sequence[str],
    forward: Body,
    backward: Callable,
    saved: Sequence[str] | None = None,
    shared: Mapping[str, int] | None = None,
) -> Callable:
    """The function (*operands, save, **params) -> results; without `save` the first alone.

    operands        names; integers are among those that are not differentiable
    outputs         the results, all of which have derivatives
    forward         the reference, and what a CUDA program has: native(*operands, save, **params)
    backward        what a CUDA program has for the gradient: (*operands, *saved results, *cotangents of results, **params)
                    gives cotangents of what is differentiable, or None to have those of the reference; a cotangent may be
                    None
    saved           the results that `backward` reads, by default all
    shared          operand -> its rank without batches, for operands that need not be repeated for each batch under vmap

    The reference takes any number of batch dimensions, in front; so do the others."""
    names, n = (*operands, *(outputs if saved is None else saved)), len(operands)
    moving = [operands.index(name) for name in differentiable]

    def of_moving(values, params):
        def fun(*some):
            known = dict(zip(moving, some, strict=True))
            return tuple(forward.reference(*(known.get(i, x) for i, x in enumerate(values[:n])), **params))

        return fun, [values[i] for i in moving]

    def tangent(*values, **params):
        fun, at = of_moving(values, params)
        return tuple(jax.jvp(fun, at, list(values[len(names) :]))[1])

    def gradient(*values, **params):
        fun, at = of_moving(values, params)
        ys, pull = jax.vjp(fun, *at)
        cts = values[len(names) :]
        return pull(tuple(jax.numpy.zeros_like(y) if ct is None else ct for y, ct in zip(ys, cts, strict=True)))

    def native_gradient(*values, **params):
        found = backward(*values, **params)
        return gradient(*values, **params) if found is None else found

    bodies = {"forward": all_results(forward)}
    derivatives = Body(tangent, tangent), Body(gradient, native_gradient)
    if len(outputs) > 1:
        bodies |= of_some_outputs(*derivatives, tuple(outputs))
    else:
        bodies |= zip(("tangent", "backward"), derivatives, strict=True)
    primitives = {
        kind: _primitive(name if kind == "forward" else f"{name}_{kind}", body) for kind, body in bodies.items()
    }

    def names_of(kind, params):
        some = params.get("outputs", outputs)
        return {
            "forward": (tuple(operands), tuple(outputs)),
            "tangent": ((*names, *differentiable), tuple(some)),
            "backward": ((*names, *some), tuple(differentiable)),
        }[kind]

    for kind, p in primitives.items():
        batch(p, functools.partial(names_of, kind), shared or {}, {}, lambda params: params)
    differentiate(primitives, bodies, *map(tuple, (operands, differentiable, names, outputs, outputs)))
    return functools.partial(bind, primitives["forward"])


def _primitive(name, body):
    p = compat.Primitive(name)
    p.multiple_results = True
    p.def_impl(compat.apply(p))
    p.def_abstract_eval(lambda *avals, **params: compat.trace(body.reference, avals, params).out_avals)

    def lowering(fun):
        def lower(ctx, *operands, **params):
            placed = explicit.left_to_compiler(functools.partial(fun, **params), ctx.avals_out)
            return compat.lower_fun(placed, multiple_results=True)(ctx, *operands)

        return lower

    compat.register_lowering(p, lowering(body.reference))
    compat.register_lowering(p, lowering(body.native), platform="cuda")
    compat.partitioned(p)  # as is what JAX calls cuDNN by
    return p
