"""Order statistics: the elements of some ranks of each row. `kthvalue`, `median` and the others are such calls, with ranks
of their own."""

from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from . import _kernels, _references
from ._family import FAMILY


def _labels(names, types, params):
    """Rows [*batch, n]; ranks [*batch, m], or with fewer of the batches."""
    last = lambda name: "m" if name in ("ranks", "values", "indices") else "n"
    return [(*(f"batch{i}" for i in range(x.ndim - 1)), last(name)) for name, x in zip(names, types, strict=True)]


def _reference(x, ranks, *, count):
    values, indices = _references.sort(x, axis=x.ndim - 1, descending=False)
    missing = tuple(range(ranks.ndim - 1, x.ndim - 1))
    ranks = ranks.reshape(*ranks.shape[:-1], *(1 for _ in missing), ranks.shape[-1])
    ranks = ranks + (indices[..., :1] * 0)  # for every row
    return tuple(_references.take(a, ranks, a.ndim - 1) for a in (values, indices))


def _native(x, ranks, *, save, count):
    return _kernels.order_statistics(x, ranks)[: 2 if save else 1]


def _tangent_by(take):
    return lambda indices, t, *, count: (take(t, indices, t.ndim - 1),)


def _backward_by(scatter):
    # Two ranks may be one: the cotangents of an element are added.
    return lambda indices, dy, *, count: (scatter(indices, dy, count, dy.ndim - 1, unique=False),)


def statistics(name, operand, *, public, cases, dtypes, fused=False):
    """Declares one: called with rows and ranks, of int32, it gives values, and indices with `save`."""
    return declare(
        name,
        **FAMILY,
        batched=as_they_are,
        regime=along_axes,
        operands=(operand, "ranks"),
        differentiable=(operand,),
        constant={"ranks": "ranks are integers"},
        shared={"ranks": 1},
        public=public,
        dtypes=dtypes,
        cases=cases,
        results=("values", "indices"),
        residuals=("indices",),
        cut=Partition(_labels, whole=frozenset("nm"), plain=True),
        forward=Body(_reference, _native),
        tangent=Body(_tangent_by(_references.take), _tangent_by(_kernels.take)),
        backward=Body(_backward_by(_references.scatter), _backward_by(_kernels.scatter)),
        kernels={"forward": ("order_statistics",), "tangent": ("take_along",), "backward": ("scatter_along",)},
        fused=fused,
    )
