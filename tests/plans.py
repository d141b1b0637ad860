"""What the tests of plans share."""

import re

import jax
import jax.numpy as jnp
import sent
from examples_of import Example, kernels_of, usual_dtype

import baracuda_jax as bj

X, IDS = sent.arange(15, dtype=jnp.float32).reshape(5, 3), sent.asarray([0, 2, 1, 0, 2])
IMAGE = jax.ShapeDtypeStruct((32, 64, 112, 112), jnp.float32)


def example_of(op, dtype=None):
    return Example(op, op.cases[0], dtype or usual_dtype(op))


def plan_of(example, **options):
    """With implementation="native" the automatic plan where the op has no kernels."""
    if options.get("implementation") == "native":
        options["implementation"] = kernels_of(example.op)
    return bj.plan(example.op.public, *example.structured(example.args), **example.case.kwargs, **options)


def calls(text):
    """The targets of baracuda_jax in a program's text."""
    return set(re.findall(r"\bbaracuda\.\w+", text))
