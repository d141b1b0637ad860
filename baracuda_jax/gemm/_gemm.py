"""Products of matrices of floats, which differ in what comes after the product, and in ranks."""

import inspect
from typing import Any, Protocol

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import SHARED, added, contracted, factor, known_precision, matrix, pair, sizes
from ._product import dimensions, product_with_epilogue

_DOC = """{summary}

    Formula:
        {formula}. Where g is {g}, da = alpha g b^T, db = alpha a^T g{more}.

    Args:
        {args}

    Returns:
        Array {shape} of a's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are accumulated in float32, and rounded once, after everything; on CUDA act(a b + bias)
    is rounded before the activation too. Their gradients are products of what is rounded to 16 bits, accumulated in float32.
    {precision}

    Source: {source}
    """
_DEFAULT = "On a GPU, float32 is multiplied as TF32 where `precision` allows it, as jax.lax does by default."
_C = "c: array that broadcasts to the product, of a's dtype, or float32 with half precisions; None for 0."


class WithBias(Protocol):
    """A product with a bias, made from a line of the table."""

    __name__: str

    def __call__(
        self,
        a: ArrayLike,
        b: ArrayLike,
        bias: ArrayLike,
        c: ArrayLike | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
        precision: Any = None,
        implementation: Implementation = None,
    ) -> Array: ...


def _documented(**parts):
    """Completes the docstring, which is the summary. Of the shared arguments, the function has some."""

    def decorate(fun):
        names = inspect.signature(fun).parameters
        shared = [line for line in SHARED if line.partition(":")[0] in names]
        args = "\n".join([parts["args"], *shared]).replace("\n", "\n        ")
        defaults = {"g": "the cotangent", "more": "", "precision": _DEFAULT}
        fun.__doc__ = _DOC.format(**(defaults | parts | {"summary": fun.__doc__, "args": args}))
        return fun

    return decorate


def _product(op, a, b, c, bias, rank, alpha, beta, transpose_a, transpose_b, algorithm, activation="identity"):
    a, b, shape = pair(op, a, b, rank, transpose_a, transpose_b)
    beta = factor(op, "beta", beta)
    c = added(op, "c", c, a, shape, broadcasts=True)
    bias = added(op, "bias", bias, a, shape[-1:])
    return product_with_epilogue(
        a, b, c if beta else None, bias, dims=dimensions(a.ndim, b.ndim, transpose_a, transpose_b),
        alpha=factor(op, "alpha", alpha), beta=beta, precision=known_precision(op, algorithm), activation=activation,
    )  # fmt: skip


@facade_api("cublaslt")
@_documented(
    formula="y = alpha a b + beta c", shape="[M, N]",
    more=", dc = beta g", args=f"a: matrix [M, K] of floats.\nb: matrix [K, N] of a's dtype.\n{_C}",
    source="torch.addmm, torch.mm, jax.numpy.matmul, scipy.linalg.blas.dgemm.",
)  # fmt: skip
def gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Product of two matrices, plus a third."""
    return _product("gemm", a, b, c, None, 2, alpha, beta, transpose_a, transpose_b, precision)


@facade_api("cublaslt")
@_documented(
    formula="y = alpha a b + beta c for each batch", shape="[..., M, N]", more=", dc = beta g",
    args=f"a: matrices [..., M, K] of floats.\nb: matrices [..., K, N] of a's dtype, with the batches of a.\n{_C}",
    precision="float32 is multiplied as float32 unless `precision` says otherwise.",
    source="torch.baddbmm, torch.bmm, jax.lax.dot_general.",
)  # fmt: skip
def dense_gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    precision: Any = "highest",
    implementation: Implementation = None,
) -> Array:
    """Products of matrices without TF32, also of batches of them, plus a third."""
    return _product("dense_gemm", a, b, c, None, None, alpha, beta, transpose_a, transpose_b, precision)


@facade_api("cublaslt")
@_documented(
    formula="y = alpha a b for each batch",
    shape="[B, M, N]", args="a: matrices [B, M, K] of floats.\nb: matrices [B, K, N] of a's dtype.",
    source="torch.bmm, jax.lax.batch_matmul.",
)  # fmt: skip
def batched_gemm(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alpha: float = 1.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Products of two batches of matrices."""
    return _product("batched_gemm", a, b, None, None, 3, alpha, 1, transpose_a, transpose_b, precision)


