"""What keeps the library whole: JAX is touched in one place, and every name is documented."""

import inspect
import pathlib
import re

import jax

import baracuda_jax
from baracuda_jax._core.op import OPS

PACKAGE = pathlib.Path(baracuda_jax.__file__).parent


def test_jax_internals_are_touched_in_one_file():
    private = re.compile(r"jax\._src|jaxlib\._(?!_)|jax\.interpreters|jax\.extend")
    found = {path.name for path in PACKAGE.rglob("*.py") if private.search(path.read_text())}
    assert found == {"compat.py"}


def test_every_public_name_is_documented_and_reachable():
    for name in baracuda_jax.__all__:
        assert inspect.getdoc(getattr(baracuda_jax, name)), name


def test_public_functions_are_jittable_with_static_parameters(op):
    import numpy as np

    case = op.cases[0]
    args = case.arguments(np.random.default_rng(0), op.dtypes[0])
    static = tuple(case.kwargs)
    jitted = jax.jit(op.public, static_argnames=static)(*args, **case.kwargs)
    for y, want in zip(jax.tree.leaves(jitted), jax.tree.leaves(op.public(*args, **case.kwargs)), strict=True):
        np.testing.assert_array_equal(y, want)


def test_op_names_are_those_of_the_table():
    assert all(name == op.name for name, op in OPS.items())
