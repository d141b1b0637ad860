"""The table of laws, and which ops and dtypes a law speaks of."""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import jax.numpy as jnp
from examples_of import Example
from sampling import due, each_but_of_facades_one_of_each_kin, each_kin, kind, pair, turn_of

from baracuda_jax._core.op import OPS

LAWS = {}


@dataclasses.dataclass(frozen=True)
class Law:
    """`check` raises where the law is broken; a condition gives the reason why the law says nothing, or None."""

    name: str
    check: Callable[[Example], None]
    conditions: tuple[Callable, ...]
    about: str  # the functor that each op has, the declaration that ops of one kin share, or the machinery of a kind of ops

    def applies(self, op, dtype):
        """None, or the reason why not."""
        return next((reason for condition in self.conditions if (reason := condition(op, jnp.dtype(dtype)))), None)


def law(*conditions, about="machinery"):
    """Enters a function of an example into the table, under its name."""

    def enter(check):
        LAWS[check.__name__] = Law(check.__name__, check, conditions, about)
        return check

    return enter


def derivable(op, dtype):
    if not op.differentiable:
        return "the op has no derivative"
    if op.quantized:
        return "quantized values carry no derivative"
    if not jnp.issubdtype(dtype, jnp.inexact):
        return "integers and bool carry no derivative"


def real(op, dtype):
    return (
        "real functions have Jacobians, complex ones have others"
        if jnp.issubdtype(dtype, jnp.complexfloating)
        else None
    )


def smooth(op, dtype):
    return "its derivative is a convention, not a limit" if op.surrogate else None


def entries():
    """{(law, op, dtype): None, or the reason why it does not apply}"""
    return {
        (law.name, op.name, dtype): law.applies(op, dtype)
        for law in LAWS.values()
        for op in OPS.values()
        for dtype in op.dtypes
    }


@functools.cache
def _example(op, case, dtype):
    """One object for all laws, which share what was computed of it."""
    return Example(OPS[op], OPS[op].cases[case], dtype)


# What ops share that show a law alike.
ALIKE = {"functor": each_but_of_facades_one_of_each_kin, "declaration": each_kin, "machinery": kind}


def chosen(tier):
    """The pairs (law, example) to run: of ops that are tested in full, all; of the others one example each of those that show
    what the law is about, and whose turn it is. Laws that meet an op in one run take the same example as far as they apply."""
    numbers = {about: itertools.count() for about in ALIKE}
    for law in LAWS.values():
        speaks_of = {op.name: _dtypes(law, op) for op in OPS.values()}
        ops = [op for op in OPS.values() if speaks_of[op.name]]
        full = [op for op in ops if op.name in tier.ops]
        pairs = [(op.name, i, dtype) for op in full for i in range(len(op.cases)) for dtype in speaks_of[op.name]]
        number = next(numbers[law.about])
        for seed in tier.seeds:
            found = due(ops, ALIKE[law.about], seed, number).items()
            pairs += [(op.name, *_take(op, speaks_of[op.name], before)) for op, before in found]
        yield from ((law, _example(*which)) for which in dict.fromkeys(pairs))


@functools.cache
def _dtypes(law, op):
    """Those of which the law speaks."""
    return [dtype for dtype in op.dtypes if law.applies(op, dtype) is None]


def _take(op, dtypes, before):
    turn, cases = turn_of(before, op.name), range(len(op.cases))
    case, dtype = pair(cases, op.dtypes, turn)
    return (case, dtype) if dtype in dtypes else pair(cases, dtypes, turn)
