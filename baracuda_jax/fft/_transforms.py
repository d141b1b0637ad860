"""Fourier transforms along one axis and along several, and shifts of their frequencies. A line of a table each.

XLA calls a library for them. It transforms 32 and 64 bits: half precisions are widened first."""

from collections.abc import Callable
from typing import Protocol

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Axes, Implementation, Integers
from .._core.wide import wide
from ._arguments import NORMS, Norm, axes_of, length, lengths, operand


class Transform(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None, *,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class TransformN(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, s: Integers | None = None, axes: Axes = None, norm: Norm = None, *,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class Shift(Protocol):
    __name__: str

    def __call__(self, x: ArrayLike, axes: Axes = None, *, implementation: Implementation = None) -> Array: ...


_DOC = """{summary}

    Formula:
        {formula}, times a factor that norm says.
        The transform is linear: dx = F^T dy for y = F x, without conjugation{real}.

    Args:
        {x}
        {lengths}
        {axes}
        norm: static; with N the number of elements transformed, "backward" or None for the factor {factors[0]},
            "ortho" for 1 / sqrt(N), "forward" for {factors[1]}.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        {result}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where an axis has no elements.

    Precision: float16 and bfloat16 are computed in float32, and so is the result; others in their own precision.

    Source: {source}.
    """
_X = {
    "any": "x: array of floats or complex numbers.",
    "real": "x: array of floats.",
    "half": """x: array of floats or complex numbers, the first n // 2 + 1 elements of each transform: the others are their
            conjugates. The imaginary part of an element that is its own conjugate is not read.""",
}
_AXES = {
    "n": "axis: static integer, along which x is transformed.",
    "s": "axes: static integers, each axis once, any number of them; None for all, or for as many last ones as s has.",
}
_LENGTHS = {
    "n": "n: static length along the axis: x is cut off or filled up with zeros at its end. By default x's size.",
    "s": "s: static lengths along the axes: x is cut off or filled up with zeros at its ends. By default x's sizes.",
}
_LENGTHS_OF_HALF = {
    "n": """n: static length of y along the axis: x is cut off or filled up with zeros to n // 2 + 1 elements. By default
            2 (m - 1) for m elements of x.""",
    "s": """s: static lengths of y along the axes: x is cut off or filled up with zeros, along the last of the axes to
            n // 2 + 1 elements. By default x's sizes, and there 2 (m - 1) for m elements of x.""",
}
_RESULTS = {
    "any": "Array of complex64, or of complex128 where x has 64 bits in a part.",
    "real": """Array of complex64, or of complex128 where x is float64, with n // 2 + 1 elements along the axis, or along the
        last of the axes.""",
    "half": "Array of float32, or of float64 where x has 64 bits in a part.",
}


def _declare(fun, name, doc, cases, dtypes, library="cufft"):
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc
    public = facade_api(library)(fun)
    facade(
        name, family="fft", category=OpCategory.FFT, public=public, cases=cases, dtypes=dtypes, operands=("x",),
        differentiable=("x",),
    )  # fmt: skip
    return public


def case(name, shape, /, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape),), kwargs)


def _document(name, summary, formula, from_real, to_real, inverse, lengths):
    """`lengths` is the name of the argument: n of one axis, s of several."""
    kind = "real" if from_real else "half" if to_real else "any"
    return _DOC.format(
        summary=summary,
        formula=formula,
        x=_X[kind],
        real=", of which x takes the real part" if from_real else "",
        factors=("1 / N", "1") if inverse else ("1", "1 / N"),
        lengths=(_LENGTHS_OF_HALF if to_real else _LENGTHS)[lengths],
        axes=_AXES[lengths],
        result=_RESULTS[kind],
        source=f"numpy.fft.{name}; jax.numpy.fft.{name}; torch.fft.{name}",
    )


def _transform(name, summary, formula, fun: Callable, *, from_real=False, to_real=False, inverse=False) -> Transform:
    dtypes = checks.FLOATS if from_real else checks.INEXACT

    @compiled("n", "axis", "norm")
    def body(x, *, n, axis, norm):
        return fun(explicit.whole(wide(x), [axis]), n=n, axis=axis, norm=norm)

    def public(
        x: ArrayLike,
        n: int | None = None,
        axis: int = -1,
        norm: Norm = None,
        *,
        implementation: Implementation = None,
    ) -> Array:
        x = operand(name, x, dtypes)
        axis, found = length(name, x, axis, n)
        checks.choice(name, "norm", norm, NORMS)
        return body(x, n=_ends(name, x, axis, n, found) if to_real else found, axis=axis, norm=norm)

    cases = (
        case("rows", (3, 8)),
        case("columns", (9, 2), n=7, axis=0, norm="ortho"),
        case("filled up", (2, 5, 2), n=8, axis=1, norm="forward"),
    )
    return _declare(public, name, _document(name, summary, formula, from_real, to_real, inverse, "n"), cases, dtypes)


def _ends(op, x, axis, n, found):
    """The length of a real result."""
    if n is None and found == 1:
        raise ValueError(f"{op}: n must be given where x has one element along axis {axis}, got None")
    return 2 * (found - 1) if n is None else n


