"""Law: every valid call has a plan, which says of itself and of its derivative what runs. Nothing is compiled here, except for
a few values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import Example, usual_dtype
from plans import calls

import baracuda_jax as bj
from baracuda_jax._core.op import OPS

X = sent.linspace(0.1, 0.9, 12, dtype=jnp.float32).reshape(3, 4)
MASK, IDS, COMPLEX = X > 0.5, sent.arange(3), jax.lax.complex(X, X)

# Calls that are made of several, or of arguments that the cases lack: (arguments, keywords).
MADE_OF_OTHERS = {
    "concat": (([X, X[:2]],), {}),
    "meshgrid": ((X[0], X[:, 1]), {}),
    "mean": ((X,), dict(where=MASK)),
    "var": ((X,), dict(where=MASK, axis=0)),
    "std": ((X,), dict(where=MASK)),
    "sum": ((X,), dict(where=MASK, initial=2.0)),
    "max": ((X,), dict(where=MASK, initial=0.0, axis=1)),
    "prod": ((X,), dict(where=MASK, dtype=jnp.float64)),
    "logsumexp": ((X,), dict(where=MASK)),
    "unbroadcast": ((X, (1, 4)), {}),
    "repeat_interleave": ((X, 3), dict(axis=1)),
    "full": (((2, 3), X[0, 0]), {}),
    "histogram": ((X,), dict(weights=X, bins=3, range=(0, 1))),
    "histogramdd": ((X,), dict(bins=2, range=((0, 1),) * 4, weights=X[:, 0])),
    "bincount": ((IDS,), dict(weights=X[:, 0], length=5)),
    "abs": ((COMPLEX,), {}),
    "sort_key_val": ((X, (X, MASK)), {}),
    "quantile": ((X, 0.3), {}),
    "unique": ((X,), dict(axis=0, size=2)),
    "segment_max": ((X, IDS, 3), dict(return_residuals=True, ties="split")),
    "pad": ((X, [[1, 1], [2, 2]]), {}),
    "add": ((X, 2.0), {}),
    "glu": ((X,), dict(axis=-1)),
}


def _libraries(plan):
    """Those that compute what has no kernel, where their platform is the plan's."""
    return [op.library for op in OPS.values() if plan.backend == "xla" and not op.has_kernels and op.library]


def _whole(plan):
    """What a plan says agrees with itself; its derivative, or None."""
    assert str(plan).startswith(f"Plan {plan.name}(")
    assert jax.tree.map(lambda y: (y.shape, y.dtype), jax.eval_shape(plan, *(t for _, t in plan.inputs))) == (
        jax.tree.map(lambda y: (y.shape, y.dtype), plan.out_avals)
    )
    assert set(plan.targets) == {target for call in plan.calls for target in call.targets}
    assert plan.workspace_bytes == sum(call.workspace_bytes for call in plan.calls)
    assert hash(plan) is not None and plan.sku.backend in (plan.backend, *_libraries(plan))
    assert plan.backend in {call.backend for call in plan.calls} or not plan.calls
    try:
        return plan.backward
    except TypeError as error:
        assert "there is no derivative" in str(error) or "has no backward plan" in str(error)
        return None


def _has_derivative(example):
    """One of its calls; that of what quantizes x is plain JAX, which plans do not list."""
    if any(OPS[name].quantized for name in example.op.made_of):
        return False
    return example.op.differentiable and not example.op.quantized and jnp.issubdtype(example.dtype, jnp.inexact)


def test_every_case_has_a_plan_and_its_derivative_one(op):
    for case in op.cases:
        example = Example(op, case, usual_dtype(op))
        backward = _whole(bj.plan(op.public, *example.structured(example.args), **case.kwargs))
        assert (backward is not None) >= bool(_has_derivative(example))
        if backward is not None:
            assert _whole(backward) is None


@pytest.mark.parametrize("name", MADE_OF_OTHERS)
def test_every_argument_has_a_plan(name):
    args, kwargs = MADE_OF_OTHERS[name]
    for backend in (None, "native", "xla"):
        plan = bj.plan(name, *args, **kwargs, implementation=backend)
        backward = _whole(plan)
        assert backward is not None and _whole(backward) is None
        for p in (plan, backward):
            assert {call.backend for call in p.calls} <= {backend or call.backend for call in p.calls}
            assert calls(p.lower().as_text()) >= set(p.targets)


@pytest.mark.parametrize("name", ["mean", "concat", "unbroadcast", "sum"])
def test_the_plan_of_several_calls_computes_them(name):
    args, kwargs = MADE_OF_OTHERS[name]
    plan, fun = bj.plan(name, *args, **kwargs), getattr(bj, name)
    leaves = jax.tree.leaves((args, kwargs))
    arrays = [x for x in leaves if isinstance(x, jax.Array)]
    y = plan(*arrays)
    np.testing.assert_allclose(y, fun(*args, **kwargs), rtol=1e-6)
    want = jax.jit(jax.grad(lambda xs: fun(*([xs] if name == "concat" else [xs, *args[1:]]), **kwargs).sum()))(args[0])
    backward = plan.backward
    known = (sent.ones_like(y),) if backward.name == "concat_backward" else (*arrays, sent.ones_like(y))
    for got, expected in zip(jax.tree.leaves(backward(*known)), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_each_op_of_a_plan_has_its_own_backend():
    """What XLA may not do deterministically is native, the rest as it is by default."""
    plan = bj.plan("abs", COMPLEX, platform="cuda")
    assert [call.name for call in plan.calls] == ["hypot"] and plan.backend == plan.calls[0].backend
    several = bj.plan("sort_key_val", X, X, platform="cuda")
    assert {call.name for call in several.calls} == {"sort", "sort_key_val"}
    assert all(call.why for call in several.calls)


def test_a_plan_takes_weakly_typed_arrays():
    x = sent.asarray(2.0)
    plan = bj.plan("add", x, sent.ones(2, jnp.bfloat16))
    y = plan(x, sent.ones(2, jnp.bfloat16))
    assert (y.shape, y.dtype) == (plan.out_avals.shape, plan.out_avals.dtype)
