"""The bodies of an op's primitives, and those that follow from others."""

import inspect
from collections.abc import Callable
from typing import NamedTuple

from .names import spelled


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
    """A forward reference computes all results; what nobody saves is cut off, and the compiler drops its computation. One
    that computes the first result by itself faster has an argument `save`."""
    asks = "save" in inspect.signature(forward.reference).parameters

    def reference(*operands, save, **params):
        how = {"save": save} if asks else {}
        return tuple(forward.reference(*operands, **how, **params))[: None if save else 1]

    return Body(reference, forward.native)


def of_some_outputs(tangent, backward, every):
    """The bodies of an op with several outputs, of which some take part."""
    return {
        "tangent": tangent.map(lambda fun: selected(fun, every)),
        "backward": backward.map(lambda fun: filled(fun, every)),
    }


def selected(tangent, every):
    """The function of the tangents of some outputs, by that of all."""

    def run(*values, outputs, **params):
        found = dict(zip(every, tangent(*values, **params), strict=True))
        return tuple(found[name] for name in outputs)

    return run


def filled(backward, every):
    """The function of the cotangents of some outputs, by that of all, where None is that of an output without one."""

    def run(*values, outputs, **params):
        count = len(values) - len(outputs)
        cotangents = dict(zip(outputs, values[count:], strict=True))
        return backward(*values[:count], *(cotangents.get(name) for name in every), **params)

    return run


def linear_tangent(forward, operands, residuals, differentiable, outputs, linear):
    """A linear op's tangent: the op itself, with the tangents where its operands were."""

    def of(fun):
        def tangent(*values, **params):
            known = dict(zip(spelled((*residuals, *differentiable), len(values)), values, strict=True))
            moved = (known[name] for name in spelled(operands, len(values)))
            return tuple(fun(*moved, save=len(outputs) > 1, **linear(params)))[: len(outputs)]

        return tangent

    return forward.map(of)
