"""Steps of optimizers, array by array in float64."""

import jax
import numpy as np


def _each(fun, params, grads, *slots):
    """fun of the arrays of each parameter, which gives a tuple, as a tuple of pytrees."""
    tree = jax.tree.structure(params)
    found = [fun(*arrays) for arrays in zip(*map(jax.tree.leaves, (params, grads, *slots)), strict=True)]
    return tuple(tree.unflatten(list(of)) for of in zip(*found, strict=True))


def adam_step(
    params, grads, state, learning_rate=1e-3, *, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, bias_correction=True,
    maximize=False, decoupled=False, trust=lambda p, u: 1.0,
):  # fmt: skip
    t = int(state.step) + 1
    slots = (state.mu, state.nu, *(() if state.nu_max is None else (state.nu_max,)))

    def each(p, g, m, v, most=None):
        g = (-g if maximize else g) + (0 if decoupled else weight_decay * p)
        m, v = m * beta1 + g * (1 - beta1), v * beta2 + g**2 * (1 - beta2)
        most = None if most is None else np.maximum(most, v)
        c1, c2 = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1, 1)
        u = m / c1 / (np.sqrt((v if most is None else most) / c2) + eps) + (weight_decay * p if decoupled else 0)
        return p - learning_rate * trust(p, u) * u, m, v, *(() if most is None else (most,))

    params, *new = _each(each, params, grads, *slots)
    return params, state._replace(step=np.int32(t), **dict(zip(("mu", "nu", "nu_max"), new, strict=False)))


def adamw_step(*args, weight_decay=1e-2, **kwargs):
    return adam_step(*args, weight_decay=weight_decay, decoupled=True, **kwargs)


def lamb_step(params, grads, state, *args, eps=1e-6, trust_bounds=(0, np.inf), max_grad_norm=None, **kwargs):
    if max_grad_norm is not None:
        norm = np.sqrt(sum((g**2).sum() for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g / max(1, norm / max_grad_norm), grads)

    def trust(p, u):
        p, u = np.linalg.norm(p), np.linalg.norm(u)
        return np.clip(p / u, *trust_bounds) if p and u else 1.0

    return adam_step(params, grads, state, *args, eps=eps, trust=trust, **{"decoupled": True, **kwargs})


def sgd_step(
    params, grads, state, learning_rate=1e-3, *, momentum=0.0, dampening=0.0, nesterov=False, weight_decay=0.0,
    weight_decay_after_momentum=False, grad_scale=1.0,
):  # fmt: skip
    def each(p, g, b):
        g = g * grad_scale + (0 if weight_decay_after_momentum else weight_decay * p)
        b = momentum * b + (1 - dampening if state.step else 1) * g
        u = g + momentum * b if nesterov else b
        return p - learning_rate * (u + (weight_decay * p if weight_decay_after_momentum else 0)), b

    params, b = _each(each, params, grads, state.momentum)
    return params, state._replace(step=np.int32(state.step + 1), momentum=b)


def distributed_adam_step(params, grads, state, *args, reduction="mean", **kwargs):
    """Of one device, whose shards are the arrays in one row."""
    names = [name for name in ("mu", "nu", "nu_max") if getattr(state, name) is not None]
    reshaped = {name: jax.tree.map(lambda p, m: m.reshape(p.shape), params, getattr(state, name)) for name in names}
    params, new = adam_step(params, grads, state._replace(**reshaped), *args, **kwargs)
    return params, new._replace(**{name: jax.tree.map(np.ravel, getattr(new, name)) for name in names})
