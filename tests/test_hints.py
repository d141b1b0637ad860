"""Errors of a call by another library's names, and of arguments that are no arrays: each says what to use."""

import inspect
import pickle

import jax
import pytest
import sent

import baracuda_jax as bj
from baracuda_jax._core import hints
from baracuda_jax._core.traced import public

X = sent.ones((3, 4))


@pytest.mark.parametrize(
    "fun, args, keyword, told",
    [
        (bj.sum, (X,), "dim", "use axis"),
        (bj.sum, (X,), "keepdim", "use keepdims"),
        (bj.sum, (), "input", "use x"),
        (bj.var, (X,), "unbiased", "use correction"),
        (bj.vector_norm, (X,), "p", "use ord"),
        (bj.lp_pool2d, (X, 2), "kernel_size", "use window"),
        (bj.lp_pool2d, (X,), "p", "use norm_type"),
        (bj.max_pool2d, (X, 2), "kernel_size", "use window"),
        (bj.avg_pool2d, (X, 2), "stride", "use strides"),
        (bj.fractional_max_pool2d, (X, X, 2), "_random_samples", "use samples"),
        (bj.max_unpool2d, (X, X, 2), "indices", "use index"),
        (bj.unfold, (X, 2), "stride", "use strides"),
        (bj.fold, (X, 2), "kernel_size", "use window"),
        (bj.roll, (X,), "shifts", "use shift"),
        (bj.flip, (X,), "dims", "use axis"),
        (bj.permute, (X,), "dims", "use axes"),
        (bj.triu, (X,), "diagonal", "use k"),
        (bj.trace, (X,), "diagonal", "use offset"),
        (bj.searchsorted, (X[0], X), "right", 'use side="right"'),
        (bj.relu, (X,), "prefer", "use implementation"),
        (bj.argsort, (X,), "stable", "sorts are always stable"),
        (bj.sort, (X,), "largest", "use descending"),
        (bj.topk, (X, 2), "sorted", "the elements are always in order"),
        (bj.add, (X,), "other", "use x2"),
        (bj.geglu, (X,), "approximat", "use approximate"),
        (bj.clamp, (X,), "a_min", "use min"),
        (bj.quantile, (X, 0.5), "interpolation", "use method"),
        (bj.unique_consecutive, (X,), "dim", "use axis"),
        (bj.tile, (X,), "reps", "use repeats"),
        (bj.dynamic_update_slice, (X, X), "start_indices", "use start"),
        (bj.concat, (), "tensors", "use xs"),
        (bj.meshgrid, (X[0],), "indexin", "use indexing"),
        (bj.sum_backward, (X,), "dim", "use axis"),
        (bj.mse_loss, (X,), "predictions", "use x"),
        (bj.mse_loss, (X,), "size_average", "use reduction"),
        (bj.cross_entropy_loss, (X,), "labels", "use target"),
        (bj.max, (X,), "frob", "it takes x, axis, keepdims, initial, where, return_residuals, implementation"),
    ],
)  # fmt: skip
def test_another_librarys_keyword(fun, args, keyword, told):
    expected = f"{fun.__name__}: got an unexpected keyword argument '{keyword}'; {told}"
    for call in (fun, jax.jit(lambda *args, **more: fun(*args, **more))):
        with pytest.raises(TypeError) as error:
            call(*args, **{keyword: 1})
        assert str(error.value).splitlines()[0] == expected
    plan = f"plan of {expected.replace(': ', ': ', 1)}"
    with pytest.raises(TypeError) as error:
        bj.plan(fun, *args, **{keyword: 1})
    assert str(error.value) == plan


def test_every_hint_is_of_an_argument_that_a_function_has():
    taken = {name for fun in public().values() for name in inspect.signature(fun).parameters}
    for keyword, told in hints.KEYWORDS.items():
        assert isinstance(told, str) or set(told) <= taken | {hints.FIRST, "q"}, keyword


@pytest.mark.parametrize("name", public())
def test_every_public_function_has_hints_and_keeps_its_signature(name):
    fun = public()[name]
    with pytest.raises(TypeError, match=f"^{fun.__name__}: got an unexpected keyword argument 'zzz'; it takes "):
        fun(zzz=1)
    with pytest.raises(
        ValueError, match=rf"^{fun.__name__}: implementation must be one of \('native', 'xla'\), .*got 'cuda'"
    ):
        fun(implementation="cuda")
    assert inspect.signature(fun).parameters["implementation"].default is None
    assert inspect.isfunction(fun) and pickle.loads(pickle.dumps(fun)) is fun


def test_a_type_error_from_within_is_left_as_it_is():
    with pytest.raises(TypeError, match="^sum: x must be an array, got str"):
        bj.sum("rows", axis=0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        bj.sum()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: bj.sum(None), "sum: x must be an array, got NoneType"),
        (lambda: bj.relu({"x": X}), "relu: x must be an array, got dict"),
        (lambda: bj.add(X, None), "add: x2 must be an array, got NoneType"),
        (lambda: bj.sum([[1, 2], [3]]), "sum: x must be an array, got list"),
        (lambda: bj.segment_sum(None, X), "segment_sum: data must be an array, got NoneType"),
        (lambda: bj.concat(None), "concat: xs must be a sequence of arrays, got NoneType"),
        (lambda: bj.concat([X, None]), "concat: xs[1] must be an array, got NoneType"),
        (
            lambda: bj.concat(X, X),
            "concat: axis must be an integer, got an array of shape (3, 4); the arrays are one argument, as in concat([x, y])",
        ),
        (lambda: bj.flip(X, X), "flip: axis must be an integer, got an array of float64 of shape (3, 4)"),
    ],
)  # fmt: skip
def test_what_is_no_array_or_no_axis(call, message):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize(
    "name, told",
    [
        ("stack", "there is no op of this name here, use jax.numpy.stack"),
        ("squareplus", "there is no op of this name here, use jax.nn.squareplus"),
        ("segment_summ", "did you mean segment_sum or segment_"),
        ("clip", "jax.numpy.clip is clamp here"),
        ("norm", "jax.numpy.linalg.norm is vector_norm here"),
        ("spread", "module 'baracuda_jax' has no attribute 'spread'"),
    ],
)
def test_names_that_there_are_not(name, told):
    with pytest.raises(AttributeError) as error:
        getattr(bj, name)
    assert told in str(error.value) and f"no attribute {name!r}" in str(error.value)
