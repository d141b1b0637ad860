"""A benchmark: one call of an op on arrays of one size and dtype, and the same in plain JAX and in PyTorch."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from .._core.op import OPS
from .draws import Draws

DTYPES = ("float32", "bfloat16")
SIZES = ("small", "large")
PASSES = ("forward", "forward + backward")
MATRICES = {"tiny": (96, 256), "small": (1024, 1024), "large": (16384, 4096)}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What runs, and what its gradient has to read.

    op, variant     the op's name, and which of its cases where there are several
    shape           of the operands, in words
    draw            Draws -> arrays; floats are cast to `dtype`, but those at positions in `wide`
    function        (*arrays, implementation) -> y, or a tuple of results, of which the forward pass alone is timed
    plain           (*arrays) -> y: what one writes in JAX without baracuda_jax; None for the reference
    torch           (torch, *tensors) -> y
    of_torch        (*arrays) -> those that PyTorch's program reads instead, made once: packed weights as floats
    moving          so many arrays, the first, have gradients
    needs           what the gradient's formula reads besides the cotangent: positions of operands, and "y"
    saved           what the forward pass may write for the gradient to read instead of `needs`
    passes          those that are timed; quantized values have no gradient
    even            of skewed data: the case of the same op that is not
    flips           the fraction of elements that may differ, where XLA, which divides by multiplying, rounds ties otherwise
    differs         why two runs of the backward pass may differ, whose bits are not compared then; "" where they must not
    rough           how many times the usual error is allowed, where what XLA adds up in float32 is off by so much
    unread          bytes of the operands that no program has to read, as the matrices of experts that no token has
    by_library      whether the op's kernels are for smaller sizes, so that a library computes it
    """

    op: str
    shape: str
    dtype: str
    draw: Callable
    function: Callable
    plain: Callable | None = None
    torch: Callable | None = None
    of_torch: Callable | None = None
    variant: str = ""
    moving: int = 1
    needs: tuple[int | str, ...] = ()
    saved: tuple[jax.ShapeDtypeStruct, ...] = ()
    passes: tuple[str, ...] = PASSES
    even: str | None = None
    wide: tuple[int, ...] = ()
    flips: float = 0.0
    differs: str = ""
    rough: float = 1.0
    unread: int = 0
    by_library: bool = False

    @property
    def case(self):
        """Shape and variant."""
        return ", ".join(filter(None, (self.shape, self.variant)))

    @property
    def tolerance(self):
        """The error that is allowed, relative to the largest element."""
        return self.rough * {"float32": 1e-5, "bfloat16": 3e-2, "int32": 0, "uint32": 0, "bool": 0}[self.dtype]

    @property
    def has_native(self):
        """Whether kernels compute it; an op without has one program, which is timed as native."""
        return OPS[self.op].has_kernels and not self.by_library

    @property
    def family(self):
        """The op's."""
        return OPS[self.op].family

    def drawn(self, seed):
        """(dy, *arrays), where the program that calls this runs; dy is as the result, None where no pass reads it."""
        arrays = tuple(self._cast(i, x) for i, x in enumerate(self.draw(Draws(seed, "arrays"))))
        y, draws = self.result_type(arrays), Draws(seed, "cotangent")
        has_dy = PASSES[1] in self.passes if isinstance(y, tuple) else not is_code(y)
        return jax.tree.map(lambda y: draws.normal(y.shape).astype(y.dtype), y) if has_dy else None, *arrays

    def result_type(self, arrays):
        """Shape and dtype of y, or of each of its arrays."""
        return jax.eval_shape(lambda *a: self.function(*a, implementation="xla"), *arrays)

    def _cast(self, i, x):
        return x.astype(self.dtype) if x.dtype == jnp.float32 and i not in self.wide else x

    def __str__(self):
        return f"{self.op} {self.dtype} {self.case}"


def along(shape, axis):
    """What a case's name says of an axis that is not the last."""
    return "" if axis == len(shape) - 1 else f", axis {axis}"


def normal(*shape):
    """Draws one array of normal numbers."""
    return lambda draws: (draws.normal(shape),)


def is_code(x):
    """Quantized values: they are compared in steps, and have no gradient."""
    return x.dtype.itemsize == 1
