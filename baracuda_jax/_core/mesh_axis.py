"""An axis of devices inside `jax.shard_map`: its size, what varies over it, and how parts become wholes and wholes parts.
None is no axis, and so one device.

An array that does not vary over an axis is the same on all its devices, and its type says so. Its gradient is summed once,
where it meets an array that varies."""

import jax

from . import compat


def size(op, axis_name):
    """The number of devices, or a ValueError if no such axis is around the call."""
    if axis_name is None:
        return 1
    try:
        return jax.lax.axis_size(axis_name)
    except (NameError, TypeError):
        raise ValueError(
            f"{op}: axis_name must be an axis of shard_map, pmap or vmap around the call, got {axis_name!r}"
        ) from None


def _names(axis_name):
    return axis_name if isinstance(axis_name, tuple) else () if axis_name is None else (axis_name,)


def varies(x, axis_name):
    """Whether x's type says that it varies over the axis; with `check_vma=False`, types say nothing."""
    return set(_names(axis_name)) <= compat.manual_axes(jax.typeof(x))


def varying(x, *axis_names):
    """x, with a type that varies over the axes. The gradient is summed over those over which it did not. Types know no
    axes of vmap."""
    new = jax.sharding.get_abstract_mesh().manual_axes
    known = compat.manual_axes(jax.typeof(x))
    missing = tuple(name for axis in axis_names for name in _names(axis) if name in new and name not in known)
    return jax.lax.pcast(x, missing, to="varying") if missing else x


def alike(*arrays):
    """Arrays that vary over the same axes: those over which any does."""
    axes = tuple(sorted(frozenset().union(*(compat.manual_axes(jax.typeof(x)) for x in arrays)), key=str))
    return tuple(varying(x, axes) for x in arrays)


def own(x, axis_name, axis=0):
    """Of equal parts along an axis of the array, the device's."""
    if axis_name is None:
        return x
    width = x.shape[axis] // jax.lax.axis_size(axis_name)
    return jax.lax.dynamic_slice_in_dim(varying(x, axis_name), jax.lax.axis_index(axis_name) * width, width, axis)


def whole(x, axis_name, axis=0):
    """The devices' parts, one after another along an axis of the array, which all devices then have. The gradient is each
    device's part of the cotangent: nothing is communicated. Without types it must be summed, by all_gather's rule."""
    if axis_name is None:
        return x
    x = varying(x, axis_name)
    if not x.size:  # which JAX does not gather
        return jax.numpy.concatenate([jax.lax.psum(x, axis_name)] * jax.lax.axis_size(axis_name), axis)
    to = "invarying" if varies(x, axis_name) else "varying"
    return jax.lax.all_gather(x, axis_name, axis=axis, tiled=True, to=to)


def summed_parts(x, axis_name, axis=0):
    """The sum over the devices, of which each has an equal part along an axis of the array."""
    if axis_name is None or not x.size:  # which JAX does not scatter
        return own(x, axis_name, axis)
    return jax.lax.psum_scatter(varying(x, axis_name), axis_name, scatter_dimension=axis, tiled=True)
