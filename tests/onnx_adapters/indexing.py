"""ONNX's operators of indices."""

import math

import jax
import jax.numpy as jnp
import numpy as np

import baracuda_jax as bj


def GatherElements(data, indices, *, axis=0):
    return bj.gather(data, indices, axis)


def Gather(data, indices, *, axis=0):
    flat = bj.index_select(data, indices.ravel(), axis)
    return flat.reshape(*data.shape[: axis % data.ndim], *indices.shape, *data.shape[axis % data.ndim + 1 :])


def GatherND(data, indices, *, batch_dims=0):
    """Slices of what the tuples of indices name, which are rows of a matrix."""
    batch, tuples = data.shape[:batch_dims], indices.shape[-1]
    leading, rest = data.shape[batch_dims : batch_dims + tuples], data.shape[batch_dims + tuples :]
    rows = data.reshape(math.prod(batch), math.prod(leading), *rest)
    at = _rows(indices, leading).reshape(math.prod(batch), -1)
    y = jax.vmap(bj.gather_rows)(rows, at)
    return y.reshape(*indices.shape[:-1], *rest)


def ScatterND(data, indices, updates, *, reduction=b"none"):
    tuples = indices.shape[-1]
    rest = data.shape[tuples:]
    updates = updates.reshape(-1, math.prod(rest))
    at = np.broadcast_to(_rows(indices, data.shape[:tuples]).reshape(-1, 1), updates.shape)
    return ScatterElements(data.reshape(-1, math.prod(rest)), at, updates, reduction=reduction).reshape(data.shape)


def _rows(indices, sizes):
    """The numbers of rows that tuples [..., n] name in an array of n leading dimensions; negative ones are from the end."""
    return np.ravel_multi_index(tuple(np.moveaxis(np.asarray(indices) % np.array(sizes), -1, 0)), sizes)


def ScatterElements(data, indices, updates, *, axis=0, reduction=b"none"):
    name = "scatter" if reduction == b"none" else f"scatter_{reduction.decode()}"
    return getattr(bj, name)(data, indices, updates, axis)


def OneHot(indices, depth, values, *, axis=-1):
    depth = int(np.asarray(depth).reshape(()))
    ids = jnp.asarray(indices).astype(jnp.int32)
    ids = jnp.where(ids < 0, ids + depth, ids)  # which are from the end there
    off, on = values
    return bj.where(bj.one_hot(ids, depth, axis, dtype=bool), on, off)
