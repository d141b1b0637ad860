"""Steps of optimizers on the rows of a table that a batch has: kernels never have the gradient of the whole table in memory.
Where a batch may have most rows, one makes the step of each. Of a much larger table the rows that a batch has are found, and
they alone are read and written."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.types import Implementation
from .._core.wide import wide
from ..optim._arguments import number, scalar
from ._arguments import flat, gradients_of, ids_of, kept, padding_of, table_of
from ._dense_steps import declare_step, is_dense
from ._rows import rows_of

_ARGUMENTS = """\
x: integers of any shape and width, as in `embedding`. Those out of range change nothing.
        dy: floats [*x.shape, ...] of weight's dtype, the cotangent of the embedding.
        learning_rate: number or scalar array, which may be traced.
"""
_OPTIONS = """\
size: static integer, how many different ids there is room for; the rows of the largest ones stay as they are. By default
            the smaller of V and the number of positions, which is always enough.
        padding_idx: static, the id whose row stays as it is. Negative ones count from the end; None for none.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.
"""
_REST = """\
Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. What equal ids give is added in order: the same
    bits every time. There is no derivative: what is updated has none to its gradient.
"""


def _document(fun):
    """Completes the docstring, whose indentation Python 3.13 takes away and earlier ones leave."""
    if fun.__doc__:
        fun.__doc__ = inspect.cleandoc(fun.__doc__)
        for name, text in (("arguments", _ARGUMENTS), ("options", _OPTIONS), ("rest", _REST)):
            fun.__doc__ = fun.__doc__.replace(f"{{{name}}}", text.rstrip().replace("\n    ", "\n"))
    return fun


@api
@_document
def embedding_sgd_step(
    weight: ArrayLike,
    x: ArrayLike,
    dy: ArrayLike,
    learning_rate: ArrayLike = 1e-3,
    *,
    size: int | None = None,
    padding_idx: int | None = None,
    implementation: Implementation = None,
) -> Array:
    """Step of stochastic gradient descent on the rows of a table that a batch has.

    Formula:
        weight[v] = weight[v] - learning_rate g[v] for each id v of x, g[v] being the sum of dy[...] over the positions with
        x[...] == v.

    Args:
        weight: floats [V, ...], the table.
        {arguments}
        {options}

    Returns:
        The new table, of weight's shape and dtype; under jit with a donated table, it is written in place.

    {rest}

    Source: torch.optim.SGD of torch.nn.Embedding with sparse=True.
    """
    op = "embedding_sgd_step"
    weight, x, dy, rate = _common(op, weight, x, dy, learning_rate)
    if size is None and is_dense(x, weight):
        return _SGD(weight, _ids(op, x, weight, padding_idx), dy, rate, axis=0, implementation=implementation)
    ids, rows = rows_of(op, x, dy, weight.shape[0], size, padding_idx, implementation, is_wide=True)
    return _sgd(weight, ids, rows, rate)


@api
@_document
def embedding_adagrad_step(
    weight: ArrayLike,
    accumulator: ArrayLike,
    x: ArrayLike,
    dy: ArrayLike,
    learning_rate: ArrayLike = 1e-2,
    *,
    eps: float = 1e-10,
    size: int | None = None,
    padding_idx: int | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Step of Adagrad on the rows of a table that a batch has.

    Formula:
        s[v] = accumulator[v] + g[v]^2, weight[v] = weight[v] - learning_rate g[v] / (sqrt(s[v]) + eps) for each id v of x,
        g[v] being the sum of dy[...] over the positions with x[...] == v.

    Args:
        weight: floats [V, ...], the table.
        accumulator: floats of weight's shape, the sums of squares before the step; of weight's dtype, or float32 for
            float16 and bfloat16.
        {arguments}
        eps: static number of at least 0, added to the root.
        {options}

    Returns:
        (weight, accumulator): new ones, of the shapes and dtypes of the given; under jit with donated ones, they are written
        in place.

    {rest}

    Source: torch.optim.Adagrad of torch.nn.Embedding with sparse=True.
    """
    op = "embedding_adagrad_step"
    weight, x, dy, rate = _common(op, weight, x, dy, learning_rate)
    accumulator = checks.floats(op, "accumulator", accumulator)
    checks.dtype_or_wide(op, "accumulator", accumulator, "weight", weight)
    checks.shape(op, "accumulator", accumulator, weight.shape, "that of weight")
    eps = number(op, "eps", eps, 0)
    accumulator = jax.lax.stop_gradient(accumulator)
    if size is None and is_dense(x, weight):
        params = dict(axis=0, eps=eps, save=True, implementation=implementation)
        return _ADAGRAD(weight, accumulator, _ids(op, x, weight, padding_idx), dy, rate, **params)
    ids, rows = rows_of(op, x, dy, weight.shape[0], size, padding_idx, implementation, is_wide=True)
    return _adagrad(weight, accumulator, ids, rows, rate, eps=eps)


def _common(op, weight, x, dy, learning_rate):
    weight, x = table_of(op, weight), ids_of(op, x)
    dy = gradients_of(op, x, dy, weight.shape[1:])
    checks.same_dtype(op, "dy", dy, "weight", weight)
    return *(jax.lax.stop_gradient(a) for a in (weight, x, dy)), scalar(op, "learning_rate", learning_rate)


def _ids(op, x, weight, padding_idx):
    """As kernels read them, which drop those out of range themselves."""
    size, ids = weight.shape[0], flat(x)
    padding = padding_of(op, padding_idx, size)
    return ids if padding is None else kept(ids, size=size, padding=padding)


def _rows(table, ids):
    return wide(table.at[ids].get(mode="fill", fill_value=0, unique_indices=True, indices_are_sorted=True))


def _written(table, ids, rows):
    """The ids of no row are made different from each other, as is promised of all."""
    size = table.shape[0]
    ids = ids.astype(jnp.uint32)
    at = jnp.where(ids < size, ids, size + jnp.arange(ids.shape[0], dtype=jnp.uint32))
    rows = rows.astype(table.dtype)
    return table.at[at].set(rows, mode="drop", unique_indices=True, indices_are_sorted=True)


@compiled()
def _sgd(weight, ids, rows, rate):
    return _written(weight, ids, _rows(weight, ids) - rate.astype(rows.dtype) * rows)


@compiled("eps")
def _adagrad(weight, accumulator, ids, rows, rate, *, eps):
    squares = _rows(accumulator, ids) + rows * rows
    root = jnp.sqrt(squares) + jnp.asarray(eps, rows.dtype)
    step = jnp.where(rows == 0, 0, rate.astype(rows.dtype) * rows / root)
    return _written(weight, ids, _rows(weight, ids) - step), _written(accumulator, ids, squares)


def _draw(count, has_accumulator=False, ids=(3, 7), features=(5,), low=-1, high=12, dtype=np.int32):
    def draw(rng):
        table = rng.standard_normal((count, *features))
        more = (rng.standard_normal(table.shape) ** 2,) if has_accumulator else ()
        return table, *more, rng.integers(low, high, ids).astype(dtype), rng.standard_normal((*ids, *features))

    return draw


def _cases(has_accumulator):
    return (
        Case("sentences", _draw(40, has_accumulator, high=41), dict(learning_rate=0.1)),
        Case(
            "padding",
            _draw(8, has_accumulator, (30,), (6,), -2, 10, np.int8),
            dict(padding_idx=-1, learning_rate=0.5),
        ),
    )


_SGD = declare_step(embedding_sgd_step, _cases(False))
_ADAGRAD = declare_step(embedding_adagrad_step, _cases(True), states=("accumulator",))
