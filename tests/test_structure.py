"""What keeps the library whole: JAX is touched in one place, and every name is documented."""

import functools
import inspect
import pathlib
import re
import typing

import jax

import baracuda_jax
from baracuda_jax._core import traced, types
from baracuda_jax._core.op import OPS

PACKAGE = pathlib.Path(baracuda_jax.__file__).parent


INTERNAL = re.compile(
    r"jax\.(_src|interpreters|extend|experimental)|jaxlib\.(_(?!_)|mlir|xla)|"
    r"from jax(lib)? import .*\b(_\w+|interpreters|extend|experimental)\b"
)


def test_jax_internals_are_touched_in_one_file():
    found = {path.name for path in PACKAGE.rglob("*.py") if INTERNAL.search(path.read_text())}
    assert found == {"compat.py"}


def test_what_is_internal():
    for line in (
        "from jax._src import core",
        "import jax._src.core",
        "jax.interpreters.mlir",
        "from jax import _src, numpy",
        "from jax import lax, extend",
        "from jax.extend.core import Primitive",
        "from jax.experimental import pallas",
        "from jaxlib import _jax",
        "import jaxlib.mlir.ir",
    ):
        assert INTERNAL.search(line), line
    for line in ("from jax import lax", "from jax import export", "jaxlib.__version__", "import jax.numpy as jnp"):
        assert not INTERNAL.search(line), line


def test_every_public_name_is_documented_and_reachable():
    for name in traced.names():
        assert inspect.getdoc(getattr(baracuda_jax, name)), name


def test_public_functions_are_jittable_with_static_parameters(op):
    import numpy as np

    case = op.cases[0]
    args = case.arguments(np.random.default_rng(0), op.dtypes[0])
    jitted = jax.jit(op.public, static_argnames=tuple(case.kwargs))(*args, **case.kwargs)
    fun = functools.partial(op.public, **case.kwargs)
    is_fused = op.fused or (op.made_of and op.default == "xla")  # which rounds otherwise than step by step
    whole = jax.jit(fun) if is_fused else fun
    for y, want in zip(jax.tree.leaves(jitted), jax.tree.leaves(whole(*args)), strict=True):
        np.testing.assert_array_equal(y, want)


def test_op_names_are_those_of_the_table():
    assert all(name == op.name for name, op in OPS.items())


def test_public_functions_are_annotated():
    """Those made from lines of tables too, each argument and the result; the package says so to type checkers."""
    assert (PACKAGE / "py.typed").exists()
    for name, fun in traced.public().items():
        signature = inspect.signature(fun)
        assert signature.return_annotation is not signature.empty, name
        for argument, parameter in signature.parameters.items():
            assert parameter.annotation is not parameter.empty, f"{name}: {argument}"
        assert signature.parameters["implementation"].annotation == types.Implementation, name


def test_results_are_of_the_annotated_kind(op):
    """An array, a tuple of arrays, or a list of them."""
    import numpy as np

    case = op.cases[0]
    args = case.arguments(np.random.default_rng(0), op.dtypes[0])
    result = jax.eval_shape(lambda *args: op.public(*args, **case.kwargs), *args)
    annotated = inspect.signature(op.public).return_annotation
    kinds = typing.get_args(annotated) if isinstance(annotated, type(int | str)) else [annotated]
    kinds = [typing.get_origin(kind) or kind for kind in kinds]
    assert any(kind is (jax.Array if isinstance(result, jax.ShapeDtypeStruct) else type(result)) for kind in kinds)


def test_gradients_are_of_the_annotated_kind(op):
    """A backward function gives one cotangent, or several."""
    fun = traced.public().get(f"{op.public.__name__}_backward")
    if fun is None or fun.__name__ in ("clamp_backward", "fake_quantize_backward"):  # by an argument
        return
    annotated = inspect.signature(fun).return_annotation
    several = len(op.differentiable) > 1 or op.differentiable[0].startswith("*")
    assert (annotated is not jax.Array) == several, f"{fun.__name__}: {annotated}"
