"""A step of Adam whose state is sharded over devices that have all parameters: each steps a part of their elements.

Each array is communicated by itself. XLA may combine small ones, and send a gradient while it computes others. One row
of all arrays would cost a copy of them, and could be sent only after the last gradient is there."""

from collections.abc import Hashable
from typing import Any, Literal

import jax
from jax.typing import ArrayLike

from .._core import checks, mesh_axis
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from . import _arguments, _rules, _shards, _step
from ._state import AdamState, DistributedAdamState

REDUCTIONS = ("mean", "sum")


@facade_api("xla")
@_step.documented(
    "Step of Adam with a state that is sharded over the devices of a mesh axis (ZeRO, stage 1).",
    "g = grad_scale mean of the devices' grads + weight_decay params,\n"
    f"        {_step.ADAM}\n"
    "        Where decoupled, weight_decay params is added to the update instead. Inside jax.shard_map, each array of\n"
    "        grads is reduce-scattered, each device steps its part, and each array of params is all-gathered.",
    "Rajbhandari et al., ZeRO (arXiv 1910.02054); torch.distributed.optim.ZeroRedundancyOptimizer", "distributed",
    precision=" Gradients\n"
    "    are added in their dtype, which may be float32 for 16-bit params; params are gathered in theirs.",
)  # fmt: skip
def distributed_adam_step(
    params: Any,
    grads: Any,
    state: DistributedAdamState,
    learning_rate: ArrayLike = 1e-3,
    *,
    axis_name: Hashable | None = None,
    reduction: Literal["mean", "sum"] = "mean",
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    bias_correction: bool = True,
    maximize: bool = False,
    grad_scale: ArrayLike = 1.0,
    implementation: Implementation = None,
) -> tuple[Any, DistributedAdamState]:
    op = "distributed_adam_step"
    devices = mesh_axis.size(op, axis_name)
    arrays, names, tree = _arguments.leaves(op, params)
    grads = _arguments.like(op, "grads", grads, names, tree, [p.shape for p in arrays])
    shards = [(_shards.length(p, devices),) for p in arrays]
    because = f"the shard of params on each of {devices} devices"
    count, slots, master = _arguments.slots(op, state, DistributedAdamState, names, tree, shards, because)
    for name, g, of in zip(names, grads, slots, strict=True):
        if mesh_axis.varies(of["mu"], axis_name) and not mesh_axis.varies(g, axis_name):
            raise ValueError(
                f"{op}: grads{name.removeprefix('params')} must vary over axis_name {axis_name!r}, as each device's own "
                "gradient does, got one that is the same on all devices; differentiate by "
                f"jax.lax.pcast(params, {axis_name!r}, to='varying')"
            )
    options = _step.moments(op, beta1, beta2, eps, weight_decay, bias_correction, maximize)
    options["decoupled"] = checks.flag(op, "decoupled", decoupled)
    new, master, slots, count = _update(
        arrays, grads, slots, master, count, _arguments.scalar(op, "learning_rate", learning_rate),
        _step.scale_or_none(op, grad_scale), axis_name=axis_name, devices=devices,
        is_mean=checks.choice(op, "reduction", reduction, REDUCTIONS) == "mean", options=tuple(sorted(options.items())),
    )  # fmt: skip
    return tree.unflatten(new), _arguments.rebuilt(DistributedAdamState, tree, count, slots, master)


@compiled("axis_name", "devices", "is_mean", "options")
def _update(params, grads, slots, master, step, rate, scale, *, axis_name, devices, is_mean, options):
    own = [_shards.own(p, axis_name, devices) for p in params]
    grads = [_shards.summed(g, axis_name, devices) for g in grads]
    if is_mean and devices > 1:
        grads = [wide(g) / devices for g in grads]
    new, *rest = _step.update(own, grads, slots, master, step, rate, scale, rule=_rules.adam, options=options)
    return [_shards.whole(y, p, axis_name) for y, p in zip(new, params, strict=True)], *rest


def _drawn(*args, **fields):
    """As of adam_step, each array of the state in one row."""
    draw = _step.drawn(AdamState, *args, **fields)

    def sharded(rng):
        params, grads, state = draw(rng)
        rows = {
            name: jax.tree.map(lambda x: x.reshape(-1), of) for name, of in state._asdict().items() if name != "step"
        }
        return params, grads, DistributedAdamState(state.step, **rows)

    return sharded


facade(
    "distributed_adam_step",
    family="optim",
    category=OpCategory.OPTIMIZER,
    public=distributed_adam_step,
    cases=(
        Case("defaults", _drawn(), {}),
        Case("decoupled", _drawn(_step.nested), {"weight_decay": 0.1, "decoupled": True, "reduction": "sum"}),
        Case("largest", _drawn(nu_max=True), {"beta1": 0.5, "eps": 1e-4, "weight_decay": 0.1}),
    ),
    dtypes=checks.FLOATS,
    operands=("params", "grads", "state"),
    differentiable=("params", "grads", "state"),
    outputs=("params", "state"),
)
