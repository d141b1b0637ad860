"""Elements and slices at an index."""

from typing import Literal

from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.bits import to_bytes
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import as_they_are, compose, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation
from ..segment._take import take_or_zero, take_rows
from . import _elements
from ._arguments import (
    INDEX,
    axis_of,
    draw_index,
    fill_of,
    fits,
    mode_of,
    one_dimensional,
    operands,
    part_and_positions,
    positions,
)

_DOC = """

    Formula:
        {formula}

    Args:
        x: array {shape} of any dtype.
        index: integers {index} of any width. {entries}
{args}        implementation: {implementation}

    Returns:
        Array {result} of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. {gradient}

    Source: {source}.
    """
_IN_ORDER = dict(
    implementation='"native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.',
    gradient="The gradient adds up what comes from equal indices in order, of float16 and bfloat16 in float32: it has the\n"
    "    same bits every time.",
)
_ENTRIES = "Entries in [-n, -1] count from the end, n being the axis' size. Others out of range never fail: see mode."
_MODE = """        axis: static integer, {axis}.
        mode: static, what an entry out of range gives: "fill", the fill value, whose element has no gradient; or "clip", the
            nearest element.
        fill_value: static number; by default NaN of floats and complex numbers, the smallest signed or largest unsigned
            integer, and True.
"""


def _document(args, entries=_ENTRIES, **parts) -> Decorator:
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(args=args, entries=entries, **parts)
        return fun

    return decorate


@api
@_document(
    formula="y[i, j, k] = x[i, index[i, j, k], k] with three dimensions and axis 1; dx is the sum of dy by index.",
    shape="of rank 1 or more",
    index="of x's rank, of any size along the axis and at most x's elsewhere,",
    args=_MODE.format(axis="along which is looked up"),
    result="of index's shape,",
    source="torch.gather; jax.numpy.take_along_axis, which broadcasts sizes of 1",
    **_IN_ORDER,
)
def gather(
    x: ArrayLike,
    index: ArrayLike,
    axis: int = -1,
    *,
    mode: Literal["fill", "clip"] = "fill",
    fill_value: complex | None = None,
    implementation: Implementation = None,
) -> Array:
    """Elements along an axis, at an index for each."""
    op = "gather"
    x, index = operands(op, x, index)
    axis = axis_of(op, x, axis)
    fits(op, x, index, axis)
    mode = mode_of(op, x, axis, mode)
    fill = to_bytes(fill_of(op, x, mode, fill_value), x.dtype)
    wraps = mode == "fill" and index.dtype == "int32"  # as it is: the kernel counts from the end itself
    part, at = part_and_positions(x, index, axis=axis, mode=None if wraps else mode)
    params = dict(axis=axis - x.ndim, size=x.shape[axis], fill=fill, wraps=wraps)
    return take_elements(part, at, **params, implementation=implementation)


