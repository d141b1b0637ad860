"""Steps of optimizers on pytrees of parameters: XLA fuses the update of each array into one pass over it."""

import inspect
import math
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _arguments, _rules
from ._state import AdamState, SGDState

_ARGUMENTS = {
    "params": "an array of floats, or a pytree of them.",
    "grads": "the gradients, a pytree of params' structure and shapes.",
    "adam state": "an optim.AdamState, as optim.AdamState.zeros(params) gives it before the first step.",
    "distributed state": "the device's part of an optim.DistributedAdamState, whose zeros(params, axis_name=...) gives\n"
    "            that before the first step.",
    "sgd state": "an optim.SGDState, as optim.SGDState.zeros(params) gives it before the first step.",
    "learning_rate": "number or scalar array, which may be traced.",
    "beta1": "static number in [0, 1), the decay of the first moment.",
    "beta2": "static number in [0, 1), the decay of the second moment.",
    "eps": "static number, added to the root of the second moment after its bias correction.",
    "weight_decay": "static number of at least 0.",
    "bias_correction": "whether the moments are divided by 1 - beta^step.",
    "decoupled": "whether weight_decay params is added to the update (AdamW) or to the gradient.",
    "trust_bounds": "two static numbers, the bounds of the trust ratio.",
    "max_grad_norm": "static number, the bound of the norm of all gradients together; None for none.",
    "momentum": "static number of at least 0.",
    "dampening": "static number; a gradient after the first is multiplied by 1 - dampening.",
    "nesterov": "whether the step looks ahead by the momentum.",
    "weight_decay_after_momentum": "whether weight_decay params is added after the momentum instead of before.",
    "maximize": "whether the step goes up the gradient.",
    "axis_name": "name of the mesh axis, or a tuple of names; None for one device, which has the whole state.",
    "reduction": '"mean" or "sum" of the gradients over the devices.',
    "grad_scale": "number or scalar array that gradients are multiplied by first; may be traced.",
    "implementation": '"xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.',
}

_TEXT = """{first}

    Formula:
        {formula}

    Args:
{args}

    Returns:
        (params, state): new ones, of the structure, shapes and dtypes of the given. Under jit with donated params and
        state, they are written in place.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, structure, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. With state.master, the step is added to
    these, and params are their rounding. The root of a second moment has derivative 0 at 0, so that
    gradients of a step are finite.{precision}

    Source: {source}.
"""


def documented(first, formula, source, state, precision=""):
    """Writes a docstring of the sections that all steps share."""

    def write(fun):
        text = lambda name: _ARGUMENTS[f"{state} state" if name == "state" else name]
        args = "\n".join(f"        {name}: {text(name)}" for name in inspect.signature(fun).parameters)
        fun.__doc__ = _TEXT.format(first=first, formula=formula, source=source, args=args, precision=precision)
        return fun

    return write


def step(op, rule, kind, params, grads, state, learning_rate, grad_scale, **options):
    """One step: what the public functions share."""
    arrays, names, tree = _arguments.leaves(op, params)
    shapes = [p.shape for p in arrays]
    grads = _arguments.like(op, "grads", grads, names, tree, shapes)
    count, slots, master = _arguments.slots(op, state, kind, names, tree, shapes)
    rate = _arguments.scalar(op, "learning_rate", learning_rate)
    scale = scale_or_none(op, grad_scale)
    new, master, slots, count = update(
        arrays, grads, slots, master, count, rate, scale, rule=rule, options=tuple(sorted(options.items()))
    )
    return tree.unflatten(new), _arguments.rebuilt(kind, tree, count, slots, master)


def scale_or_none(op, grad_scale):
    """None for the number 1, by which nothing is multiplied."""
    is_one = isinstance(grad_scale, int | float) and grad_scale == 1
    return None if is_one else _arguments.scalar(op, "grad_scale", grad_scale)


