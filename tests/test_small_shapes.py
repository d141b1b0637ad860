"""Law: sizes of 0 and 1 along any axis are no special case: forward and gradient trace, and the definition has the types of the
kernels. Nothing is compiled here, except for distinct slices."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import Example, has_derivative, kernels_of, usual_dtype

import baracuda_jax as bj
from baracuda_jax._core import compat, traced
from baracuda_jax._core.op import OPS

SHAPES = [s for rank in (1, 2) for s in itertools.product((0, 1, 3), repeat=rank) if {0, 1} & set(s)]
SHAPES += [(0, 3, 1), (1, 0, 3), (3, 1, 0)]
PRIMITIVES = {getattr(op, kind): (op, kind) for op in OPS.values() for kind in ("forward", "tangent", "backward")}


def _pad(x, axis, mode):
    return bj.pad(x, [(1, 2) if d == axis % x.ndim else (0, 0) for d in range(x.ndim)], mode)


# Functions of an array and an axis.
ALONG = {
    **{name: getattr(bj, name) for name in (
        "sum", "max", "prod", "logsumexp", "vector_norm", "var", "median", "nanmedian", "sort", "argmax", "cumsum", "cumprod", "cummax",
        "logcumsumexp", "flip", "glu", "any",
    )},
    "quantile": lambda x, axis: bj.quantile(x, sent.asarray([0.3, 1.0]), axis),
    "nanquantile": lambda x, axis: bj.nanquantile(x, 0.3, axis),
    "roll": lambda x, axis: bj.roll(x, 1, axis),
    "topk": lambda x, axis: bj.topk(x, min(1, x.shape[axis]), axis),
    "kthvalue": lambda x, axis: bj.kthvalue(x, 1, axis),
    "sort_key_val": lambda x, axis: bj.sort_key_val(x, x, axis),
    "repeat": lambda x, axis: bj.repeat(x, [2 if d == axis else 1 for d in range(x.ndim)]),
    "repeat_interleave": lambda x, axis: bj.repeat_interleave(x, np.ones(x.shape[axis], int), axis),
    "concat": lambda x, axis: bj.concat([x, x], axis),
    "channel_shuffle": lambda x, axis: bj.channel_shuffle(x, 1, axis=axis),
    "reflect": lambda x, axis: _pad(x, axis, "reflect"),
    "circular": lambda x, axis: _pad(x, axis, "circular"),
    "fake_quantize": lambda x, axis: bj.fake_quantize(x, sent.ones(x.shape[axis]), axis=axis),
    "lsq": lambda x, axis: bj.fake_quantize(x, sent.ones(x.shape[axis]), axis=axis, gradient="lsq"),
    "linear_scan": lambda x, axis: bj.linear_scan(x, x, axis=axis),
    "unique": lambda x, axis: bj.unique(x, True, True, True, axis, size=2, fill_value=0),
    "unique_consecutive": lambda x, axis: bj.unique_consecutive(x, True, True, axis, size=2, fill_value=0),
    "segment_max": lambda x, axis: bj.segment_max(x, sent.zeros(x.shape[0], int), 2),
    "segment_prod": lambda x, axis: bj.segment_prod(x, sent.zeros(x.shape[0], int), 0),
    "dynamic_update_slice": lambda x, axis: bj.dynamic_update_slice(x, sent.zeros((0,) * x.ndim, x.dtype), (0,) * x.ndim),
    "unbroadcast": lambda x, axis: bj.unbroadcast(x, (1,) * x.ndim, "max"),
    "add": lambda x, axis: bj.add(x, sent.ones(x.shape[-1:])),
    "searchsorted": lambda x, axis: bj.searchsorted(x, x),
    "nonzero": lambda x, axis: bj.nonzero(x, size=2),
    "histogram": lambda x, axis: bj.histogram(x, 3, (0, 1)),
    "lp_pool": lambda x, axis: bj.lp_pool1d(x, 2, 1),
}  # fmt: skip


def _loss(fun):
    inexact = lambda tree: [y for y in jax.tree.leaves(tree) if jnp.issubdtype(y.dtype, jnp.inexact)]
    return lambda *args: sum((y.sum().real for y in inexact(fun(*args))), sent.zeros(()))


def _traces(fun, *args):
    """Of every call that it makes, the definition has the types that the kernels have."""
    for equation in compat.equations(jax.make_jaxpr(fun)(*args)):
        if equation.primitive not in PRIMITIVES:
            continue
        op, kind = PRIMITIVES[equation.primitive]
        params = {key: value for key, value in equation.params.items() if key != "implementation"}
        avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
        outs = compat.trace(op.bodies[kind].reference, avals, params).out_avals
        assert [(y.shape, y.dtype) for y in outs] == [(v.aval.shape, v.aval.dtype) for v in equation.outvars], (
            op.name,
            kind,
        )


@pytest.mark.parametrize("name", ALONG)
def test_sizes_of_0_and_1(name):
    fun, ran = ALONG[name], 0
    for shape in SHAPES:
        x = jax.ShapeDtypeStruct(shape, jnp.float32)
        for axis in range(len(shape)):
            try:
                jax.eval_shape(lambda x, axis=axis: fun(x, axis), x)
            except (ValueError, TypeError) as error:
                # The op says what is wrong with it, such as no elements to take the largest of.
                assert str(error).startswith(tuple(traced.names())), (shape, axis)
                continue
            ran += 1
            _traces(lambda x, axis=axis: fun(x, axis), x)
            _traces(jax.grad(_loss(lambda x, axis=axis: fun(x, axis))), x)
    assert ran > 2


def _without(size, x):
    shape = tuple(0 if n == size else n for n in x.shape)
    return x if shape == x.shape else jax.ShapeDtypeStruct(shape, x.dtype)


def test_any_size_may_be_0(op):
    """Each size that a case has, wherever operands have it. An op may refuse: the error is its own, or of an op that it calls."""
    for case in op.cases:
        example = Example(op, case, usual_dtype(op))
        for size in sorted({n for x in example.args for n in x.shape if n}):
            empty = example.with_arguments(_without(size, x) for x in example.args)
            fun = functools.partial(empty.public, implementation=kernels_of(op))
            try:
                _traces(fun, *empty.args)
                if has_derivative(op):
                    _traces(jax.grad(_loss(fun), empty.moving[0]), *empty.args)
            except (ValueError, TypeError) as error:
                assert str(error).startswith(tuple(traced.names())), (case.name, size, str(error))


@pytest.mark.parametrize(
    "shape, axis", [((5, 1), 1), ((1, 3), 0), ((0, 3), 0), ((3, 0), 0), ((1, 1), 0), ((2, 1, 3), 1)]
)
def test_distinct_slices_are_numpys(shape, axis):
    x = np.ones(shape, np.float32)
    got = bj.unique(x, True, True, True, axis)
    n = shape[axis]
    want = (np.take(x, [0], axis), [0], np.zeros(n), [n]) if n else (x, [], [], [])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    values, inverse, counts = bj.unique_consecutive(x, True, True, axis)
    for a, b in zip((values, inverse, counts), (want[0], *want[2:]), strict=True):
        np.testing.assert_array_equal(a, b)
