"""The derivatives of exclusive scans: those of inclusive ones, with residuals, tangents and cotangents moved by one
element."""

import jax.numpy as jnp
from jax import lax

from .._core.op import Body
from ._references import after, before, last


def derivatives(tangent, backward, inclusive):
    """The tangent's and the backward's Body, from (*residuals, t) and (*residuals, dy) of inclusive scans.

    `inclusive` makes their residuals from those of an exclusive one. Its last element sees the operand's, but nothing sees
    its own: whatever is made of that, the derivatives are the same."""

    def of(fun, move):
        def body(*operands, exclusive, **params):
            if not exclusive:
                return fun(*operands, **params)
            return move(fun, inclusive(*operands[:-1], **params), operands[-1], params)

        return body

    def push(fun, residuals, t, params):
        return (before(fun(*residuals, t, **params)[0], 0, **params),)

    def pull(fun, residuals, dy, params):
        return fun(*residuals, after(dy, 0, **params), **params)

    return {
        "tangent": Body(*(of(fun, push) for fun in tangent)),
        "backward": Body(*(of(fun, pull) for fun in backward)),
    }


def shifted(y, end, *, axis, reverse):
    """The result of the inclusive scan, from that of the exclusive one and the last element."""
    n = y.shape[axis]
    first = 0 if reverse else min(n, 1)
    rest = lax.slice_in_dim(y, first, first + max(n - 1, 0), axis=axis)
    return lax.concatenate([end, rest] if reverse else [rest, end], axis)


def with_last(combine):
    """`inclusive` of residuals (operand, y) and what rounding took from y, if that is there, where `combine` adds the last
    element to what comes before it."""

    def inclusive(x, y, *rest, **params):
        end = lax.stop_gradient(combine(last(y, **params), last(x, **params).astype(y.dtype)))
        nothing = lambda r: jnp.zeros_like(last(r, **params))
        return x, shifted(y, end, **params), *(shifted(r, nothing(r), **params) for r in rest)

    return inclusive
