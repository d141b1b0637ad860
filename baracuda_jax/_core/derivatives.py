"""The derivatives of an op's primitives.

The tangent and backward primitives are linear in their last operands: there they serve as their own derivatives and as
each other's transposes. With respect to the residuals, JAX differentiates their references; those of a multilinear op, whose
derivatives are linear in each residual that they read, are kernels again. Among the results the output
has the tangent that the operands give it, and so has the result wide_y of an output y, which is y before it is rounded.
Other results after the outputs have none: references must either recompute them or not depend on them smoothly."""

import functools

import jax

from . import compat, explicit
from .compat import ad
from .compiled import full
from .names import has_star, spelled, spelled_as, unrounded
from .primitive import bind


def differentiate(primitives, bodies, operands, differentiable, residuals, results, outputs, multilinear=False):
    forward, tangent, backward = (primitives[kind] for kind in ("forward", "tangent", "backward"))

    def count(kind, operands, params):
        """How many of a call's operands are residuals."""
        linear = differentiable if kind == "tangent" else params.get("outputs", outputs[:1])
        return len(operands) - len(linear) if has_star(residuals) else len(residuals)

    def forward_jvp(primals, tangents, *, save, **params):
        names = spelled(operands, len(primals))
        values, dots = dict(zip(names, primals, strict=True)), dict(zip(names, tangents, strict=True))
        dots = [dots[name] for name in spelled_as(differentiable, operands, len(primals))]
        if all(type(t) is ad.Zero for t in dots):
            return no_derivative(forward, primals, tangents, save=save, **params)
        outs = bind(forward, *primals, save=True, **params)
        values |= zip(results, outs, strict=True)
        dots = [_tangent(t, outs[0]) for t in dots]
        some = {"outputs": outputs if save else outputs[:1]} if len(outputs) > 1 else {}
        saved = (values[name] for name in spelled_as(residuals, operands, len(primals)))
        moved = bind(tangent, *saved, *dots, **params, **some)
        moved = [compat.place_as(dot, jax.typeof(y)) for dot, y in zip(moved, outs, strict=False)]
        outs = outs if save else outs[:1]
        same = {unrounded(name): dot for name, dot in zip(outputs, moved, strict=False)}
        more = list(zip(results, outs, strict=False))[len(moved) :]
        return outs, [*moved, *(same[name].astype(y.dtype) if name in same else _zero(y) for name, y in more)]

    ad.primitive_jvps[forward] = forward_jvp

    def tangent_transpose(cotangents, *values, **params):
        return _tangent_transpose(backward, count("tangent", values, params), cotangents, *values, **params)

    def backward_transpose(cotangents, *values, **params):
        return _linear_transpose(tangent, count("backward", values, params), cotangents, *values, **params)

    ad.primitive_transposes |= {tangent: tangent_transpose, backward: backward_transpose}
    for p, kind in ((tangent, "tangent"), (backward, "backward")):
        is_backward, split = kind == "backward", functools.partial(count, kind)
        of_residuals = functools.partial(_of_reference, bodies[kind])
        if multilinear:
            slots = {name: residuals.index(name) for name in differentiable}
            of_residuals = functools.partial(_of_multilinear, slots, split, is_backward)
            ad.primitive_transposes[p] = functools.partial(
                _multilinear_transpose, ad.primitive_transposes[p], backward, slots, split, is_backward
            )
        ad.primitive_jvps[p] = functools.partial(_linear_jvp, p, of_residuals, split, is_backward)


def transpose(primitives, operands, residuals, outputs, linear):
    """jax.linear_transpose of a linear op, all of whose residuals are operands."""

    def rule(cotangents, *values, save, **params):
        known = dict(zip(spelled(operands, len(values)), values, strict=True))
        saved = spelled_as(residuals, operands, len(values))
        inner = [known[name] for name in saved]
        moved = [x for name, x in known.items() if name not in saved]
        n = len(inner)
        some = {"outputs": outputs if save else outputs[:1]} if len(outputs) > 1 else {}
        cotangents = cotangents[: len(outputs)]
        cts = _tangent_transpose(primitives["backward"], n, cotangents, *inner, *moved, **linear(params), **some)
        known |= dict.fromkeys(saved)
        known |= zip((name for name in known if name not in saved), cts[n:], strict=True)
        return list(known.values())

    ad.primitive_transposes[primitives["forward"]] = rule


def no_derivative(p, primals, tangents, **params):
    outs = bind(p, *primals, **params)
    return outs, [_zero(y) for y in outs]


def _tangent(t, output):
    """A tangent as an array. That of integers, which have none, is zeros of the output's dtype."""
    if type(t) is ad.Zero and t.aval.dtype == jax.dtypes.float0:
        return full(t.aval.shape, 0, output.dtype)
    return compat.instantiated(t)


