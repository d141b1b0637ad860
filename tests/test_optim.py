"""Optimizers compared with those of PyTorch and optax over several steps, their gradients, memory, and what they refuse."""

import functools
import re
import sys

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import sent
from by_torch import torch
from examples_of import close
from programs import normal

import baracuda_jax as bj
import baracuda_jax.optax as bj_optax
from baracuda_jax.optim import AdamState, SGDState

STEPS = 4


def _tree(dtype, seed=0):
    return {"w": normal((4, 3), dtype, seed), "b": (normal((3,), dtype, seed + 1), normal((), dtype, seed + 2))}


def _trained(step, params, state):
    """The parameters after some steps, of gradients that are zero at first and then drawn."""
    step = jax.jit(step)
    for i in range(STEPS):
        params, state = step(params, _gradients(params, i), state)
    return params, state


def _gradients(params, i):
    return jax.tree.map(sent.zeros_like, params) if i == 0 else _tree(jax.tree.leaves(params)[0].dtype, 3 * i)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "step, optimizer, kwargs, fields",
    [
        (bj.adam_step, "Adam", {}, {}),
        (bj.adam_step, "Adam", {"weight_decay": 0.1, "maximize": True}, {"amsgrad": True}),
        (bj.adamw_step, "AdamW", {"weight_decay": 0.1}, {}),
        (bj.adamw_step, "AdamW", {}, {"amsgrad": True}),
        (bj.sgd_step, "SGD", {}, {"momentum": False}),
        (bj.sgd_step, "SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}, {}),
        (bj.sgd_step, "SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}, {}),
    ],
)
def test_steps_are_torchs(step, optimizer, kwargs, fields, dtype):
    """PyTorch in float32 for 16 bits: with master parameters only these are rounded."""
    params, half = _tree(dtype), dtype in ("float16", "bfloat16")
    state = (SGDState if optimizer == "SGD" else AdamState).zeros(params, master=half, **fields)
    got, state = _trained(functools.partial(step, learning_rate=0.01, **kwargs), params, state)
    wide = jax.tree.map(lambda p: p.astype("float32") if half else p, params)
    amsgrad = {k: v for k, v in fields.items() if k == "amsgrad"}
    leaves = [torch.nn.Parameter(by_torch.tensor(p)) for p in jax.tree.leaves(wide)]
    theirs = getattr(torch.optim, optimizer)(leaves, lr=0.01, **kwargs, **amsgrad)
    for i in range(STEPS):
        for p, g in zip(leaves, jax.tree.leaves(_gradients(params, i)), strict=True):
            p.grad = by_torch.tensor(g.astype(jnp.float32) if half else g)
        theirs.step()
    for p, want in zip(jax.tree.leaves(got), leaves, strict=True):
        assert p.dtype == dtype
        close(p, by_torch.numbers(want.detach()), dtype, scale=4)
    assert int(state.step) == STEPS and state.step.dtype == jnp.int32


@pytest.mark.parametrize(
    "step, theirs, kwargs",
    [
        (bj.adam_step, lambda: optax.adam(0.1), {}),
        (bj.adamw_step, lambda: optax.adamw(0.1, weight_decay=0.1), {"weight_decay": 0.1}),
        (bj.lamb_step, lambda: optax.lamb(0.1, weight_decay=0.1), {"weight_decay": 0.1}),
        (bj.sgd_step, lambda: optax.sgd(0.1, momentum=0.9, nesterov=True), {"momentum": 0.9, "nesterov": True}),
    ],
)
def test_steps_are_optaxs(step, theirs, kwargs):
    params, optimizer = _tree("float64"), theirs()

    def theirs(params, grads, state):
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    kind = SGDState if step is bj.sgd_step else AdamState
    got, _ = _trained(functools.partial(step, learning_rate=0.1, **kwargs), params, kind.zeros(params))
    want, _ = _trained(theirs, params, optimizer.init(params))
    jax.tree.map(lambda a, b: close(a, b, "float64", scale=1e3), got, want)


def test_lamb_trusts_a_norm_of_zero_and_bounds_others():
    params = {"zero": sent.zeros(3), "large": sent.full(3, 100.0)}
    grads, state = jax.tree.map(sent.ones_like, params), AdamState.zeros(params)
    got, _ = bj.lamb_step(params, grads, state, 0.5, trust_bounds=(0.0, 2.0), eps=0.0)
    close(got["zero"], np.full(3, -0.5), "float32")
    close(got["large"], np.full(3, 99.0), "float32")
    same, _ = bj.lamb_step(params, jax.tree.map(sent.zeros_like, params), state)
    jax.tree.map(np.testing.assert_array_equal, same, params)


def test_the_norm_of_all_gradients_is_bounded():
    params = _tree("float64")
    grads = _gradients(params, 1)
    clipped, _ = optax.clip_by_global_norm(0.5).update(grads, None)
    state = AdamState.zeros(params)
    got = jax.jit(lambda g: bj.lamb_step(params, g, state, max_grad_norm=0.5)[1].mu)(grads)
    jax.tree.map(lambda a, g: close(a, (1 - 0.9) * g, "float64"), got, clipped)


@pytest.mark.parametrize("name", ["adam_step", "adamw_step", "lamb_step", "sgd_step"])
def test_donated_parameters_and_states_are_updated_in_place(name):
    params = {"w": sent.ones((64, 32), jnp.bfloat16), "b": sent.ones(32, jnp.bfloat16)}
    kind, options = (SGDState, {"momentum": 0.9}) if name == "sgd_step" else (AdamState, {})
    state = kind.zeros(params, master=True)
    step = jax.jit(functools.partial(getattr(bj, name), **options), donate_argnums=(0, 2), keep_unused=True)
    compiled = step.lower(params, jax.tree.map(sent.ones_like, params), state, jnp.float32(0.1)).compile()
    size = sum(x.nbytes for x in jax.tree.leaves((params, state)))  # params are read from state.master, if there
    assert compiled.memory_analysis().alias_size_in_bytes == size
    assert not re.search(r"\[\d[^ ]* copy\(", compiled.as_text())  # of arrays; the step count may be


@pytest.mark.parametrize("name", ["adam_step", "adamw_step", "lamb_step", "sgd_step"])
def test_gradients_of_a_step_are_finite_at_zero(name):
    """Also in the learning rate, and of second order."""
    params = {"w": sent.zeros(3), "b": sent.ones(2)}
    state = (SGDState if name == "sgd_step" else AdamState).zeros(params)

    def loss(params, grads, rate):
        new, _ = getattr(bj, name)(params, grads, state, rate)
        return sum(jnp.sum(jnp.sin(p)) for p in jax.tree.leaves(new))

    args = params, jax.tree.map(sent.zeros_like, params), jnp.float64(0.1)
    first, second = jax.jit(lambda *a: (jax.grad(loss, (0, 1, 2))(*a), jax.hessian(loss, (0, 1))(*a)))(*args)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves((first, second)))