@api
def gather_backward(
    index: ArrayLike, dy: ArrayLike, size: int, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """The gradient of `gather`: dx[i, n, k] = sum of dy[i, j, k] over the j with index[i, j, k] == n, with three dimensions
    and axis 1.

    Args:
        index: integers of dy's shape, as in `gather`; entries out of range add nothing.
        dy: floats or complex numbers, the cotangent of the result.
        size: static integer, that of x along the axis. Along the others x has dy's sizes.
        axis: static integer, along which was looked up.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "gather_backward"
    dy, index = operands(op, dy, index, checks.INEXACT, name="dy")
    checks.shape(op, "index", index, dy.shape, "that of dy")
    axis, size = checks.axis(op, "dy", dy, axis), checks.integer(op, "size", size, 0)
    checks.positions(op, "size", size, "elements along the axis")
    params = dict(axis=axis - dy.ndim, size=size, fill=bytes(dy.dtype.itemsize), wraps=False)
    return take_elements.vjp(_wrapped(index, size=size), dy, **params, implementation=implementation)


@api
@_document(
    formula="y[i, j, k] = x[i, index[j], k] with three dimensions and axis 1; dx is the sum of dy by index.",
    shape="of rank 1 or more",
    index="[M]",
    args=_MODE.format(axis="along which slices are taken"),
    result="of x's shape with M along the axis,",
    source="torch.index_select; jax.numpy.take",
    **_IN_ORDER,
)
def index_select(
    x: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    *,
    mode: Literal["fill", "clip"] = "fill",
    fill_value: complex | None = None,
    implementation: Implementation = None,
) -> Array:
    """Slices along an axis, at an index."""
    op = "index_select"
    x, index = operands(op, x, index)
    axis = axis_of(op, x, axis)
    one_dimensional(op, index)
    mode = mode_of(op, x, axis, mode)
    fill = fill_of(op, x, mode, fill_value)
    at = _positions(x, index, axis=axis, mode=mode, wraps=True)
    params = dict(axis=axis, num_segments=x.shape[axis], sorted=False, implementation=implementation)
    return take_rows(x, at, **params, fill=to_bytes(fill, x.dtype))


@api
@_document(
    formula="y[...] = x[index[...]], and 0 where index[...] is not in [0, N); dx is the sum of dy by index.",
    shape="[N, ...]",
    index="of any shape, of the rows of x",
    entries="Entries out of range, negative ones too, give rows of 0 that have no gradient: -1 is padding.",
    args="",
    result="[*index.shape, ...]",
    source="torch.index_select and jax.numpy.take, which have no rows of 0",
    **_IN_ORDER,
)
def gather_rows(x: ArrayLike, index: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Rows at an index, zeros for padding."""
    x, index = operands("gather_rows", x, index)
    axis_of("gather_rows", x, 0)
    at = _positions(x, index, axis=0, mode="fill", wraps=False)
    y = take_or_zero(x, at, axis=0, num_segments=x.shape[0], sorted=False, implementation=implementation)
    return _unflat(y, shape=(*index.shape, *x.shape[1:]))


@compiled("size")
def _wrapped(index, *, size):
    return positions(index, size)


@compiled("axis", "mode", "wraps")
def _positions(x, index, *, axis, mode, wraps):
    """[M]; whole where x is sharded, whose axes of the mesh the result has then."""
    index = explicit.whole(index) if explicit.is_sharded(x) else index
    return positions(explicit.reshape(index, -1), x.shape[axis], mode, wraps)


@compiled("shape")
def _unflat(y, *, shape):
    return explicit.reshape(y, *shape)


def _case(name, shape, index, low, high, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape), draw_index(rng, low, high, index)), kwargs)


def _declare(public, *cases):
    compose(
        public.__name__,
        family="indexing",
        category=OpCategory.INDEXING,
        public=public,
        cases=cases,
        dtypes=checks.EVERY,
        operands=("x", "index"),
        differentiable=("x",),
        constant=INDEX,
        made_of=("segment_take",),
    )


take_elements = declare(
    "gather",
    family="indexing",
    category=OpCategory.INDEXING,
    public=gather,
    cases=(
        _case("columns", (5, 17), (5, 8), -17, 17),
        _case("a middle axis, some out of range", (3, 7, 4), (2, 9, 4), -9, 9, axis=1, fill_value=1),
        _case("clipped", (19,), (30,), -25, 25, mode="clip"),
    ),
    dtypes=checks.EVERY,
    operands=("x", "index"),
    differentiable=("x",),
    constant=INDEX,
    residuals=("index",),
    linear=lambda params: {**params, "fill": bytes(len(params["fill"]))},
    batched=as_they_are,
    cut=Partition(_elements.labels, frozenset("s")),
    forward=_elements.FORWARD,
    backward=_elements.BACKWARD,
    kernels={"forward": ("take_along",), "backward": ("scatter_along",)},
    regime=along_axes,
)
_declare(
    index_select,
    _case("rows", (11, 5), (7,), -11, 11),
    _case("columns, some out of range", (4, 9), (12,), -12, 12, axis=-1, fill_value=0),
    _case("clipped", (3, 8, 2), (12,), -12, 12, axis=1, mode="clip"),
)
_declare(
    gather_rows,
    _case("rows", (11, 5), (14,), -3, 14),
    _case("a table of rows", (6, 2, 3), (3, 4), -1, 6),
)
