"""Functions of `jax.numpy` with native kernels: the same names, signatures and semantics."""

from . import _counts, _reductions, _scans, _sets, _shapes, _sorts, linalg
from ._counts import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._scans import *  # noqa: F403
from ._sets import *  # noqa: F403
from ._shapes import *  # noqa: F403
from ._sorts import *  # noqa: F403

__all__ = ["linalg"]
__all__ += [name for part in (_counts, _reductions, _scans, _sets, _shapes, _sorts) for name in part.__all__]