def test_a_traced_learning_rate_and_scale():
    params = _tree("float32")
    grads, state = _gradients(params, 1), SGDState.zeros(params, momentum=False)
    got, _ = jax.jit(lambda rate, scale: bj.sgd_step(params, grads, state, rate, grad_scale=scale))(0.5, 0.25)
    jax.tree.map(lambda a, p, g: close(a, p - 0.125 * g, "float32"), got, params, grads)
    assert bj.sgd_step({}, {}, SGDState.zeros({}))[0] == {}


P, S = {"w": sent.ones(3, jnp.float32)}, AdamState.zeros({"w": sent.ones(3, jnp.float32)})


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (TypeError, r"params\['w'\] must have one of the dtypes .*, got int32", ({"w": sent.arange(3, dtype=jnp.int32)}, P, S), {}),
        (ValueError, "grads must have the structure of params", (P, {"v": P["w"]}, S), {}),
        (ValueError, r"grads\['w'\] must have shape \(3,\), that of params, got \(2,\)", (P, {"w": sent.ones(2)}, S), {}),
        (TypeError, "state must be an optim.AdamState, got tuple", (P, P, (1,)), {}),
        (TypeError, "state.step must have one of the dtypes int32, got float32", (P, P, S._replace(step=jnp.float32(1))), {}),
        (ValueError, r"learning_rate must have shape \(\), one number .*, got \(3,\)", (P, P, S, sent.ones(3)), {}),
        (ValueError, r"beta1 must be a static number in \[0, 1\), got 1.0", (P, P, S), {"beta1": 1.0}),
        (ValueError, "weight_decay must be a static number at least 0, got -1", (P, P, S), {"weight_decay": -1}),
        (TypeError, "maximize must be True or False, got 1", (P, P, S), {"maximize": 1}),
    ],
)  # fmt: skip
def test_what_is_refused(error, match, args, kwargs):
    with pytest.raises(error, match=f"^lamb_step: {match}"):
        bj.lamb_step(*args, **kwargs)


def test_what_lamb_and_sgd_refuse():
    with pytest.raises(ValueError, match=r"^lamb_step: trust_bounds must be two static numbers.*, got \(2, 1\)"):
        bj.lamb_step(P, P, S, trust_bounds=(2, 1))
    with pytest.raises(ValueError, match="^lamb_step: max_grad_norm must be a static number above 0, got 0"):
        bj.lamb_step(P, P, S, max_grad_norm=0)
    with pytest.raises(ValueError, match=r"^sgd_step: state.momentum must be a pytree for momentum=0.9, got None"):
        bj.sgd_step(P, P, SGDState.zeros(P, momentum=False), momentum=0.9)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["adam", "adamw", "lamb", "sgd"])
def test_transformations_train_as_optaxs(name, dtype):
    """With a schedule, and with momentum."""
    options = {"momentum": 0.9, "nesterov": True} if name == "sgd" else {}
    found = []
    for library in (bj_optax, optax):
        optimizer, params = getattr(library, name)(optax.linear_schedule(0.1, 0.01, STEPS), **options), _tree("float32")
        params = jax.tree.map(lambda p: p.astype(dtype), params)

        def step(params, grads, state, optimizer=optimizer):
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state

        found.append(_trained(step, params, optimizer.init(params))[0])
    for got, want in zip(*map(jax.tree.leaves, found), strict=True):
        assert got.dtype == dtype
        close(got, want, dtype, scale=8)


def test_transformations_without_params():
    grads = {"w": sent.ones(3, jnp.float32)}
    optimizer = bj_optax.adam(0.1)
    close(optimizer.update(grads, optimizer.init(grads))[0]["w"], np.full(3, -0.1), "float32")
    optimizer = bj_optax.lamb(0.1)
    with pytest.raises(ValueError, match=r"^optax.lamb: params must be given to update, got None"):
        optimizer.update(grads, optimizer.init(grads))


def test_without_optax_an_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match="baracuda_jax.optax needs optax: pip install optax"):
        bj_optax.adam(0.1)