def _transform_n(name, summary, formula, fun: Callable, *, from_real=False, to_real=False, inverse=False) -> TransformN:
    dtypes = checks.FLOATS if from_real else checks.INEXACT

    @compiled("s", "axes", "norm")
    def body(x, *, s, axes, norm):
        return fun(explicit.whole(wide(x), axes), s=s, axes=axes, norm=norm)

    def public(
        x: ArrayLike,
        s: Integers | None = None,
        axes: Axes = None,
        norm: Norm = None,
        *,
        implementation: Implementation = None,
    ) -> Array:
        x = operand(name, x, dtypes)
        found, sizes = lengths(name, x, s, axes)
        checks.choice(name, "norm", norm, NORMS)
        if not found:
            raise ValueError(f"{name}: axes must name one axis at least, got {axes}")
        if to_real and s is None:
            sizes = (*sizes[:-1], _ends(name, x, found[-1], None, sizes[-1]))
        return body(x, s=sizes, axes=found, norm=norm)

    cases = (
        case("all axes", (3, 4)),
        case("two of three", (4, 3, 5), axes=(2, 0), norm="ortho"),
        case("four axes", (2, 3, 2, 3), s=(3, 2, 2, 4), axes=(0, 1, 2, 3), norm="forward"),
    )
    doc = _document(name, summary, formula, from_real, to_real, inverse, "s")
    return _declare(public, name, doc, cases, dtypes)


_EXP = "x[j] exp({}2 pi i j k / n)"
_SUM = "y[k] = sum over j of " + _EXP
_OF_ALL = " along each axis, one after the other"
fft = _transform(
    "fft", "Discrete Fourier transform along an axis.", _SUM.format("-"), jnp.fft.fft,
)  # fmt: skip
ifft = _transform(
    "ifft", "Inverse of `fft`.", _SUM.format(""), jnp.fft.ifft, inverse=True,
)  # fmt: skip
rfft = _transform(
    "rfft", "Discrete Fourier transform of real numbers along an axis: the half that is not a conjugate of the other.",
    _SUM.format("-") + " for k <= n / 2", jnp.fft.rfft, from_real=True,
)  # fmt: skip
irfft = _transform(
    "irfft", "Inverse of `rfft`: real numbers.", _SUM.format("") + ", with x[n - j] = conj(x[j])", jnp.fft.irfft,
    to_real=True, inverse=True,
)  # fmt: skip
hfft = _transform(
    "hfft", "Discrete Fourier transform of what is symmetric up to conjugation, given its first half: real numbers.",
    _SUM.format("-") + ", with x[n - j] = conj(x[j])", jnp.fft.hfft, to_real=True,
)  # fmt: skip
ihfft = _transform(
    "ihfft", "Inverse of `hfft`: the first half of what is symmetric up to conjugation.",
    _SUM.format("") + " for k <= n / 2", jnp.fft.ihfft, from_real=True, inverse=True,
)  # fmt: skip
fftn = _transform_n(
    "fftn", "Discrete Fourier transform along several axes.", _SUM.format("-") + _OF_ALL, jnp.fft.fftn,
)  # fmt: skip
ifftn = _transform_n(
    "ifftn", "Inverse of `fftn`.", _SUM.format("") + _OF_ALL, jnp.fft.ifftn, inverse=True,
)  # fmt: skip
rfftn = _transform_n(
    "rfftn", "Discrete Fourier transform of real numbers along several axes: `rfft` along the last, `fft` along the others.",
    _SUM.format("-") + _OF_ALL, jnp.fft.rfftn, from_real=True,
)  # fmt: skip
irfftn = _transform_n(
    "irfftn", "Inverse of `rfftn`: real numbers.", _SUM.format("") + _OF_ALL, jnp.fft.irfftn, to_real=True, inverse=True,
)  # fmt: skip


def _shift(name, summary, index, shift_of) -> Shift:
    @compiled("shifts", "axes")
    def body(x, *, shifts, axes):
        return jnp.roll(x, shifts, axes)

    def public(x: ArrayLike, axes: Axes = None, *, implementation: Implementation = None) -> Array:
        x = operand(name, x, checks.EVERY)
        found = axes_of(name, x, axes)
        return body(x, shifts=tuple(shift_of(x.shape[a]) for a in found), axes=found)

    doc = f"""{summary}

    Formula:
        y[k] = x[{index} mod n] for n elements along each axis; dx is the opposite shift of dy.

    Args:
        x: array of any shape: floats, integers, bool or complex.
        axes: static integer or integers, each axis once; None for all.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: values are moved as they are.

    Source: numpy.fft.{name}; jax.numpy.fft.{name}; torch.fft.{name}.
    """
    cases = case("all axes", (5, 4)), case("one axis", (2, 7), axes=1), case("two axes", (4, 3, 5), axes=(0, 2))
    return _declare(public, name, doc, cases, checks.EVERY, "xla")


fftshift = _shift(
    "fftshift", "Frequencies in ascending order, 0 in the middle: a roll by n // 2.", "(k - n // 2)", lambda n: n // 2
)
ifftshift = _shift("ifftshift", "Inverse of `fftshift`: frequency 0 comes first.", "(k + n // 2)", lambda n: -(n // 2))
