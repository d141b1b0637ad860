"""How each optimizer goes: from a parameter, its gradient and its moments, the direction of the step and new moments.

A rule is a function of the arrays of one parameter. `directions` applies it to all, after what their gradients share: scale,
sign and the bound of their norm."""

import math

import jax.numpy as jnp

from .._core.wide import wide_dtype


def _root(x):
    """sqrt(x), with derivative 0 at 0 instead of infinity."""
    is_zero = x == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, x)))


def _norm(x):
    return _root(jnp.sum(jnp.square(x)))


def _correction(beta, step, dtype):
    """1 - beta^step, without the cancellation of the subtraction."""
    return -jnp.expm1(step.astype(dtype) * (math.log(beta) if beta else -math.inf))


def adam(p, g, slots, step, *, beta1, beta2, eps, weight_decay, bias_correction, decoupled):
    g = g if decoupled or not weight_decay else g + weight_decay * p
    mu = beta1 * slots["mu"] + (1 - beta1) * g
    nu = beta2 * slots["nu"] + (1 - beta2) * jnp.square(g)
    new = {"mu": mu, "nu": nu}
    if "nu_max" in slots:
        # Not jnp.maximum, whose gradient compares nu with the result: XLA may compute nu twice and round it differently.
        new["nu_max"] = jnp.where((nu > slots["nu_max"]) | jnp.isnan(nu), nu, slots["nu_max"])
    largest = new.get("nu_max", nu)
    if bias_correction:
        mu, largest = mu / _correction(beta1, step, p.dtype), largest / _correction(beta2, step, p.dtype)
    direction = mu / (_root(largest) + eps)
    return direction + weight_decay * p if decoupled and weight_decay else direction, new


def lamb(p, g, slots, step, *, trust_bounds, **options):
    direction, new = adam(p, g, slots, step, **options)
    weight, update = _norm(p), _norm(direction)
    is_zero = (weight == 0) | (update == 0)
    trust = jnp.where(is_zero, 1, jnp.clip(weight / jnp.where(is_zero, 1, update), *trust_bounds))
    return trust * direction, new


def sgd(p, g, slots, step, *, momentum, dampening, nesterov, weight_decay, weight_decay_after_momentum):
    decay = weight_decay * p if weight_decay else None
    g, new = g if decay is None or weight_decay_after_momentum else g + decay, dict(slots)
    if momentum:
        first = jnp.where(step == 1, 1.0, 1 - dampening).astype(p.dtype)  # the first gradient is taken whole
        new["momentum"] = momentum * slots["momentum"] + first * g
        g = g + momentum * new["momentum"] if nesterov else new["momentum"]
    return g if decay is None or not weight_decay_after_momentum else g + decay, new


def directions(rule, params, grads, slots, step, scale, *, maximize=False, max_grad_norm=None, **options):
    """Lists of the directions of all parameters, in the dtypes that they are computed in, and of the new slots, in their
    own; `step` counts this one."""
    grads = [g.astype(wide_dtype(p.dtype)) for p, g in zip(params, grads, strict=True)]
    if scale is not None:
        grads = [g * scale.astype(g.dtype) for g in grads]
    if max_grad_norm is not None:
        norm = _root(sum(jnp.sum(jnp.square(g)).astype(jnp.result_type(*grads)) for g in grads))
        over = jnp.maximum(norm / max_grad_norm, 1)
        grads = [g / over.astype(g.dtype) for g in grads]
    found, after = [], []
    for p, g, of in zip(params, grads, slots, strict=True):
        wide = {name: slot.astype(g.dtype) for name, slot in of.items()}
        direction, new = rule(p.astype(g.dtype), -g if maximize else g, wide, step, **options)
        found.append(direction)
        after.append({name: new[name].astype(slot.dtype) for name, slot in of.items()})
    return found, after