@compiled("rule", "options")
def update(params, grads, slots, master, step, rate, scale, *, rule, options):
    """Lists of the new parameters, their master copies, their moments, and the step count."""
    step, start = step + 1, params if master is None else master
    found, after = _rules.directions(rule, start, grads, slots, step, scale, **dict(options))
    moved = [p.astype(d.dtype) - rate.astype(d.dtype) * d for p, d in zip(start, found, strict=True)]
    rounded = [y.astype(p.dtype) for y, p in zip(moved, params, strict=True)]
    return (
        rounded,
        None if master is None else [y.astype(m.dtype) for y, m in zip(moved, master, strict=True)],
        after,
        step,
    )


def moments(op, beta1, beta2, eps, weight_decay, bias_correction, maximize):
    """The options of Adam, checked."""
    return {
        "beta1": _arguments.number(op, "beta1", beta1, 0, 1),
        "beta2": _arguments.number(op, "beta2", beta2, 0, 1),
        "eps": _arguments.number(op, "eps", eps, 0),
        "weight_decay": _arguments.number(op, "weight_decay", weight_decay, 0),
        "bias_correction": checks.flag(op, "bias_correction", bias_correction),
        "maximize": checks.flag(op, "maximize", maximize),
    }


ADAM = (
    "m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g g,\n"
    "        update = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) for the step t = 1, 2, ...,\n"
    "        params = params - learning_rate update. With state.nu_max, the largest v so far replaces v (AMSGrad)."
)


@facade_api("xla")
@documented(
    "Step of Adam, with weight decay in the gradient.", f"g = grad_scale grads + weight_decay params,\n        {ADAM}",
    "torch.optim.Adam; optax.adam", "adam",
)  # fmt: skip
def adam_step(
    params: Any,
    grads: Any,
    state: AdamState,
    learning_rate: ArrayLike = 1e-3,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    bias_correction: bool = True,
    maximize: bool = False,
    grad_scale: ArrayLike = 1.0,
    implementation: Implementation = None,
) -> tuple[Any, AdamState]:
    op = "adam_step"
    options = moments(op, beta1, beta2, eps, weight_decay, bias_correction, maximize)
    return step(op, _rules.adam, AdamState, params, grads, state, learning_rate, grad_scale, decoupled=False, **options)


@facade_api("xla")
@documented(
    "Step of AdamW: Adam with weight decay apart from the gradient.",
    f"g = grad_scale grads,\n        {ADAM}\n        weight_decay params is added to the update.",
    "torch.optim.AdamW; optax.adamw", "adam",
)  # fmt: skip
def adamw_step(
    params: Any,
    grads: Any,
    state: AdamState,
    learning_rate: ArrayLike = 1e-3,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    bias_correction: bool = True,
    maximize: bool = False,
    grad_scale: ArrayLike = 1.0,
    implementation: Implementation = None,
) -> tuple[Any, AdamState]:
    op = "adamw_step"
    options = moments(op, beta1, beta2, eps, weight_decay, bias_correction, maximize)
    return step(op, _rules.adam, AdamState, params, grads, state, learning_rate, grad_scale, decoupled=True, **options)


@facade_api("xla")
@documented(
    "Step of LAMB: Adam's update, scaled to each array's norm.",
    "g = grad_scale grads, divided by max(1, |all g| / max_grad_norm); update as that of adamw_step, and\n"
    "        params = params - learning_rate r update, with r = |params| / |update| within trust_bounds, or 1 where\n"
    "        a norm is 0. The norms are those of each array.",
    "optax.lamb", "adam",
)  # fmt: skip
def lamb_step(
    params: Any,
    grads: Any,
    state: AdamState,
    learning_rate: ArrayLike = 1e-3,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    decoupled: bool = True,
    trust_bounds: tuple[float, float] = (0.0, math.inf),
    max_grad_norm: float | None = None,
    bias_correction: bool = True,
    maximize: bool = False,
    grad_scale: ArrayLike = 1.0,
    implementation: Implementation = None,
) -> tuple[Any, AdamState]:
    op = "lamb_step"
    options = moments(op, beta1, beta2, eps, weight_decay, bias_correction, maximize)
    if max_grad_norm is not None and _arguments.number(op, "max_grad_norm", max_grad_norm, 0) == 0:
        raise ValueError(f"{op}: max_grad_norm must be a static number above 0, got {max_grad_norm!r}")
    return step(
        op, _rules.lamb, AdamState, params, grads, state, learning_rate, grad_scale, **options,
        decoupled=checks.flag(op, "decoupled", decoupled), max_grad_norm=max_grad_norm,
        trust_bounds=_arguments.bounds(op, "trust_bounds", trust_bounds),
    )  # fmt: skip


