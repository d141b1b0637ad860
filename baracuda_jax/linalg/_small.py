"""Ops that have kernels for small matrices: which these are, and what their declarations share.

Their derivatives are a tangent in plain JAX and its transpose, for which some have kernels."""

import jax
import jax.numpy as jnp

from .._core import checks
from .._core import prefer as preference
from .._core.body import Body
from .._core.op import as_they_are, declare
from .._core.regime import by_matrices
from .._core.sku import OpCategory

LARGEST = 64
_FEWER = {}  # op: how many rows and columns, where they are fewer than LARGEST
CUT = "a matrix is computed as a whole"


def largest(op):
    """How many rows and columns the matrices of an op's kernels, and of its gradient's, have at most."""
    return _FEWER.get(op.removesuffix("_backward"), LARGEST)


def is_small(op, implementation, x, *others):
    """Whether there is a kernel for these matrices: real ones, of few rows and columns. Others may be vectors. A call that
    asks for one where there is none is refused."""
    is_real, most = jnp.issubdtype(x.dtype, jnp.floating), largest(op)
    if is_real and all(isinstance(n, int) and n <= most for y in (x, *others) for n in y.shape[-2:]):
        return True
    if preference.demands_native(op, implementation):
        got = " and ".join(f"{y.dtype.name}{list(y.shape)}" for y in (x, *others))
        raise ValueError(
            f"{op}: implementation='native', but there are kernels for real matrices of at most {most} x {most} "
            f"alone, got {got}; cusolver computes those"
        )
    return False


def transposed(tangent, residuals, like):
    """The backward body of a tangent that is linear in dx, which has the type of the residual `like`."""

    def backward(*values, **params):
        saved, cotangents = values[: len(residuals)], values[len(residuals) :]
        used = [i for i, ct in enumerate(cotangents) if ct is not None]

        def of(dx):
            dots = tangent(*saved, dx, **params)
            return tuple(dots[i] for i in used)

        return jax.linear_transpose(of, saved[residuals.index(like)])(tuple(cotangents[i] for i in used))

    return backward


def of_small_matrices(
    name,
    public,
    cases,
    *,
    forward,
    tangent,
    residuals,
    like=None,
    backward=None,
    operands=("x",),
    kernels=None,
    largest=LARGEST,
    **more,
):
    """An op that has kernels, for matrices of at most `largest` rows and columns. `forward`, `tangent` and `backward` are a
    reference and a native body, or a reference alone. For an op of x, of whose type the residual `like` is, `backward` may
    be a native body alone, or left out."""
    if largest < LARGEST:
        _FEWER[name] = largest
    kernels = kernels or {"forward": (name,)}
    if like is not None:
        backward = (transposed(tangent[0], residuals, like), *((backward,) if backward else ()))
    if len(backward) > 1 and "backward" not in kernels:
        kernels = {**kernels, "backward": (f"{name}_backward",)}
    return declare(
        name,
        family="linalg",
        category=OpCategory.LINALG,
        public=public,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=operands,
        differentiable=operands,
        residuals=residuals,
        forward=Body(*forward),
        tangent=Body(*tangent),
        backward=Body(*backward),
        kernels=kernels,
        library="cusolver",
        batched=as_they_are,
        cut=CUT,
        regime=by_matrices,
        **more,
    )
