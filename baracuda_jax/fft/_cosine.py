"""Cosine transforms of types 1 to 4, in n log n: each is a Fourier transform of x in another order.

JAX has type 2 alone. Type 1 is `rfft` of x and its mirror image. Type 2 is `rfft` of the elements at even indices, and
those at odd ones from the end (Makhoul, 1980); type 3 is its inverse. Type 4 is a complex transform of half the length, or
of twice the length where the length is odd."""

import math
from typing import Literal, Protocol, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.compiled import compiled
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import NORMS, Norm, length, operand
from ._transforms import _declare, case

Type: TypeAlias = Literal[1, 2, 3, 4]


class CosineTransform(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, type: Type = 2, n: int | None = None, axis: int = -1, norm: Norm = None, *,
        orthogonalize: bool | None = None, implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_DOC = """{summary}

    Formula:
        type 1: y[k] = x[0] + (-1)^k x[n - 1] + 2 sum over 0 < j < n - 1 of x[j] cos(pi j k / (n - 1))
        type 2: y[k] = 2 sum of x[j] cos(pi k (2 j + 1) / (2 n))
        type 3: y[k] = x[0] + 2 sum over j > 0 of x[j] cos(pi j (2 k + 1) / (2 n))
        type 4: y[k] = 2 sum of x[j] cos(pi (2 j + 1) (2 k + 1) / (4 n))
        times a factor that norm says. {inverse}The transform is linear: dx = F^T dy for y = F x.

    Args:
        x: array of floats, or of complex numbers, whose parts are transformed.
        type: static 1, 2, 3 or 4{of}.
        n: static length of the transform along the axis: x is cut off or filled up with zeros at its end. By default x's.
            At least 2 for type 1.
        axis: static integer, along which x is transformed.
        norm: static; with N = 2 n, or 2 (n - 1) for type 1, "backward" or None for the factor {backward}, "ortho" for
            1 / sqrt(N), "forward" for {forward}.
        orthogonalize: static, whether elements that are their own mirror image have a factor sqrt(2) or its inverse, such
            that "ortho" makes the transform an orthogonal matrix; None for whether norm is "ortho".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's dtype, with n elements along the axis.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where an axis has no elements.

    Precision: float16 and bfloat16 are computed in float32 and rounded once; others in their own precision.

    Source: scipy.fft.{name}; jax.scipy.fft.{name}, of type 2 alone.
    """


def _turned(z, numerator, denominator):
    """z[k] exp(-pi i numerator[k] / denominator)"""
    angle = (numerator.astype(z.real.dtype) * (math.pi / denominator)).astype(z.real.dtype)
    return z * jnp.expand_dims(lax.complex(jnp.cos(angle), -jnp.sin(angle)), range(z.ndim - 1))


def _steps(count):
    return lax.iota(np.int32, count)


def _type_1(x):
    return jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], -1)).real


