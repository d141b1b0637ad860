"""What keeps the library whole: declarations that are complete, documented, and confined."""

import inspect
import pathlib
import re

import jax
import pytest

import baracuda_jax
from baracuda_jax._core.op import OPS

PACKAGE = pathlib.Path(baracuda_jax.__file__).parent


def test_jax_internals_are_touched_in_one_file():
    private = re.compile(r"jax\._src|jaxlib\._(?!_)|jax\.interpreters|jax\.extend")
    found = {path.name for path in PACKAGE.rglob("*.py") if private.search(path.read_text())}
    assert found == {"compat.py"}


def test_an_op_is_documented(op):
    text = inspect.getdoc(op.public)
    for section in ("Formula:", "Args:", "Returns:", "Raises:", "Precision:", "Source:"):
        assert section in text, section
    arguments = text.partition("Args:")[2].partition("Returns:")[0]
    for name in inspect.signature(op.public).parameters:
        assert re.search(rf"\b{name}\b", arguments), name


def test_every_public_name_is_documented_and_reachable():
    for name in baracuda_jax.__all__:
        assert inspect.getdoc(getattr(baracuda_jax, name)), name


def test_every_backward_kernel_has_a_public_function(op):
    if op.name.endswith(("_split", "_lsq")) or not op.differentiable:
        pytest.skip("it has another op's, or none")
    assert f"{op.name}_backward" in baracuda_jax.__all__


def test_an_op_has_rules_and_cases(op):
    from baracuda_jax._core.compat import ad, batching

    linear = (op.tangent, op.backward) if op.differentiable else ()
    for p in (op.forward, *linear):
        assert p in ad.primitive_jvps and p in batching.fancy_primitive_batchers
    for p in linear:
        assert p in ad.primitive_transposes
    assert op.cases and op.dtypes and op.kernels["forward"]


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
