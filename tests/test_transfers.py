"""Law: a call on arrays that are on the device sends nothing there: constants are the compiler's. `jax.transfer_guard` says so.
What a caller gives as a number of Python's or NumPy's is sent, as by `jax.numpy`."""

import jax
import pytest
from examples_of import Example, has_derivative, usual_dtype
from test_plan_every import IDS, MASK, X

import baracuda_jax as bj
from baracuda_jax._core.op import OPS

KIN = {}
for _op in OPS.values():
    KIN.setdefault(_op.kin or _op.name, _op)


def _sends_nothing(fun, *args):
    jax.block_until_ready(args)
    with jax.transfer_guard("disallow"):
        jax.block_until_ready(fun(*args))


def _example(op):
    return Example(op, op.cases[0], usual_dtype(op))


def test_forward(op):
    example = _example(op)
    _sends_nothing(example.public, *example.args)


# JAX's own transposition sends zeros, as of the slices of one array that stands for a sequence, and of a facade's plain JAX, or
# such as is around a kernel.
PLAIN = (
    "concat",
    "cross_entropy_loss",
    "batch_paged_prefill",
    "paged_attention",
    "lu",
    "batched_svda",
)
DERIVABLE = [op for op in KIN.values() if has_derivative(op) and op.name not in PLAIN and not op.is_facade]


@pytest.mark.parametrize("declared", DERIVABLE, ids=lambda op: op.name)
def test_gradient(declared):
    """In one of several arguments: the others' tangents are zeros."""
    example = _example(declared)
    position = example.moving[0]
    fun = lambda x: example.call(*(x if i == position else a for i, a in enumerate(example.args)), implementation=None)
    x = example.args[position]
    _sends_nothing(lambda x, dy: jax.vjp(fun, x)[1](dy), x, fun(x))


OTHERS = {
    "mean": ((X,), dict(where=MASK)),
    "var": ((X,), dict(where=MASK, axis=0)),
    "sum": ((X,), dict(where=MASK)),
    "logsumexp": ((X,), dict(where=MASK)),
    "histogramdd": ((X,), dict(bins=2, range=((0, 1),) * 4, density=True)),
    "histogram": ((X,), dict(bins=2, range=(0, 1), weights=X, density=True)),
    "digitize": ((X, X[0]), {}),
    "bincount": ((IDS,), dict(weights=X[:, 0], length=5)),
    "nonzero": ((X,), dict(size=3, fill_value=-1)),
    "unique": ((X,), dict(axis=0, size=2, return_index=True, return_inverse=True, return_counts=True)),
    "repeat_interleave": ((X,), dict(repeats=(1, 0, 2), axis=0)),
    "dynamic_update_slice": ((X, X, (0, 1)), {}),
    "unbroadcast": ((X, (1, 4)), {}),
    "meshgrid": ((X[0], X[1]), {}),
    "concat": (([X, X],), {}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_arguments(name):
    args, kwargs = OTHERS[name]
    jax.block_until_ready((X, MASK, IDS))
    _sends_nothing(lambda: getattr(bj, name)(*args, **kwargs))
