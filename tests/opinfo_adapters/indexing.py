"""PyTorch's functions of indices. Scalars are vectors of one element there."""

import math

import jax.numpy as jnp
import numpy as np
import sent
from onnx_adapters import NotApplicable

import baracuda_jax as bj


def _as_vector(op, x, *arrays):
    """A call whose arrays may have no dimension."""
    x = sent.asarray(x)
    y = op(jnp.atleast_1d(x), *(jnp.atleast_1d(sent.asarray(a)) for a in arrays))
    return y.reshape(x.shape if x.ndim == 0 else y.shape)


def _number(value):
    """torch's dtypes of numbers do not matter, as JAX's do."""
    return value.item() if isinstance(value, np.ndarray | np.generic) and value.ndim == 0 else value


def _source(x, index, src):
    """An array of index's sizes or larger ones, also where that is one number."""
    return np.full(np.shape(index), src, np.asarray(x).dtype) if np.ndim(src) == 0 else src


def gather(x, dim, index, *, sparse_grad=False):
    if np.ndim(x) == 0:
        return _as_vector(lambda x, i: bj.gather(x, i, 0), x, index).reshape(np.shape(index))
    if np.size(index) == 0:
        return sent.zeros(np.shape(index), np.asarray(x).dtype)
    return bj.gather(x, index, dim)


def scatter(x, dim, index, src=None, *, value=None, reduce=None):
    src = value if src is None else src
    return _scattered({None: bj.scatter, "add": bj.scatter_add, "multiply": bj.scatter_mul}[reduce], x, dim, index, src)


def scatter_add(x, dim, index, src):
    return _scattered(bj.scatter_add, x, dim, index, src)


def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    if reduce == "mean" or not include_self:
        raise NotApplicable("elements of x take part, in sums, products and extrema")
    op = {"sum": bj.scatter_add, "prod": bj.scatter_mul, "amax": bj.scatter_max, "amin": bj.scatter_min}[reduce]
    return _scattered(op, x, dim, index, src)


def scatter_reduce_prod(*args, **options):
    return scatter_reduce(*args, **options)


def scatter_reduce_amax(*args, **options):
    return scatter_reduce(*args, **options)


def scatter_reduce_amin(*args, **options):
    return scatter_reduce(*args, **options)


def _scattered(op, x, dim, index, src):
    if np.asarray(x).dtype.kind in "bc" and op is not bj.scatter:
        raise NotApplicable("floats and integers are added, multiplied and compared")
    if np.size(index) == 0:
        return sent.asarray(x)
    return _as_vector(lambda x, i, s: op(x, i, s, dim), x, index, _source(x, index, src))


def take_along_dim(x, index, dim=None):
    """Sizes of 1 broadcast there."""
    if dim is None:
        return bj.gather(np.ravel(x), np.ravel(index), 0)
    sizes = np.broadcast_shapes(*(np.delete(a.shape, dim) for a in (x, index)))
    return bj.gather(*(np.broadcast_to(a, np.insert(sizes, dim % a.ndim, a.shape[dim])) for a in (x, index)), dim)


def index_put(x, indices, values, *, accumulate=False):
    """An element for each tuple of indices; of those that are equal the last stays, or all are added."""
    masks = [np.nonzero(i) if i.dtype == bool else (i,) for i in indices]
    at = np.broadcast_arrays(*(i for each in masks for i in each))
    leading, rest = x.shape[: len(at)], x.shape[len(at) :]
    rows = np.ravel_multi_index(at, leading, mode="wrap").ravel()
    values = np.broadcast_to(values, (*at[0].shape, *rest)).reshape(len(rows), math.prod(rest))
    x, index = x.reshape(math.prod(leading), math.prod(rest)), np.broadcast_to(rows[:, None], values.shape)
    return (bj.scatter_add if accumulate else bj.scatter)(x, index, values, 0).reshape(*leading, *rest)


def index_select(x, dim, index):
    return _as_vector(lambda x, i: bj.index_select(x, i, dim), x, index)


def index_add(x, dim, index, source, *, alpha=1):
    if np.asarray(x).dtype.kind in "bc":
        raise NotApplicable("floats and integers are added")
    alpha = _number(alpha)
    if isinstance(alpha, complex) or (isinstance(alpha, float) and np.asarray(x).dtype.kind in "iu"):
        raise NotApplicable("alpha is of x's kind")
    return _as_vector(lambda x, i, s: bj.index_add(x, i, s, dim, alpha=alpha), x, index, source)


def masked_fill(x, mask, value):
    return bj.masked_fill(x, mask, _number(value))


def nn_functional_one_hot(x, num_classes=-1):
    size = int(np.max(x)) + 1 if num_classes == -1 else num_classes
    return bj.one_hot(x, size, dtype="int64")


def nn_functional_embedding(
    weight, x, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False
):
    if max_norm is not None:
        raise NotApplicable("the table is not changed")
    return bj.embedding(x, weight, padding_idx=padding_idx)


def nn_functional_embedding_bag(weight, x, *, offsets=None, mode="mean", sparse=False, **options):
    return bj.embedding_bag(x, np.array(weight), offsets, mode=mode, **options)
