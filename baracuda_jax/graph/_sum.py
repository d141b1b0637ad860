"""The sum of the rows that entries name."""

import jax.numpy as jnp
import numpy as np

from .._core import checks
from .._core.body import Body
from .._core.case import Case
from .._core.wide import wide, wide_dtype
from ..segment._family import declare_with_index
from ..segment._references import take
from ._family import FAMILY, by_receiver, by_sender, draws
from ._kernels import total
from ._partition import sum_partition
from ._references import add_up, receivers_of


def _result(dtype, is_wide):
    return wide_dtype(jnp.dtype(dtype)) if is_wide else jnp.dtype(dtype)


def _reference(x, senders, receivers, *, axis, num_rows, num_segments, dtype, is_wide, **_):
    receivers = receivers_of(senders, receivers, num_rows, num_segments)
    messages = wide(take(x, senders, axis=axis))
    return (add_up(messages, receivers, axis=axis, num_segments=num_segments).astype(_result(dtype, is_wide)),)


def _native(
    x, senders, receivers, *, save=False, axis, num_rows, num_segments, sorted, dtype, is_wide, index, length=0
):
    segments = dict(num_segments=num_segments, sorted=sorted, index=by_receiver(index), length=length)
    return (total(x, senders, receivers, axis=axis, dtype=_result(dtype, is_wide), **segments),)


def _backward_reference(senders, receivers, dy, *, axis, num_rows, num_segments, dtype, **_):
    senders_or_none = receivers_of(receivers, senders, num_segments, num_rows)
    each = wide(take(dy, receivers, axis=axis))
    return (add_up(each, senders_or_none, axis=axis, num_segments=num_rows).astype(dtype),)


def _backward_native(senders, receivers, dy, *, axis, num_rows, num_segments, dtype, index, length=0, **_):
    rows = dict(num_segments=num_rows, sorted=False, index=by_sender(index), repeats=length)
    dx = total(dy, receivers, senders, axis=axis, dtype=dy.dtype, **rows)
    return (dx.astype(dtype),)


def declare_sum(public):
    return declare_with_index(
        "aggregate_sum",
        **FAMILY,
        public=public,
        dtypes=checks.NUMBERS,
        cases=(
            Case("edges", draws(11, (6,), 41, 11)),
            Case("out of range", draws(7, (3, 2), 30, 9, dtype=np.int8, outside=2), dict(num_segments=9)),
            Case("sorted", draws(9, (5,), 28, 6, is_sorted=True), dict(num_segments=6, indices_are_sorted=True)),
            Case("vector", draws(13, (), 50, 7, dtype=np.int8), dict(num_segments=300)),
            Case("index", draws(9, (4,), 31, 7, outside=1, is_indexed=True)),
        ),
        operands=("x", "senders", "receivers"),
        differentiable=("x",),
        residuals=("senders", "receivers"),
        linear=lambda params: params,
        cut=sum_partition,
        forward=Body(_reference, _native),
        backward=Body(_backward_reference, _backward_native),
        kernels={
            "forward": ("segment_sum",),
            "backward": ("segment_sum",),
        },
    )