def _linear_jvp(p, of_residuals, split, is_backward, primals, tangents, **params):
    """Linear operands: the kernel again. Residuals: `of_residuals`."""
    n, outs = split(primals, params), bind(p, *primals, **params)
    moving = {i: t for i, t in enumerate(tangents[:n]) if type(t) is not ad.Zero}
    dots = [_zero(y) for y in outs]
    if any(type(t) is not ad.Zero for t in tangents[n:]):
        same, moved = params, tangents[n:]
        if is_backward and "outputs" in params:
            outputs, moved = _not_zero(params["outputs"], moved)
            same = params | {"outputs": outputs}
        dots = bind(p, *primals[:n], *map(compat.instantiated, moved), **same)
    if moving:
        more = of_residuals(p, primals, moving, outs, params)
        dots = [ad.add_tangents(a, b) for a, b in zip(dots, more, strict=True)]
    return outs, dots


def _of_reference(body, p, primals, moving, outs, params):
    """The derivative of the reference in the residuals {position: tangent}."""
    count = len(primals)

    def derivative(*operands):
        values, turns = operands[:count], operands[count:]

        def of_residuals(*some):
            known = dict(zip(moving, some, strict=True))
            values_ = (known.get(i, x) for i, x in enumerate(values))
            return tuple(body.reference(*values_, **{k: v for k, v in params.items() if k != "implementation"}))

        return jax.jvp(of_residuals, tuple(values[i] for i in moving), turns)[1]

    return explicit.left_to_compiler(derivative, list(map(jax.typeof, outs)))(*primals, *moving.values())


# Multilinear ops. `slots` has the position of each differentiable operand among the residuals, all of which are linear. A
# cotangent does not depend on the operand that it belongs to; nor does what an operand's tangent gives.


def _of_multilinear(slots, split, is_backward, p, primals, moving, outs, params):
    """The derivative in the residuals {position: tangent}: the same, of the residual's tangent."""
    n, dots = split(primals, params), [_zero(y) for y in outs]
    for i, tangent in moving.items():
        own, operands = list(slots.values()).index(i), [*primals]
        operands[i] = tangent
        if not is_backward:
            operands[n + own] = _zeros(operands[n + own])
        more = list(bind(p, *operands, **params))
        if is_backward:
            more[own] = _zero(more[own])
        dots = [ad.add_tangents(a, b) for a, b in zip(dots, more, strict=True)]
    return dots


def _multilinear_transpose(in_linear, backward, slots, split, is_backward, cotangents, *operands, **params):
    """In the linear operands as elsewhere; in a residual the cotangent of its operand, of all that is multiplied with it."""
    n = split(operands, params)
    asked = [i for i, x in enumerate(operands[:n]) if ad.is_undefined_primal(x)]
    if not asked:
        return in_linear(cotangents, *operands, **params)
    (i,) = asked
    own, total = list(slots.values()).index(i), ad.Zero(operands[i].aval)
    for k, slot in enumerate(slots.values()):
        factor = cotangents[k] if is_backward else operands[n + k]
        if k == own or type(factor) is ad.Zero:
            continue
        inner = [*operands[:n]]
        inner[i], inner[slot] = _zeros(operands[i].aval), factor
        ct = operands[n] if is_backward else cotangents[0]
        total = ad.add_tangents(total, bind(backward, *inner, ct, **params)[own])
    return [total if k == i else None for k in range(len(operands))]


def _zeros(x):
    return full(x.shape, 0, x.dtype)


def _linear_transpose(transposed, n, cotangents, *operands, **params):
    nothing = [None] * n
    if all(type(ct) is ad.Zero for ct in cotangents):
        return [*nothing, *(ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in operands[n:])]
    outs = bind(transposed, *operands[:n], *map(compat.instantiated, cotangents), **params)
    linear = zip(outs, operands[n:], strict=True)
    return [*nothing, *(compat.place_as(ct, x.aval) if ad.is_undefined_primal(x) else None for ct, x in linear)]


def _tangent_transpose(backward, n, cotangents, *operands, outputs=None, **params):
    """Of several outputs, those that have a cotangent take part."""
    if outputs is None:
        return _linear_transpose(backward, n, cotangents, *operands, **params)
    if not all(type(ct) is ad.Zero for ct in cotangents):
        outputs, cotangents = _not_zero(outputs, cotangents)
    return _linear_transpose(backward, n, cotangents, *operands, outputs=outputs, **params)


def _not_zero(outputs, values):
    """The outputs whose tangents or cotangents are not symbolic zeros, and these."""
    return tuple(
        zip(*((name, x) for name, x in zip(outputs, values, strict=True) if type(x) is not ad.Zero), strict=True)
    )


def _zero(x):
    return ad.Zero(jax.typeof(x).to_tangent_aval())
