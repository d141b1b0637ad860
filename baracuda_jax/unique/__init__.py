"""Elements that are kept: nonzero ones, and the first of each run of equal ones, of which distinct values are made.

Data flow: arrays are [batches, elements]. Each chunk of a row is counted, and then writes the positions of what it keeps
after those of the chunks before it. How many there are depends on the data, so results have a static `size`. Pattern:
compact.
"""

from ._nonzero import nonzero
from ._unique import unique, unique_consecutive

__all__ = ["nonzero", "unique", "unique_consecutive"]
