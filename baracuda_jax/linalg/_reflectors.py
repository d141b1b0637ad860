"""Products of Householder reflections with matrices: in plain JAX in blocks I - V T V^H, of which the derivatives are."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case
from ._matrices import adjoint, identity, matmul, matrices, rounded, same_batch, scaled_identity, triangular
from ._small import is_small, of_small_matrices

BLOCK = 32


@facade_api("cusolver", has_kernels=True)
def householder_product(x: ArrayLike, tau: ArrayLike, *, implementation: Implementation = None) -> Array:
    """First columns of a product of Householder reflections: the matrix Q of what `geqrf` returns.

    Formula:
        y = the first n columns of H_1 ... H_k, H_i = I - tau_i v_i v_i^H, where v_i is column i of x below the diagonal,
        with 1 on it and 0 above. A block of reflections is I - V T V^H with T = (I + D U)^-1 D, D = diag(tau), and
        U = V^H V above the diagonal. The gradients are those of this formula.

    Args:
        x: floats or complex numbers of shape (..., m, n) with m >= n.
        tau: array of x's dtype, of shape (..., k) with k <= n.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. On GPUs products of float32 are not rounded
    to TF32.

    Source: torch.linalg.householder_product, torch.orgqr; jax.lax.linalg.householder_product, which has no derivative.
    """
    op = "householder_product"
    x, tau = _reflections(op, x, tau)
    if x.shape[-2] < x.shape[-1]:
        raise ValueError(f"{op}: x must have at least as many rows as columns, got shape {x.shape}")
    if not is_small(op, implementation, x):
        return _householder_product(x, tau)
    return rounded(x.dtype, product_by_op(wide(x), wide(tau), x.shape[-1], implementation))


batched_qr_materialize = householder_product


@facade_api("cusolver", has_kernels=True)
def ormqr(
    x: ArrayLike,
    tau: ArrayLike,
    c: ArrayLike,
    *,
    left: bool = True,
    transpose: bool = False,
    block: int = BLOCK,
    implementation: Implementation = None,
) -> Array:
    """Product of a matrix with the Q of what `geqrf` returns, without Q itself.

    Formula:
        y = Q c, or c Q, or with Q^H instead of Q; Q = H_1 ... H_k, in blocks I - V T V^H as for `householder_product`.

    Args:
        x: floats or complex numbers of shape (..., m, n), whose first columns have the Householder vectors.
        tau: array of x's dtype, of shape (..., k) with k <= min(m, n).
        c: array of x's dtype, of shape (..., m, p), or (..., p, m) where Q is on the right.
        left: static, whether Q is on the left.
        transpose: static, whether to multiply by Q^H.
        block: static, so many reflections are applied at a time; the kernel applies one by one.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of c's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. On GPUs products of float32 are not rounded
    to TF32.

    Source: torch.ormqr; jax.lax.linalg.ormqr, which has no derivative.
    """
    op = "ormqr"
    x, tau = _reflections(op, x, tau)
    c = matrices(op, "c", c)
    checks.same_dtype(op, "c", c, "x", x)
    left, transpose = checks.flag(op, "left", left), checks.flag(op, "transpose", transpose)
    if c.ndim != x.ndim:
        raise ValueError(f"{op}: c must have the batch dimensions of x, {x.shape[:-2]}, got shape {c.shape}")
    same_batch(op, "c", c, x.shape[:-2], "x")
    if c.shape[-2 if left else -1] != x.shape[-2]:
        side = "rows" if left else "columns"
        raise ValueError(f"{op}: c must have {x.shape[-2]} {side}, as x has rows, got shape {c.shape}")
    block = checks.integer(op, "block", block, 1)
    if not is_small(op, implementation, x, c):
        return _ormqr(x, tau, c, left=left, transpose=transpose, block=block)
    y = _turned(c, left)
    y = _op(
        wide(x),
        wide(tau),
        y,
        transpose=transpose if left else not transpose,
        block=block,
        implementation=implementation,
    )
    return rounded(c.dtype, _turned(y, left))


batched_ormqr = batched_ormqr_wy = ormqr


def _reflections(op, x, tau):
    x, tau = matrices(op, "x", x), checks.array(op, "tau", tau)
    checks.same_dtype(op, "tau", tau, "x", x)
    if tau.ndim != x.ndim - 1:
        raise ValueError(f"{op}: tau must have shape (..., k) for x of shape {x.shape}, got shape {tau.shape}")
    same_batch(op, "tau", tau, x.shape[:-2], "x")
    if tau.shape[-1] > min(x.shape[-2:]):
        raise ValueError(f"{op}: tau must have at most {min(x.shape[-2:])} elements a matrix, got shape {tau.shape}")
    return x, tau


@compiled()
def _householder_product(x, tau):
    return rounded(x.dtype, product(wide(x), wide(tau), x.shape[-1]))


@compiled("left", "transpose", "block")
def _ormqr(x, tau, c, *, left, transpose, block):
    x, tau, y = wide(x), wide(tau), wide(c)
    y = applied(x, tau, y if left else adjoint(y), transpose if left else not transpose, block)
    return rounded(c.dtype, y if left else adjoint(y))


@compiled("left")
def _turned(c, left):
    """c Q is the adjoint of Q^H c^H."""
    return wide(c if left else adjoint(c))


@compiled("columns")
def _first_columns(packed, *, columns):
    return identity(packed.shape[-2], columns, packed)


def product_by_op(packed, tau, columns, implementation):
    """The first columns of Q, by the op."""
    first = _first_columns(packed, columns=columns)
    return _op(packed, tau, first, transpose=False, block=BLOCK, implementation=implementation)


def product(packed, tau, columns):
    """The first columns of Q."""
    return applied(packed, tau, identity(packed.shape[-2], columns, packed))


def applied(packed, tau, c, is_adjoint=False, block=BLOCK):
    """Q c, or Q^H c: the last block of Q is the first that meets c."""
    starts = range(0, tau.shape[-1], block)
    for start in starts if is_adjoint else reversed(starts):
        v, t = _block(packed, tau, start, min(start + block, tau.shape[-1]))
        c = c - matmul(v, matmul(adjoint(t) if is_adjoint else t, matmul(adjoint(v), c)))
    return c


def _block(packed, tau, start, end):
    part, d = packed[..., start:end], scaled_identity(tau[..., start:end])
    ones = jnp.broadcast_to(jnp.eye(packed.shape[-2], end - start, -start, dtype=packed.dtype), part.shape)
    v = jnp.tril(part, -1 - start) + ones
    u = jnp.triu(matmul(adjoint(v), v), 1)
    return v, triangular(matmul(d, u), d, unit=True)


def _draw(rng, *shape):
    return 0.6 * rng.standard_normal(shape)


def _reference(x, tau, c, *, transpose, block):
    return (applied(x, tau, c, transpose, block),)


def _native(x, tau, c, *, transpose, block, save):
    y = jax.ShapeDtypeStruct(c.shape, c.dtype)
    return kernel("ormqr", "...mn, ...k, ...mp -> ...mp", x, tau, c, out=[y], transpose=transpose)


def _tangent(x, tau, c, dx, dtau, dc, **how):
    return jax.jvp(lambda *args: _reference(*args, **how), (x, tau, c), (dx, dtau, dc))[1]


def _backward(x, tau, c, dy, **how):
    return jax.vjp(lambda *args: _reference(*args, **how), x, tau, c)[1]((dy,))


_op = of_small_matrices(
    "ormqr",
    ormqr,
    (
        case("left", (2, 4, 3), (2, 3), (2, 4, 2), draw=_draw),
        case("right", (2, 4, 3), (2, 3), (2, 2, 4), draw=_draw, left=False, block=2),
        case("left, transposed", (2, 4, 3), (2, 3), (2, 4, 2), draw=_draw, transpose=True, block=2),
        case("right, transposed", (2, 3, 4), (2, 2), (2, 2, 3), draw=_draw, left=False, transpose=True),
        case("of a team", (2, 6, 6), (2, 4), (2, 6, 5), draw=_draw),
    ),
    forward=(_reference, _native),
    tangent=(_tangent,),
    backward=(_backward,),
    operands=("x", "tau", "c"),
    residuals=("x", "tau", "c"),
)
compose(
    "householder_product",
    family="linalg",
    category=OpCategory.LINALG,
    public=householder_product,
    cases=(
        case("tall", (2, 4, 3), (2, 3), draw=_draw),
        case("square", (2, 3, 3), (2, 3), draw=_draw),
        case("few reflections", (2, 4, 3), (2, 2), draw=_draw),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "tau"),
    made_of=("ormqr",),
    differentiable=("x", "tau"),
)
