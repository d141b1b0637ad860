"""The table of laws, and which ops and dtypes a law speaks of."""

import dataclasses
import zlib
from collections.abc import Callable

import jax.numpy as jnp
from examples_of import Example
from sampling import is_in_turn

from baracuda_jax._core.op import OPS

LAWS = {}


@dataclasses.dataclass(frozen=True)
class Law:
    """`check` raises where the law is broken; a condition gives the reason why the law says nothing, or None."""

    name: str
    check: Callable[[Example], None]
    conditions: tuple[Callable, ...]
    each_case: bool  # also in a sample

    def applies(self, op, dtype):
        """None, or the reason why not."""
        return next((reason for condition in self.conditions if (reason := condition(op, jnp.dtype(dtype)))), None)


def law(*conditions, each_case=False):
    """Enters a function of an example into the table, under its name."""

    def enter(check):
        LAWS[check.__name__] = Law(check.__name__, check, conditions, each_case)
        return check

    return enter


def derivable(op, dtype):
    if not op.differentiable:
        return "the op has no derivative"
    if op.codes:
        return "codes carry no derivative"
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


def cells():
    """{(law, op, dtype): None, or the reason why it does not apply}"""
    return {
        (law.name, op.name, dtype): law.applies(op, dtype)
        for law in LAWS.values()
        for op in OPS.values()
        for dtype in op.dtypes
    }


def chosen(every, seed):
    """The pairs (law, example) to run: all, or a sample of each law's, in cases and dtypes that change from law to law."""
    for i, law in enumerate(LAWS.values()):
        for op in OPS.values():
            dtypes = [dtype for dtype in op.dtypes if law.applies(op, dtype) is None]
            if every:
                yield from ((law, Example(op, case, dtype)) for case in op.cases for dtype in dtypes)
                continue
            if not is_in_turn(op, i + seed):
                continue
            turn = zlib.crc32(f"{seed} {op.name}".encode()) + i
            count = len(op.cases) if law.each_case else 1
            for j in range(count if dtypes else 0):
                case = op.cases[(turn // 5 + j) % len(op.cases)]
                yield law, Example(op, case, dtypes[(turn * count + j) % len(dtypes)])
