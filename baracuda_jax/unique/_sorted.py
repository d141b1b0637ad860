"""The sort that distinct values are made of."""

from ..sort import argsort, sort

#: The FFI targets that it calls.
TARGETS = ("sort",)


def sorted_cells(x, with_order, prefer):
    """x [n], sorted along its axis with NaN last, and where its cells were, those that tie in their order; None where
    nobody asks for it."""
    if not with_order:
        return sort(x, prefer=prefer), None
    order = argsort(x, prefer=prefer)
    return x[order], order
