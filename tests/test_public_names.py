"""Public names: each is found again by pickle, as another process needs. Nothing is compiled here."""

import pathlib
import pickle

import pytest

import baracuda_jax as bj
from baracuda_jax._core.op import OPS


@pytest.mark.parametrize("name", bj.__all__)
def test_public_names_pickle(name):
    value = getattr(bj, name)
    if callable(value):
        assert pickle.loads(pickle.dumps(value)) is value
    else:
        assert pickle.loads(pickle.dumps(value)) == value


def test_an_op_that_is_not_a_function_of_its_name_is_explained():
    """An op of the tables is public under its name, or the page that has the table says which function calls it."""
    page = (pathlib.Path(__file__).parent.parent / "docs" / "ops.md").read_text()
    for op in OPS.values():
        if op.name not in bj.__all__:
            assert f"`{op.name}`" in page, op.name
        assert getattr(bj, op.public.__name__) is op.public
