"""What all ops of the family share in their declarations."""

from .._core.op import as_they_are
from .._core.sku import OpCategory

FAMILY = dict(family="histogram", category=OpCategory.SORTING, batched=as_they_are)
POSITIONS = "a position does not move with it, but jumps"
COUNTS = "a count does not move with it, but jumps"