@facade_api("xla")
@documented(
    "Step of stochastic gradient descent, with momentum.",
    "g = grad_scale grads + weight_decay params, b = momentum b + (1 - dampening) g, and b = g in the first step;\n"
    "        update = b, or g + momentum b for nesterov; params = params - learning_rate update. With\n"
    "        weight_decay_after_momentum, weight_decay params is added to the update instead.",
    "torch.optim.SGD; optax.sgd", "sgd",
)  # fmt: skip
def sgd_step(
    params: Any,
    grads: Any,
    state: SGDState,
    learning_rate: ArrayLike = 1e-3,
    *,
    momentum: float = 0.0,
    dampening: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
    weight_decay_after_momentum: bool = False,
    maximize: bool = False,
    grad_scale: ArrayLike = 1.0,
    implementation: Implementation = None,
) -> tuple[Any, SGDState]:
    op = "sgd_step"
    momentum = _arguments.number(op, "momentum", momentum, 0)
    if momentum and isinstance(state, SGDState) and state.momentum is None:
        raise ValueError(f"{op}: state.momentum must be a pytree for momentum={momentum}, got None")
    return step(
        op, _rules.sgd, SGDState, params, grads, state, learning_rate, grad_scale, momentum=momentum,
        dampening=_arguments.number(op, "dampening", dampening, 0), nesterov=checks.flag(op, "nesterov", nesterov),
        weight_decay=_arguments.number(op, "weight_decay", weight_decay, 0),
        weight_decay_after_momentum=checks.flag(op, "weight_decay_after_momentum", weight_decay_after_momentum),
        maximize=checks.flag(op, "maximize", maximize),
    )  # fmt: skip


def drawn(kind, tree=lambda draw: draw(3, 5), **fields):
    """Draws parameters, gradients and a state after two steps; `fields` are optional ones: nu_max, master."""

    def draw(rng):
        normal = lambda *shape: rng.standard_normal(shape)
        square = lambda *shape: 0.1 + rng.standard_normal(shape) ** 2
        steps = jnp.int32(2)
        params, grads, first = (tree(normal) for _ in range(3))
        if kind is SGDState:
            return params, grads, SGDState(steps, first)
        return params, grads, AdamState(steps, first, tree(square), **{name: tree(square) for name in fields})

    return draw


def nested(draw):
    return {"w": draw(3, 5), "b": [draw(5), None]}


def declare(name, public, kind, *options):
    """Puts a step into the table; `options` are the keywords of its cases."""
    trees = (None, nested, None)
    cases = [
        Case(
            ", ".join(option) or "defaults",
            drawn(kind, *([tree] if tree else []), **({"nu_max": True} if i == 2 and kind is AdamState else {})),
            option,
        )
        for i, (tree, option) in enumerate(zip(trees, options, strict=True))
    ]
    return facade(
        name,
        family="optim",
        category=OpCategory.OPTIMIZER,
        public=public,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=("params", "grads", "state"),
        differentiable=("params", "grads", "state"),
        outputs=("params", "state"),
    )


declare("adam_step", adam_step, AdamState, {}, {"weight_decay": 0.1, "maximize": True}, {"beta1": 0.5, "eps": 1e-4})
declare("adamw_step", adamw_step, AdamState, {}, {"learning_rate": 0.1}, {"bias_correction": False})
declare(
    "lamb_step", lamb_step, AdamState, {"learning_rate": 0.1},
    {"weight_decay": 0.1, "max_grad_norm": 1.0}, {"trust_bounds": (0.1, 0.5)},
)  # fmt: skip
declare(
    "sgd_step", sgd_step, SGDState, {"learning_rate": 0.1, "momentum": 0.9},
    {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    {"momentum": 0.5, "dampening": 0.5, "weight_decay": 0.1, "weight_decay_after_momentum": True, "grad_scale": 0.5},
)  # fmt: skip