@facade_api("cublaslt")
@_documented(
    formula="y = alpha a x + beta c", shape="[M]",
    args=f"a: matrix [M, K] of floats.\nx: vector [K] of a's dtype.\n{_C}", more=", where x is b, dc = beta g",
    source="torch.addmv, torch.mv, jax.numpy.matmul, scipy.linalg.blas.dgemv.",
)  # fmt: skip
def gemv(
    a: ArrayLike,
    x: ArrayLike,
    c: ArrayLike | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transpose_a: bool = False,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Product of a matrix and a vector, plus a vector."""
    op = "gemv"
    a, x = matrix(op, "a", a, 2), matrix(op, "x", x, 1)
    checks.same_dtype(op, "x", x, "a", a)
    m, k = sizes(op, a, transpose_a, name="transpose_a")
    contracted(op, "x", x, x.shape[0], a, k)
    beta = factor(op, "beta", beta)
    c = added(op, "c", c, a, (m,), broadcasts=True)
    return product_with_epilogue(
        a, x, c if beta else None, None, dims=dimensions(2, 1, transpose_a), alpha=factor(op, "alpha", alpha), beta=beta,
        precision=known_precision(op, precision), activation="identity",
    )  # fmt: skip


def _with_bias(name, summary, activation, formula, source) -> WithBias:
    """The function of a line of the table, and its declaration."""

    def fun(
        a: ArrayLike,
        b: ArrayLike,
        bias: ArrayLike,
        c: ArrayLike | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
        precision: Any = None,
        implementation: Implementation = None,
    ) -> Array:
        if bias is None:
            raise TypeError(f"{name}: bias must be an array, got None; gemm has none")
        return _product(name, a, b, c, bias, 2, alpha, beta, transpose_a, transpose_b, precision, activation)

    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = summary
    args = "a: matrix [M, K] of floats.\nb: matrix [K, N] of a's dtype.\n"
    bias = "bias: vector [N] of a's dtype, or float32 with half precisions.\n"
    documented = _documented(
        formula=f"y = {formula}", args=f"{args}{bias}{_C}", shape="[M, N]", source=source,
        g="the cotangent" if activation == "identity" else f"the cotangent times the derivative of {activation}",
        more=", dbias is the sum of g over rows, dc = beta g",
    )  # fmt: skip
    public = facade_api("cublaslt")(documented(fun))
    cases = (
        _case("rows", (5, 7), (7, 4), (4,), (5, 4)),
        _case("transposed", (7, 5), (4, 7), (4,), (1, 4), alpha=0.5, beta=2.0, **_BOTH),
    )
    _declare(public, "a b bias c", cases)
    return public


def _case(name, *shapes, **kwargs):
    return Case(name, lambda rng: tuple(rng.standard_normal(shape) for shape in shapes), kwargs)


def _declare(fun, operands, cases):
    facade(
        fun.__name__,
        family="gemm",
        category=OpCategory.GEMM,
        public=fun,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=tuple(operands.split()),
        differentiable=tuple(operands.split()),
        own_rules=True,
    )


_BOTH = {"transpose_a": True, "transpose_b": True}
_declare(gemm, "a b c", (_case("a third matrix", (5, 7), (7, 4), (5, 4), alpha=0.5, beta=2.0),
                         _case("transposed", (7, 5), (4, 7), (1, 4), **_BOTH)))  # fmt: skip
_declare(dense_gemm, "a b c", (_case("matrices", (5, 7), (7, 4), (5, 4), beta=0.5),
                               _case("batches", (2, 3, 4, 5), (2, 3, 6, 5), (2, 1, 4, 6), transpose_b=True)))  # fmt: skip
_declare(batched_gemm, "a b", (_case("batches", (3, 4, 5), (3, 5, 2)),
                               _case("transposed", (2, 5, 4), (2, 6, 5), alpha=0.5, **_BOTH)))  # fmt: skip
_declare(gemv, "a x c", (_case("a third vector", (5, 7), (7,), (5,), alpha=0.5, beta=2.0),
                         _case("transposed", (7, 5), (7,), (5,), transpose_a=True)))  # fmt: skip

_OTHERS = "torch.nn.functional.linear, whose weight is b with transpose_b=True"
_Z = "z = alpha a b + beta c + bias"
gemm_bias = _with_bias("gemm_bias", "Product of two matrices, plus a bias for each column.", "identity",
    "alpha a b + beta c + bias", f"{_OTHERS}.")  # fmt: skip
gemm_bias_relu = _with_bias("gemm_bias_relu", "Rectifier of a product of matrices plus a bias for each column.", "relu",
    f"max(z, 0), {_Z}", f"{_OTHERS}, and relu.")  # fmt: skip
gemm_bias_gelu = _with_bias("gemm_bias_gelu", "GELU, by erf, of a product of matrices plus a bias for each column.", "gelu",
    f"z Phi(z), {_Z}, Phi being the normal distribution function", f"{_OTHERS}, and gelu.")  # fmt: skip
gemm_bias_silu = _with_bias("gemm_bias_silu", "SiLU of a product of matrices plus a bias for each column.", "silu",
    f"z / (1 + exp(-z)), {_Z}", f"{_OTHERS}, and silu.")  # fmt: skip
