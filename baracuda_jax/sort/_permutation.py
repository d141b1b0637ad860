"""The derivatives of what an index of elements gives, no element twice: each comes from one position and goes back there."""

from .._core.op import Body
from . import _kernels, _references


def _tangent_by(take):
    def tangent(index, t, *, axis, **_):
        return (take(t, index, axis),)

    return tangent


def _backward_by(scatter):
    def backward(index, dy, *, axis, count=None, **_):
        return (scatter(index, dy, dy.shape[axis] if count is None else count, axis, unique=True),)

    return backward


DERIVATIVES = dict(
    residuals=("indices",),
    tangent=Body(_tangent_by(_references.take), _tangent_by(_kernels.take)),
    backward=Body(_backward_by(_references.scatter), _backward_by(_kernels.scatter)),
)
TARGETS = {"tangent": ("take_along",), "backward": ("scatter_along",)}
