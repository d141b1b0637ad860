"""ONNX's operators of indices."""

import jax.numpy as jnp
import numpy as np

import baracuda_jax as bj

from . import NotApplicable


def GatherElements(data, indices, *, axis=0):
    return bj.gather(data, indices, axis)


def Gather(data, indices, *, axis=0):
    flat = bj.index_select(data, indices.ravel(), axis)
    return flat.reshape(*data.shape[: axis % data.ndim], *indices.shape, *data.shape[axis % data.ndim + 1 :])


def GatherND(data, indices, *, batch_dims=0):
    raise NotApplicable("an index has one entry for each element, not a tuple of them")


def ScatterElements(data, indices, updates, *, axis=0, reduction=b"none"):
    name = "scatter" if reduction == b"none" else f"scatter_{reduction.decode()}"
    return getattr(bj, name)(data, indices, updates, axis)


def OneHot(indices, depth, values, *, axis=-1):
    depth = int(np.asarray(depth).reshape(()))
    ids = jnp.asarray(indices).astype(jnp.int32)
    ids = jnp.where(ids < 0, ids + depth, ids)  # which are from the end there
    off, on = values
    return bj.where(bj.one_hot(ids, depth, axis, dtype=bool), on, off)
