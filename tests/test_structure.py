"""What keeps the library whole: JAX is touched in one place, and every name is documented."""

import inspect
import pathlib
import re

import jax

import baracuda_jax
from baracuda_jax._core import traced
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
    static = tuple(case.kwargs)
    jitted = jax.jit(op.public, static_argnames=static)(*args, **case.kwargs)
    for y, want in zip(jax.tree.leaves(jitted), jax.tree.leaves(op.public(*args, **case.kwargs)), strict=True):
        np.testing.assert_array_equal(y, want)


def test_op_names_are_those_of_the_table():
    assert all(name == op.name for name, op in OPS.items())
