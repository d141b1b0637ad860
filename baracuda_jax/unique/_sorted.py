"""The sort of which distinct values are made."""

from ..sort._sort import _sort


def sorted_elements(x, with_order, implementation):
    """x [n], sorted along its axis with NaN last, and where its elements were, those that tie in their order; None where
    nobody asks for it."""
    y = _sort(x, axis=0, descending=False, save=with_order, implementation=implementation)
    return y if with_order else (y, None)
