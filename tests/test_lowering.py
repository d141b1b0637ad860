"""What the suite spares JAX changes no program."""

import jax
import lowering
from examples_of import has_derivative
from plans import example_of


def test_a_program_does_not_depend_on_its_context(op, monkeypatch):
    example = example_of(op)

    def texts():
        programs = [example.fun, jax.grad(example.loss)] if has_derivative(op) and example.is_float else [example.fun]
        return [jax.jit(lambda x, fun=fun: fun(x)).lower(example.x).as_text() for fun in programs]

    given = texts()
    monkeypatch.setattr(lowering.mlir, "make_ir_context", lowering.make_ir_context)
    assert texts() == given
