"""The bodies of an op's primitives, and those that follow from others: what is left out in a declaration."""

from collections.abc import Callable
from typing import NamedTuple

import jax

from .names import has_star, spelled


class Body(NamedTuple):
    """One computation, twice: in plain JAX, and by kernels; None where the op has no kernels."""

    reference: Callable
    native: Callable | None = None

    @property
    def typed(self):
        """The one that gives the results' types."""
        return self.native or self.reference

    def map(self, change):
        """Both changed; what is missing stays so."""
        return Body(*(fun and change(fun) for fun in self))


def all_results(forward):
    """A forward reference computes all results; what nobody saves is cut off, and the compiler drops its computation."""

    def reference(*operands, save, **params):
        return tuple(forward.reference(*operands, **params))[: None if save else 1]

    return Body(reference, forward.native)


def derived(forward, operands, differentiable, outputs):
    """The derivatives of an op without kernels: those of its reference, by JAX. Its operands are the residuals."""

    def at(values, some, params):
        """The outputs that take part as a function of the differentiable operands, and these."""
        names = spelled(operands, len(values))
        known = dict(zip(names, values, strict=True))
        moving = spelled(differentiable, len(values) - len(operands) + len(differentiable))

        def of_moving(*arrays):
            changed = known | dict(zip(moving, arrays, strict=True))
            found = dict(zip(outputs, forward.reference(*changed.values(), **params), strict=False))
            return tuple(found[name] for name in some)

        return of_moving, tuple(known[name] for name in moving)

    def split(values, count_of_linear):
        return values[: len(values) - count_of_linear], values[len(values) - count_of_linear :]

    def tangent(*values, outputs=outputs, **params):
        extra = (len(values) - len(operands) - len(differentiable)) // 2 if has_star(differentiable) else 0
        values, tangents = split(values, len(differentiable) + extra)
        return jax.jvp(*at(values, outputs, params), tangents)[1]

    def backward(*values, outputs=outputs, **params):
        values, cotangents = split(values, len(outputs))
        fun, moving = at(values, outputs, params)
        return jax.vjp(fun, *moving)[1](cotangents)

    return Body(tangent), Body(backward)


def of_some_outputs(tangent, backward, every):
    """The bodies of an op with several outputs, of which some take part."""

    def selected(fun):
        def run(*values, outputs, **params):
            found = dict(zip(every, fun(*values, **params), strict=True))
            return tuple(found[name] for name in outputs)

        return run

    def filled(fun):
        def run(*values, outputs, **params):
            count = len(values) - len(outputs)
            cotangents = dict(zip(outputs, values[count:], strict=True))
            return fun(*values[:count], *(cotangents.get(name) for name in every), **params)

        return run

    return {"tangent": tangent.map(selected), "backward": backward.map(filled)}


def linear_tangent(forward, operands, residuals, differentiable, outputs, linear):
    """A linear op's tangent: the op itself, with the tangents where its operands were."""

    def of(fun):
        def tangent(*values, **params):
            known = dict(zip(spelled((*residuals, *differentiable), len(values)), values, strict=True))
            moved = (known[name] for name in spelled(operands, len(values)))
            return tuple(fun(*moved, save=len(outputs) > 1, **linear(params)))[: len(outputs)]

        return tangent

    return forward.map(of)
