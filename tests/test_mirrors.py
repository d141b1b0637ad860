"""Mirrors are JAX's functions: the same signatures, results, dtypes, weak types, derivatives and errors."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from mirror_calls import CALLS, DIFFERENT
from plans import calls

import baracuda_jax as bj
from baracuda_jax._core.op import OPS
from baracuda_jax._mirror.mirror import MIRRORS

PARTS = 24  # of the calls of one mirror, of which a default run takes one
TOLERANCES = {2: 3e-2, 4: 2e-5, 8: 1e-10}  # by bytes of a real number; JAX adds up half precision in half precision
MORE = {  # calls, by how their labels begin, that have a derivative which JAX refuses
    "ops.segment_prod": "",
    "lax.reduce_window": ("dilated max", "dilated min"),
}


def parts(test):
    test = pytest.mark.parametrize("part", range(PARTS))(test)
    return pytest.mark.parametrize("name", MIRRORS)(test)


def calls_of(name, part):
    return [call for call in CALLS[name][part::PARTS] if call[0] not in DIFFERENT.get(name, ())]


def has_more(name, label):
    return name in MORE and label.startswith(MORE[name])


def is_native(mirror, args, kwargs):
    return mirror.adapter(*args, **kwargs) is not NotImplemented


def outcome(fun, *args, **kwargs):
    """What a call returns, or the error that it raises."""
    try:
        return fun(*args, **kwargs)
    except (TypeError, ValueError, NotImplementedError, AssertionError, ZeroDivisionError) as error:
        return error


def compiled(fun, *args):
    """The outcome of a program; run step by step, where sizes depend on values."""
    found = outcome(jax.jit(fun), *args)
    return outcome(fun, *args) if isinstance(found, jax.errors.ConcretizationTypeError) else found


def same(found, want, times=1):
    if isinstance(want, Exception):
        assert type(found) is type(want), (found, want)
        return
    assert not isinstance(found, Exception), found
    assert jax.tree.structure(found) == jax.tree.structure(want)
    for y, z in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert jax.typeof(y).str_short() == jax.typeof(z).str_short()
        assert jax.typeof(y).weak_type == jax.typeof(z).weak_type
        close(y, z, times)


def close(y, z, times=1):
    y, z = np.asarray(y), np.asarray(z)
    if not jnp.issubdtype(z.dtype, jnp.inexact):
        return np.testing.assert_array_equal(y, z)
    tolerance = TOLERANCES[np.finfo(z.dtype).bits // 8 if z.dtype.kind in "fc" else 2]
    wide = np.complex128 if z.dtype.kind == "c" else np.float64
    y, z = y.astype(wide), z.astype(wide)
    scale = np.abs(z[np.isfinite(z)]).max(initial=1)
    np.testing.assert_allclose(y, z, rtol=tolerance * times, atol=tolerance * times * scale)


def both_of(x, other):
    """A stack of x and what is made of it, as weakly typed as x."""
    if isinstance(x, jax.Array) and jax.typeof(x).weak_type:
        return jnp.stack([x, other(x)])
    return np.stack([np.asarray(x), other(np.asarray(x))])


def moving(args):
    """Of a call, its first argument, or the arrays in it; None where it has no derivative."""
    xs = args[0] if isinstance(args[0], tuple | list) else [args[0]]
    if not all(hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating) and x.size for x in xs):
        return None
    return [sent.asarray(x) for x in xs]


def loss(fun, args, kwargs):
    """A number that depends on all results, as a function of what moves."""

    def of(xs):
        first = type(args[0])(xs) if isinstance(args[0], tuple | list) else xs[0]
        ys = [y for y in jax.tree.leaves(fun(first, *args[1:], **kwargs)) if jnp.issubdtype(y.dtype, jnp.floating)]
        return sum((y * jnp.cos(sent.arange(y.size, dtype=y.dtype)).reshape(y.shape)).sum() for y in ys)

    return of


# ---------------------------------------------------------------------------------------------------------------------


def test_the_namespaces_hold_the_mirrors():
    for name, mirror in MIRRORS.items():
        namespace, _, function = name.rpartition(".")
        module = bj
        for part in namespace.split("."):
            module = getattr(module, part)
        assert getattr(module, function) is mirror.function and function in module.__all__, name
    assert set(CALLS) == set(MIRRORS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MIRRORS)
def test_signatures_are_jaxs(name):
    found, want = (
        [(p.name, p.kind, p.default) for p in inspect.signature(fun).parameters.values()]
        for fun in (MIRRORS[name].function, MIRRORS[name].original)
    )
    assert found == want


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MIRRORS)
def test_docstrings_name_jaxs_function_and_what_is_native(name):
    mirror = MIRRORS[name]
    assert re.fullmatch(rf"As jax\.{re.escape(name)}; native [^\n]+\.", mirror.function.__doc__)
    assert mirror.native.startswith("native ")
    assert mirror.ops and set(mirror.ops) <= set(OPS)


@parts
def test_results_are_jaxs(name, part):
    mirror = MIRRORS[name]
    for _, args, kwargs in calls_of(name, part):
        with bj.prefer("native"):
            same(outcome(mirror.function, *args, **kwargs), outcome(mirror.original, *args, **kwargs))


@parts
def test_results_under_jit_are_jaxs(name, part):
    """The first argument is traced, so that sizes that depend on its values must be given."""
    mirror = MIRRORS[name]
    for _, args, kwargs in calls_of(name, part)[:1]:
        jitted = lambda fun, args=args, kwargs=kwargs: jax.jit(lambda x: fun(x, *args[1:], **kwargs))
        with bj.prefer("native"):
            same(outcome(jitted(mirror.function), args[0]), outcome(jitted(mirror.original), args[0]))


ASCENDING = ("numpy.searchsorted",)  # the first argument has to be


@parts
def test_results_under_vmap_are_jaxs(name, part):
    mirror = MIRRORS[name]
    for _, args, kwargs in calls_of(name, part)[:1]:
        other = (lambda x: x - 1) if name in ASCENDING else np.flip
        twice = jax.tree.map(lambda x: both_of(x, other), args[0])
        mapped = lambda fun, args=args, kwargs=kwargs: jax.vmap(lambda x: fun(x, *args[1:], **kwargs))
        with bj.prefer("native"):
            found, want = compiled(mapped(mirror.function), twice), compiled(mapped(mirror.original), twice)
        if isinstance(want, Exception) or isinstance(found, Exception):
            assert isinstance(found, Exception) and isinstance(want, Exception), (found, want)
        else:
            same(found, want)


@parts
def test_derivatives_are_jaxs(name, part):
    mirror = MIRRORS[name]
    for label, args, kwargs in calls_of(name, part):
        xs = moving(args)
        if not has_more(name, label) and xs is not None and is_native(mirror, args, kwargs):
            with bj.prefer("native"):
                found = compiled(jax.grad(loss(mirror.function, args, kwargs)), xs)
            same(found, compiled(jax.grad(loss(mirror.original, args, kwargs)), xs))


@parts
def test_second_derivatives_are_jaxs(name, part):
    mirror = MIRRORS[name]
    for label, args, kwargs in calls_of(name, part)[:1]:
        xs = moving(args)
        if has_more(name, label) or xs is None or not is_native(mirror, args, kwargs) or xs[0].dtype.itemsize < 4:
            continue
        finite = lambda x: np.where(np.isfinite(x), x, np.ones((), x.dtype))  # inf times a slope of 0 may be NaN or 0
        ts = jax.tree.map(lambda x: finite(np.asarray(x)), xs)
        along = lambda fun, args=args, kwargs=kwargs: (
            lambda xs, ts: jax.jvp(jax.grad(loss(fun, args, kwargs)), (xs,), (ts,))[1]
        )
        with bj.prefer("native"):
            # JAX's is 0 where gelu's tanh rounds to -1 and the second derivative is -1e-5.
            same(compiled(along(mirror.function), xs, ts), compiled(along(mirror.original), xs, ts), times=2)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_said_to_differ_does(name):
    """A mirror that says it differs does in each call that the other tests leave out, and no other says so."""
    mirror = MIRRORS[name]
    assert mirror.differs
    for label, args, kwargs in CALLS[name]:
        if label in DIFFERENT[name]:
            xs = moving(args)

            def both(fun, xs=xs, args=args, kwargs=kwargs):
                with bj.prefer("native"):
                    return fun(*args, **kwargs), compiled(jax.grad(loss(fun, args, kwargs)), xs)

            with pytest.raises(AssertionError):
                same(both(mirror.function), both(mirror.original))


def test_only_those_that_differ_say_so():
    assert {name for name, mirror in MIRRORS.items() if mirror.differs} == set(DIFFERENT)


def _lowers_to_kernels(mirror, args, kwargs):
    """Whether the program holds kernel calls, of the arrays in the first argument alone."""
    leaves, tree = jax.tree.flatten(args[0])
    fun = lambda leaves: mirror.function(jax.tree.unflatten(tree, leaves), *args[1:], **kwargs)
    with bj.prefer("native"):
        return bool(calls(jax.jit(fun).lower(leaves).as_text()))


def test_the_gradient_of_segments_that_are_all_infinite_is_as_exact_as_its_dtype():
    x, ids = np.array([-np.inf] * 6 + [1.0, -np.inf]), np.array([0] * 6 + [1, 2])
    gradient = lambda of: jax.grad(lambda x: of(x, ids, 3) @ jnp.arange(3.0, 6.0))(x)
    np.testing.assert_allclose(gradient(bj.ops.segment_max), gradient(jax.ops.segment_max), rtol=1e-15)


@pytest.mark.parametrize("name", MIRRORS)
def test_the_kernel_runs(name):
    """In a call that depends on no values. What has no size outside jit is given one."""
    mirror = MIRRORS[name]
    x, ids = sent.arange(12.0).reshape(3, 4), sent.asarray([0, 1, 1])
    special = {
        "numpy.unique": ((x,), {"size": 5}), "numpy.nonzero": ((x,), {"size": 5}), "numpy.flatnonzero": ((x,), {"size": 5}),
        "numpy.argwhere": ((x,), {"size": 5}), "numpy.bincount": ((ids,), {"length": 4}), "numpy.repeat": ((x, ids, 0), {"total_repeat_length": 2}),
        **{f"numpy.unique_{kind}": ((x,), {"size": 5}) for kind in ("all", "counts", "inverse", "values")},
    }  # fmt: skip
    args, kwargs = special.get(name) or next(call[1:] for call in CALLS[name] if is_native(mirror, *call[1:]))
    assert _lowers_to_kernels(mirror, args, kwargs)


def test_what_is_not_native_is_jaxs_program():
    x, mask = sent.arange(6.0), sent.arange(6) > 2
    for call in (
        lambda module: module.numpy.sum(x, initial=2.0),
        lambda module: module.numpy.max(x, initial=2.0, where=mask),
        lambda module: module.numpy.cumsum(x, dtype=jnp.int32),
        lambda module: module.ops.segment_sum(x, mask.astype(int), 2, mode="clip"),
        lambda module: module.numpy.sum(2.0),
    ):
        with bj.prefer("native"):
            assert str(jax.make_jaxpr(lambda call=call: call(bj))()) == str(
                jax.make_jaxpr(lambda call=call: call(jax))()
            )


@pytest.mark.parametrize("name", ["ops.segment_sum", "numpy.sort", "numpy.cumsum", "numpy.argmax", "numpy.unique"])
def test_results_without_64_bits_are_jaxs(name, without_x64):
    """Integers then have 32 bits by default, and NumPy's arrays are narrowed."""
    rng, mirror = np.random.default_rng(0), MIRRORS[name]
    x, rest = rng.standard_normal((5, 3)), (np.asarray([0, 2, 1, 0, 2]), 3) if name.startswith("ops") else ()
    same(mirror.function(x, *rest), mirror.original(x, *rest))
    same(mirror.function((8 * x).astype(np.int64), *rest), mirror.original((8 * x).astype(np.int64), *rest))
