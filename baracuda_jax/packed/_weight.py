"""A matrix of packed weights as one value: what it is made of, its floats, and products with it."""

import dataclasses
import functools
from typing import Any

import jax
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from ._formats import FORMATS, GGUF
from ._gguf import gguf_dequantize
from ._rows import gguf_mmvq, int4_mmvq, nf4_mmvq
from ._scaled import int4_dequantize, nf4_dequantize


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=("data", "scale", "zero_point"), meta_fields=("format",)
)
@dataclasses.dataclass(frozen=True)
class PackedWeight:
    """A matrix [N, K] of packed weights, or several of one size. It is a pytree: it may be an argument of a function
    under jit. `x @ w.T` is the product of `packed_matmul`.

    Attributes:
        format: the format: one of GGUF's, "nf4", "fp4", "int4" or "int8".
        data: uint8 [..., N, bytes of a row].
        scale: floats [..., N, groups], of the formats that have them; else None.
        zero_point: as scale, of "int4" and "int8" with zero points; else None.
    """

    format: str
    data: Array
    scale: Array | None = None
    zero_point: Array | None = None

    # NumPy's arrays on the left of @ leave the product to this class.
    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the weights as floats."""
        of = FORMATS[self.format]
        return (*self.data.shape[:-1], self.data.shape[-1] // of.bytes * of.block)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(x.nbytes for x in jax.tree.leaves(self))

    @property
    def T(self) -> "Transposed":
        """The transpose, for `x @ w.T`."""
        return Transposed(self)

    def dequantize(self, dtype: DTypeLike = "float32", *, implementation: Implementation = None) -> Array:
        """The weights as floats."""
        checked("PackedWeight.dequantize", self)
        how = dict(dtype=dtype, implementation=implementation)
        if self.format in GGUF:
            return gguf_dequantize(self.data, self.format, **how)
        if FORMATS[self.format].middle is not None:
            return int4_dequantize(self.data, self.scale, self.zero_point, bits=FORMATS[self.format].bits, **how)
        return nf4_dequantize(self.data, self.scale, code=self.format, **how)


@dataclasses.dataclass(frozen=True)
class Transposed:
    """The transpose of a PackedWeight, on the right of @."""

    of: PackedWeight

    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the weights, with the last two sizes exchanged."""
        *lead, rows, columns = self.of.shape
        return (*lead, columns, rows)

    @property
    def T(self) -> PackedWeight:
        """The matrix itself."""
        return self.of

    def __rmatmul__(self, x: ArrayLike) -> Array:
        return packed_matmul(x, self.of)


def checked(op: str, w: Any) -> PackedWeight:
    """A PackedWeight of a known format."""
    if not isinstance(w, PackedWeight):
        raise TypeError(f"{op}: w must be a PackedWeight, got {type(w).__name__}")
    checks.choice(op, "w.format", w.format, tuple(FORMATS))
    if FORMATS[w.format].has_arrays and w.scale is None:
        raise ValueError(f"{op}: w.scale must be given in format {w.format!r}, got None")
    return w


@api
def packed_matmul(
    x: ArrayLike,
    w: PackedWeight,
    *,
    numerics: str = "exact",
    factor_gradients: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Product with the transpose of a matrix of packed weights: `gguf_mmvq`, `nf4_mmvq` or `int4_mmvq`, by the format.

    Formula:
        y[..., n] = the sum of x[..., k] W[n, k]; dx[..., k] is the sum of dy[..., n] W[n, k].

    Args:
        x: floats [..., K].
        w: a PackedWeight of one matrix [N, K].
        numerics: static, "exact" for x as it is; "q8" for x rounded to integers of 8 bits.
        factor_gradients: static, whether w.scale and w.zero_point have gradients too, of the formats that have these arrays.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., N] of x's dtype. It is differentiable in x.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `gguf_mmvq`.

    Source: none; the ops that it calls have theirs.
    """
    w = checked("packed_matmul", w)
    how = dict(numerics=numerics, implementation=implementation)
    if w.format in GGUF:
        if checks.flag("packed_matmul", "factor_gradients", factor_gradients):
            raise ValueError(f"packed_matmul: factor_gradients must be False in format {w.format!r}, got True")
        return gguf_mmvq(x, w.data, w.format, **how)
    how["factor_gradients"] = factor_gradients
    if FORMATS[w.format].middle is not None:
        return int4_mmvq(x, w.data, w.scale, w.zero_point, bits=FORMATS[w.format].bits, **how)
    return nf4_mmvq(x, w.data, w.scale, code=w.format, **how)