def _type_2(x):
    n = x.shape[-1]
    v = jnp.fft.rfft(jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1))
    w = 2 * _turned(v, _steps(n // 2 + 1), 2 * n)
    return jnp.concatenate([w.real, -w.imag[..., (n - 1) // 2 : 0 : -1]], -1)


def _type_3(x):
    n = x.shape[-1]
    first = x[..., : n // 2 + 1]
    mirrored = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., : (n - 1) // 2 : -1]], -1)
    w = _turned(lax.complex(first, mirrored), _steps(n // 2 + 1), 2 * n)
    v = n * jnp.fft.irfft(jnp.conj(w), n)
    half = (n + 1) // 2
    return _interleaved(v[..., :half], v[..., half:][..., ::-1])


def _type_4(x):
    n = x.shape[-1]
    if n % 2:
        z = jnp.fft.fft(_turned(lax.complex(x, jnp.zeros_like(x)), _steps(n), 2 * n), 2 * n)[..., :n]
        return 2 * _turned(z, 2 * _steps(n) + 1, 4 * n).real
    quarter = 4 * _steps(n // 2) + 1
    z = _turned(lax.complex(x[..., ::2], x[..., ::-2]), quarter, 4 * n)
    w = 2 * _turned(jnp.fft.fft(z), 4 * _steps(n // 2), 4 * n)
    return _interleaved(w.real, -w.imag[..., ::-1])


def _interleaved(even, odd):
    """[even[0], odd[0], even[1], ...]; even may have one more."""
    n = even.shape[-1] + odd.shape[-1]
    odd = jnp.pad(odd, [(0, 0)] * (odd.ndim - 1) + [(0, even.shape[-1] - odd.shape[-1])])
    return jnp.stack([even, odd], -1).reshape(*even.shape[:-1], 2 * even.shape[-1])[..., :n]


_TYPES = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}
# The elements of x and of y that are their own mirror image.
_OWN = {1: ((0, -1), (0, -1)), 2: ((), (0,)), 3: ((0,), ()), 4: ((), ())}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _scaled(x, positions, factor):
    factors = np.ones(x.shape[-1])
    for i in positions:
        factors[i] = factor
    return x * jnp.expand_dims(jnp.asarray(factors, x.dtype), range(x.ndim - 1)) if positions else x


@compiled("type", "n", "axis", "factor", "orthogonalize")
def _cosine(x, *, type, n, axis, factor, orthogonalize):
    of_x, of_y = _OWN[type] if orthogonalize else ((), ())

    def real(x):
        y = _TYPES[type](_scaled(x, of_x, math.sqrt(2)))
        return jnp.asarray(factor, y.dtype) * _scaled(y, of_y, math.sqrt(0.5))

    found = jnp.moveaxis(explicit.whole(wide(x), [axis % x.ndim]), axis, -1)[..., :n]
    found = jnp.pad(found, [(0, 0)] * (x.ndim - 1) + [(0, n - found.shape[-1])])
    is_complex = jnp.issubdtype(x.dtype, jnp.complexfloating)
    y = lax.complex(real(found.real), real(found.imag)) if is_complex else real(found)
    return jnp.moveaxis(y, -1, axis).astype(x.dtype)


def _transform(name, summary, is_inverse, of, inverse) -> CosineTransform:
    def fun(
        x: ArrayLike,
        type: Type = 2,
        n: int | None = None,
        axis: int = -1,
        norm: Norm = None,
        *,
        orthogonalize: bool | None = None,
        implementation: Implementation = None,
    ) -> Array:
        x = operand(name, x, checks.INEXACT)
        type = checks.choice(name, "type", type, tuple(_TYPES))
        axis, n = length(name, x, axis, n)
        checks.choice(name, "norm", norm, NORMS)
        if type == 1 and n == 1:
            raise ValueError(f"{name}: n must be at least 2 for type 1, got 1")
        own = norm == "ortho" if orthogonalize is None else checks.flag(name, "orthogonalize", orthogonalize)
        count = 2 * (n - 1) if type == 1 else 2 * n
        has_factor = (norm or "backward") == ("backward" if is_inverse else "forward")
        factor = 1 / math.sqrt(count) if norm == "ortho" else 1 / count if has_factor else 1.0
        kind = _INVERSE[type] if is_inverse else type
        return _cosine(x, type=int(kind), n=n, axis=axis, factor=factor, orthogonalize=own)

    doc = _DOC.format(
        summary=summary, name=name, of=of, inverse=inverse, backward="1 / N" if is_inverse else "1",
        forward="1" if is_inverse else "1 / N",
    )  # fmt: skip
    cases = (
        case("type 1", (2, 6), type=1, norm="ortho"),
        case("type 2", (5, 3), n=7, axis=0),
        case("type 3", (2, 8), type=3, norm="ortho"),
        case("type 4", (2, 6), type=4, norm="forward"),
        case("type 4 odd", (2, 5, 2), type=4, axis=1),
    )
    return _declare(fun, name, doc, cases, checks.INEXACT)


dct = _transform("dct", "Discrete cosine transform along an axis.", False, "", "")
idct = _transform(
    "idct", "Inverse of `dct`.", True, ", of the transform whose inverse this is",
    "The inverse of type 1 is type 1, of 2 type 3, of 3 type 2, of 4 type 4, each times 1 / N. ",
)  # fmt: skip
