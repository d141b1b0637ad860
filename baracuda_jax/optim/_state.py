"""The states of optimizers: a step count and, for each parameter, its moments. They are pytrees of arrays."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from .._core import mesh_axis
from .._core.wide import wide, wide_dtype
from . import _shards


def _zeros(params):
    return jax.tree.map(lambda p: jnp.zeros(jnp.shape(p), wide_dtype(jnp.result_type(p))), params)


def _wide(params):
    return jax.tree.map(lambda p: jnp.array(p, wide_dtype(jnp.result_type(p))), params)


class AdamState(NamedTuple):
    """The state of `adam_step`, `adamw_step` and `lamb_step`.

    step is int32, the number of steps done. mu and nu are the moments, of the structure of the parameters. nu_max, the
    largest nu so far, is there for AMSGrad alone. master are the parameters before they are rounded to 16 bits, or None."""

    step: Array
    mu: Any
    nu: Any
    nu_max: Any = None
    master: Any = None

    @classmethod
    def zeros(cls, params: Any, *, amsgrad: bool = False, master: bool = False) -> "AdamState":
        """The state before the first step. Moments of 16-bit parameters are float32."""
        maximum, weights = _zeros(params) if amsgrad else None, _wide(params) if master else None
        return cls(jnp.zeros((), jnp.int32), _zeros(params), _zeros(params), maximum, weights)


class DistributedAdamState(NamedTuple):
    """The state of `distributed_adam_step`, of which each device has a part.

    step is int32, the number of steps done, the same on all devices. mu and nu are the moments, of the structure of the
    parameters: each array is the device's shard, one row of an equal part of the parameter's elements. nu_max, the largest
    nu so far, is there for AMSGrad alone. master are the parameters before they are rounded to 16 bits, or None."""

    step: Array
    mu: Any
    nu: Any
    nu_max: Any = None
    master: Any = None

    @classmethod
    def zeros(
        cls, params: Any, *, axis_name: Hashable | None = None, amsgrad: bool = False, master: bool = True
    ) -> "DistributedAdamState":
        """The device's part of the state before the first step, inside jax.shard_map over the axis; None for one device.
        Moments and master parameters of 16-bit parameters are float32."""
        devices = mesh_axis.size("DistributedAdamState.zeros", axis_name)
        own = jax.tree.map(lambda p: wide(_shards.own(jnp.asarray(p), axis_name, devices)), params)
        zeros = lambda: jax.tree.map(jnp.zeros_like, own)
        maximum, weights = zeros() if amsgrad else None, jax.tree.map(jnp.array, own) if master else None
        return cls(jnp.zeros((), jnp.int32), zeros(), zeros(), maximum, weights)

    @classmethod
    def specs(cls, axis_name: Hashable) -> "DistributedAdamState":
        """How the state is sharded, as in_specs and out_specs of jax.shard_map take it."""
        parts = PartitionSpec(axis_name)
        return cls(PartitionSpec(), parts, parts, parts, parts)


class SGDState(NamedTuple):
    """The state of `sgd_step`.

    step is int32, the number of steps done. momentum has the structure of the parameters, or is None where there is no
    momentum. master are the parameters before they are rounded to 16 bits, or None."""

    step: Array
    momentum: Any = None
    master: Any = None

    @classmethod
    def zeros(cls, params: Any, *, momentum: bool = True, master: bool = False) -> "SGDState":
        """The state before the first step. The momentum of 16-bit parameters is float32."""
        return cls(jnp.zeros((), jnp.int32), _zeros(params) if momentum else None, _wide(params) if master else None)
