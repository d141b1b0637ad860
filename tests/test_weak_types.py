"""Law: what is made of Python numbers alone is weakly typed where JAX's is, and changes no dtype that it meets. Nothing is
compiled here, except by the last test."""

import jax
import jax.numpy as jnp
import pytest
from examples_of import Example
from laws import LAWS

import baracuda_jax as bj
from baracuda_jax._core.op import OPS
from baracuda_jax.elementwise._made import MADE

# JAX's results are strong here, since its own constants are arrays; and `cube` is a function of two arguments there.
OTHER = {"gelu", "gelu_tanh", "log2", "log10", "cube"}
FULL = lambda value: jnp.broadcast_to(value, (4,))


def _type(fun, *args, **kwargs):
    """The types of results on arguments that stay Python numbers."""
    return [(y.dtype, y.weak_type) for y in jax.tree.leaves(jax.eval_shape(lambda: fun(*args, **kwargs)))]


def _numbers(made):
    """Python numbers that the op takes."""
    if made.dtypes == ("bool",):
        return (True,) * made.arrays
    return (0.5 if "float32" in made.dtypes else 2,) * made.arrays


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_lines_of_tables(made):
    fun, numbers = getattr(bj, made.name), _numbers(made)
    ((dtype, is_weak),) = _type(fun, *numbers)
    some = jnp.bfloat16 if "float32" in made.dtypes else made.dtypes[0]
    arrays = [jnp.asarray(x, some) for x in numbers]
    ((strong, is_strong_weak),) = _type(fun, *arrays)
    assert not is_strong_weak
    assert _type(fun, arrays[0], *numbers[1:]) == [(strong, False)]
    if dtype.name == "bool":
        return
    assert is_weak
    if made.theirs("jax") and made.name not in OTHER:
        assert _type(lambda *xs: made.call_theirs(jax, *xs), *numbers) == [(dtype, True)]
    assert jax.eval_shape(lambda x: fun(*numbers) * x, arrays[0]).dtype == some


@pytest.mark.parametrize(
    "function, theirs, args",
    [
        (bj.where, jnp.where, (True, 1, 2.5)),
        (bj.where, jnp.where, (True, 1, 2)),
        (bj.where, jnp.where, (True, jnp.int8(1), 2)),
        (bj.clamp, jnp.clip, (1.0, 0, 2)),
        (bj.clamp, jnp.clip, (1, 0, 2)),
        (bj.integer_pow, jax.lax.integer_pow, (2.0, 3)),
        (bj.leaky_relu, jax.nn.leaky_relu, (0.5,)),
        (bj.clamp, jnp.clip, (0.5, 0.1, 0.9)),
        (bj.ldexp, jnp.ldexp, (0.5, 2)),
        (bj.tile, jnp.tile, (FULL(1.0), 3)),
        (bj.flip, jnp.flip, (FULL(1.0),)),
        (bj.roll, jnp.roll, (FULL(1), 1)),
        (bj.pad, jnp.pad, (FULL(1.0), 1)),
        (bj.concat, jnp.concatenate, ([FULL(1.0), FULL(2.0)],)),
        (bj.full, jnp.full, (3, 1.0)),
        (bj.full_like, jnp.full_like, (FULL(1.0), 2)),
        (bj.sort, jnp.sort, (FULL(1.0),)),
        (bj.cummax, jax.lax.cummax, (FULL(1.0),)),
        (bj.sum, jnp.sum, (FULL(1.0),)),
        (bj.max, jnp.max, (FULL(1),)),
        (bj.cumsum, jnp.cumsum, (FULL(1.0),)),
        (bj.searchsorted, jnp.searchsorted, (FULL(1.0), 0.5)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_weak_as_jax(function, theirs, args):
    assert _type(function, *args) == _type(theirs, *args)


def test_interpolation_by_python_numbers():
    assert _type(bj.lerp, 0.0, 1.0, 0.5) == [(jnp.asarray(1.0).dtype, True)]
    assert _type(bj.lerp, jnp.bfloat16(0), jnp.bfloat16(1), 0.5) == [(jnp.bfloat16, False)]
    assert _type(bj.prelu, 0.5, 0.1) == [(jnp.asarray(1.0).dtype, True)]


def test_derivatives_of_python_numbers():
    assert (jax.grad(bj.exp)(0.5) * jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
    y, t = jax.jvp(bj.mul, (2.0, 3.0), (1.0, 1.0))
    assert y.weak_type and float(t) == 5


def test_a_kernels_result_is_not_weak():
    """A law, on an op whose operand is as the caller gave it: each run has it."""
    op = OPS["segment_sum"]
    LAWS["weak_types"].check(Example(op, op.cases[0], "float32"))
