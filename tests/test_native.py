"""Law: the native kernels run. The compiled programs hold exactly the custom calls that the op declares, on every platform
that has kernels."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import Example, has_derivative

from baracuda_jax._core import library
from baracuda_jax._core.library import PREFIX
from baracuda_jax._core.op import OPS


def _calls(text):
    return set(re.findall(rf"{re.escape(PREFIX)}(\w+)", text))


def _example(op):
    return Example(op, op.cases[0], "float32" if "float32" in op.dtypes else op.dtypes[0])


def _programs(example, implementation="native"):
    """Forward, tangent and backward alone."""
    fun = functools.partial(example.fun, implementation=implementation)
    x, y = example.x, fun(example.x)
    if not has_derivative(example.op):
        return {"forward": (fun, (x,))}
    return {
        "forward": (fun, (x,)),
        "tangent": (lambda x, v: jax.jvp(fun, (x,), (v,))[1], (x, x)),
        "backward": (lambda x, w: jax.vjp(fun, x)[1](w)[0], (x, y)),
    }


def test_the_table_names_kernels_that_exist(op):
    targets = {target.removeprefix(PREFIX) for target in library.LIBRARIES["cpu"].targets}
    assert op.targets <= targets


def test_every_target_belongs_to_an_op():
    named = set().union(*(op.targets for op in OPS.values()))
    assert named == {target.removeprefix(PREFIX) for target in library.LIBRARIES["cpu"].targets}


def test_the_compiled_program_holds_exactly_the_declared_calls(op):
    for kind, (fun, args) in _programs(_example(op)).items():
        text = jax.jit(fun).lower(*args).compile().as_text()
        found = set(re.findall(r'custom_call_target="([^"]+)"', text))
        called = {target.removeprefix(PREFIX) for target in found if target.startswith(PREFIX)}
        others = {t for name in op.also for t in OPS[name].kernels.get(kind, ())}
        declared = {*op.kernels[kind], *(others - {*op.sometimes})}
        # The derivatives' programs hold what is left of the forward one, which made the residuals.
        more = {
            *op.sometimes,
            *(op.targets.union(*(OPS[name].targets for name in op.also)) if kind != "forward" else ()),
        }
        assert declared <= called <= declared | more, (kind, called)


def test_cuda_programs_lower_without_cuda(op):
    for kind, (fun, args) in _programs(_example(op)).items():
        text = jax.jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
        assert set(op.kernels[kind]) <= _calls(text)


def test_automatic_is_what_the_op_declares(op):
    for kind, (fun, args) in _programs(_example(op), implementation=None).items():
        called = _calls(jax.jit(fun).lower(*args).as_text())
        assert set(op.kernels[kind]) <= called if op.default == "native" else not called


def test_other_platforms_get_the_reference(op):
    if op.name == "eig":
        pytest.skip("JAX has it on CPUs and GPUs alone")
    for fun, args in _programs(_example(op), implementation=None).values():
        assert not _calls(jax.jit(fun).trace(*args).lower(lowering_platforms=("tpu",)).as_text())


def test_xla_is_free_of_our_calls(op):
    example = _example(op)
    assert not _calls(jax.jit(lambda x: example.fun(x, "xla")).lower(example.x).as_text())


def test_a_platform_without_kernels_refuses_native(op):
    if not op.has_kernels:
        pytest.skip("it has none on any platform")
    example = _example(op)
    traced = jax.jit(lambda x: example.fun(x, "native")).trace(example.x)
    names = "|".join((op.name, *op.also, *op.made_of))
    with pytest.raises(ValueError, match=rf"({names}).*native.*tpu"):
        traced.lower(lowering_platforms=("tpu",))


def test_gradients_show_our_primitives(derivable_op):
    op, example = derivable_op, _example(derivable_op)
    if op.is_facade:
        pytest.skip("plain JAX has no primitive of this library")
    if any(OPS[name].quantized for name in op.made_of):
        pytest.skip("the derivative is that of what is not rounded, in plain JAX")
    text = str(jax.make_jaxpr(jax.grad(lambda x: example.fun(x).sum()))(example.x))
    names = op.made_of or (op.name,)
    assert any(f" {name}[" in text for name in names) and any(f" {name}_backward[" in text for name in names)


@pytest.mark.parametrize("rows, indices", [(40, 0), (2**14, 0), (2**14 + 1, 1)])
def test_equal_index_calls_are_computed_once(rows, indices):
    """Two segment ops on the same ids sort them once, with their gradients; of few rows each kernel orders its own."""
    import baracuda_jax as bj

    ids = sent.asarray(np.random.default_rng(0).integers(0, 9, rows))
    both = lambda x, ids: (bj.segment_max(x, ids, 9) + bj.segment_mean(x, ids, 9)).sum()
    text = jax.jit(jax.value_and_grad(both)).lower(sent.ones((rows, 3)), ids).compile().as_text()
    assert text.count('custom_call_target="baracuda.segment_index"') == indices


def test_a_missing_module_is_named_when_xla_takes_over(monkeypatch):
    import baracuda_jax as bj

    broken = library.Library("cpu", problem="it was left out")
    monkeypatch.setitem(library.LIBRARIES, "cpu", broken)
    monkeypatch.setattr(library, "_warned", set())
    fun = jax.jit(lambda x: bj.segment_sum(x, sent.zeros(5, jnp.int32), 3))
    with pytest.warns(RuntimeWarning, match="it was left out"):
        text = fun.trace(sent.ones(5)).lower(lowering_platforms=("cpu",)).as_text()
    assert not _calls(text)


def test_the_backend_is_chosen_by_call_then_context_then_environment(monkeypatch):
    import baracuda_jax as bj

    ids = sent.zeros(3, jnp.int32)
    native = lambda **kw: (
        "baracuda." in jax.jit(lambda x: bj.segment_sum(x, ids, 2, **kw)).lower(sent.ones(3)).as_text()
    )
    assert native()
    assert not native(implementation="xla")
    with bj.prefer("xla"):
        assert not native()
        assert native(implementation="native")
    monkeypatch.setenv("BARACUDA_JAX_PREFER", "xla")
    assert not native()
    with bj.prefer("native"):
        assert native()
