"""Steps of optimizers: XLA computes them at the bandwidth bound, so that these ops have no kernels."""

from ._distributed import distributed_adam_step
from ._state import AdamState, DistributedAdamState, SGDState
from ._step import adam_step, adamw_step, lamb_step, sgd_step

__all__ = [
    "AdamState",
    "DistributedAdamState",
    "SGDState",
    "adam_step",
    "adamw_step",
    "distributed_adam_step",
    "lamb_step",
    "sgd_step",
]
