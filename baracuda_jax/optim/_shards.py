"""The shard of a parameter that a device keeps: an equal part of its elements in one row, which zeros fill up."""

import jax.numpy as jnp

from .._core import mesh_axis


def length(x, devices):
    return -(-x.size // devices)


def _row(x, devices):
    row = x.reshape(-1)
    missing = length(x, devices) * devices - x.size
    return jnp.pad(row, (0, missing)) if missing else row


def own(x, axis_name, devices):
    """The device's shard of an array that all devices have."""
    return mesh_axis.own(_row(x, devices), axis_name)


def summed(x, axis_name, devices):
    """The device's shard of the sum of all devices' arrays."""
    return mesh_axis.summed_parts(_row(x, devices), axis_name)


def whole(shard, like, axis_name):
    """The array of which each device has a shard."""
    return mesh_axis.whole(shard, axis_name)[: like.size].reshape(like.shape)
