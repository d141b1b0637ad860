"""An op between others with which XLA fuses it, which its time alone does not show: an elementwise one, one that moves
elements, or a reduction, which XLA computes while it makes its operand. So the choice of a backend rests on programs
that add a bias before the op, and multiply its result by a gate."""

import jax.numpy as jnp


def has(family):
    """Whether ops of the family are what XLA fuses."""
    return family in ("elementwise", "shape", "reduce")


def program(fun):
    """The op with a bias and a gate, which come after its operands."""

    def between(*arrays):
        *operands, bias, gate = arrays
        y = fun(operands[0] + bias, *operands[1:])
        return y & gate if y.dtype == bool else y * gate

    return between


def sets(benchmark, drawn):
    """The sets (dy, *operands) with a bias, which moves no operand out of the op's domain, and a gate."""
    y = benchmark.result_type(drawn[0][1:])
    x = drawn[0][1]
    columns = x.shape[-1:] if x.ndim > 1 else ()  # a bias as long as x would be read as x is
    bias = jnp.zeros(columns, x.dtype)
    gate = (jnp.arange(1, 1 + y.size) % 7 + 1).reshape(y.shape).astype(y.dtype)
    return [(*arrays, bias, gate) for arrays in drawn]
