"""The programs that are timed: (dy, *arrays) -> results, of which none can be left out."""

import re

import jax
from jax import lax

from .benchmark import PASSES

_INSTRUCTION = re.compile(r"^ *(?:ROOT )?%(\S+) = .*? ([a-z][\w-]*)\(((?:%[^\s,()]+(?:, )?)*)\)", re.M)


def results(y):
    """As a tuple, also of one array."""
    return y if isinstance(y, tuple) else (y,)


def forward(fun, moving):
    """The result alone."""
    return jax.jit(lambda dy, *arrays: results(fun(*arrays)))


def forward_and_backward(fun, moving):
    """The result, and the gradients in the first arrays, in two steps as in training.

    There the cotangent comes of a loss, so of the result. Here it is an argument, and without the barrier a compiler could
    compute both steps in one pass over the operands, which no training can."""

    def program(dy, *arrays):
        y, vjp = jax.vjp(lambda *some: fun(*some, *arrays[moving:]), *arrays[:moving])
        y, dy = lax.optimization_barrier((y, dy))
        return *results(y), *vjp(dy)

    return jax.jit(program)


BY_PASS = dict(zip(PASSES, (forward, forward_and_backward), strict=True))


def compile_or_reason(program, arguments):
    """(the compiled program, None), or (None, why JAX has none)."""
    try:
        return program.lower(*arguments).compile(), None
    except NotImplementedError as error:
        return None, f"JAX: {first_line(error)}"


def first_line(error):
    """Of what an error says."""
    return str(error).strip().partition("\n")[0]


def in_one_kernel(hlo):
    """Whether a compiled program's first result and a gradient come out of one fusion: then the barrier did not hold."""
    entry = hlo[hlo.index("\nENTRY ") :]
    made_by = {name: (opcode, operands.split(", ")) for name, opcode, operands in _INSTRUCTION.findall(entry)}

    def origin(name):
        opcode, operands = made_by.get(name.lstrip("%"), ("", ()))
        if opcode in ("get-tuple-element", "bitcast", "copy"):
            return origin(operands[0])
        return name if opcode == "fusion" else None

    root, has_several = re.search(r"^ *ROOT %(\S+) = (\(?)", entry, re.M).groups()
    opcode, results = made_by.get(root, ("", ()))
    if opcode == "fusion":
        return bool(has_several)
    origins = [origin(name) for name in results]
    return any(o and o == origins[0] for o in origins[1:])
