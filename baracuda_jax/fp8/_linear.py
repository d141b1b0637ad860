"""A linear layer whose products have operands of 8 bits, in both passes.

The gradient of the result is known in the backward pass alone, and so is its largest magnitude. So the backward pass
returns the new state as the cotangent of the old one."""

import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.float8 import bits, of_bits, product
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _arguments
from ._cast import cast
from ._recipe import update
from ._state import Fp8Scale, Fp8State

FORWARD, BACKWARD = "float8_e4m3fn", "float8_e5m2"


@facade_api("cublaslt")
def fp8_linear(
    x: ArrayLike,
    kernel: ArrayLike,
    state: Fp8State,
    bias: ArrayLike | None = None,
    *,
    margin: float = 0,
    amax_compute_algo: Literal["max", "most_recent"] = "max",
    implementation: Implementation = None,
) -> Array:
    """Linear layer in 8-bit floats, with delayed scaling.

    Formula:
        y = (q(x) q(kernel)) / (scale of x * scale of kernel) + bias, q being `fp8_cast` to float8_e4m3fn
        dx = (r(dy) q(kernel)^T) / (scale of dy * scale of kernel), r being `fp8_cast` to float8_e5m2
        dkernel = (q(x)^T r(dy)) / (scale of x * scale of dy), dbias = sum of dy over all rows
        The gradient of the state is the new state: each history with [0] = the largest magnitude of this step, after
        `fp8_recipe_update`.

    Args:
        x: float32, float16 or bfloat16 [..., K].
        kernel: floats of these dtypes [K, N].
        state: an fp8.Fp8State; `fp8_state()` gives that before the first step. Each call has its own.
        bias: floats of these dtypes [N]; None for 0.
        margin: static number, the bits that are left free above the largest magnitude.
        amax_compute_algo: "max" or "most_recent", as for `fp8_recipe_update`.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [..., N] of x's dtype. It has gradients of first order in reverse mode alone: jax.grad and jax.vjp, not
        jax.jvp.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: products of 8 bits are accumulated in float32, scaled after that, and rounded once.

    Source: Transformer Engine's Linear; flax.linen.fp8_ops.
    """
    op = "fp8_linear"
    x, kernel = _arguments.floats(op, "x", x), _arguments.floats(op, "kernel", kernel)
    if x.ndim < 1:
        raise ValueError(f"{op}: x must have at least one dimension, got a scalar")
    if kernel.ndim != 2 or kernel.shape[0] != x.shape[-1]:
        raise ValueError(
            f"{op}: kernel must have shape ({x.shape[-1]}, N) for x of shape {x.shape}, got {kernel.shape}"
        )
    if bias is not None:
        bias = _arguments.floats(op, "bias", bias)
        checks.shape(op, "bias", bias, kernel.shape[1:], "one for each column of kernel")
    margin, algorithm = _arguments.recipe(op, margin, amax_compute_algo)
    return _linear(x, kernel, bias, _state(op, state), margin, algorithm)


def _state(op, state):
    if not isinstance(state, Fp8State) or not all(isinstance(of, Fp8Scale) for of in state):
        raise TypeError(f"{op}: state must be an fp8.Fp8State, got {type(state).__name__}")

    def checked(name, of):
        history = _arguments.history(op, f"state.{name}.history", of.history)
        checks.shape(op, f"state.{name}.history", history, history.shape[-1:], "the steps")
        return Fp8Scale(_arguments.float32(op, f"state.{name}.scale", of.scale, (), "one scale"), history)

    return Fp8State(*(checked(name, of) for name, of in state._asdict().items()))


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _linear(x, kernel, bias, state, margin, algorithm):
    return _forward(x, kernel, bias, state)[0]


@compiled()
def _forward(x, kernel, bias, state):
    (qx, of_x), (qk, of_kernel) = cast(x, state.x.scale, dtype=FORWARD), cast(kernel, state.kernel.scale, dtype=FORWARD)
    y = _product(qx, qk, ((x.ndim - 1,), (0,)), state.x, state.kernel)
    y = y if bias is None else y + jnp.expand_dims(bias.astype(y.dtype), range(y.ndim - 1))
    return y.astype(x.dtype), (bits(qx), bits(qk), of_x, of_kernel)


@compiled("margin", "algorithm", "dtypes")
def _backward(kept, state, dy, *, margin, algorithm, dtypes):
    qx, qk, of_x, of_kernel = kept
    qx, qk = of_bits(qx, FORWARD), of_bits(qk, FORWARD)
    qd, of_gradient = cast(dy, state.gradient.scale, dtype=BACKWARD)
    rows = tuple(range(dy.ndim - 1))
    dx = _product(qd, qk, ((dy.ndim - 1,), (1,)), state.gradient, state.kernel)
    dkernel = _product(qx, qd, (rows, rows), state.x, state.gradient)
    of_bias = dtypes[2] and jnp.sum(dy.astype(jnp.float32), rows).astype(dtypes[2])

    def after(of, amax, dtype):
        history = of.history.at[0].set(amax)
        return Fp8Scale(*update(history, of.scale, dtype=dtype, margin=margin, algorithm=algorithm)[::-1])

    new = Fp8State(
        after(state.x, of_x, FORWARD), after(state.kernel, of_kernel, FORWARD), after(state.gradient, of_gradient, BACKWARD)
    )  # fmt: skip
    return dx.astype(dtypes[0]), dkernel.astype(dtypes[1]), of_bias, new


def _product(a, b, contracted, *of):
    """Divided by one scale after the other: their product may overflow."""
    y = product(a, b, (contracted, ((), ())), out_sharding=_summed(a, b, contracted))
    return y / of[0].scale / of[1].scale


def _summed(a, b, contracted):
    """How the product is sharded where explicit axes of a mesh shard what is summed over, which JAX asks for; else None."""
    specs = [jax.typeof(x).sharding.spec for x in (a, b)]
    if all(spec[i] is None for spec, axes in zip(specs, contracted, strict=True) for i in axes):
        return None
    kept = [e for spec, axes in zip(specs, contracted, strict=True) for i, e in enumerate(spec) if i not in axes]
    return jax.typeof(a).sharding.update(spec=jax.sharding.PartitionSpec(*kept))


class _Dtypes(tuple):
    """Dtypes among residuals, which are pytrees: one without leaves."""


jax.tree_util.register_static(_Dtypes)


def _saved(x, kernel, bias, state, margin, algorithm):
    y, kept = _forward(x, kernel, bias, state)
    return y, (kept, state, _Dtypes(None if a is None else a.dtype.name for a in (x, kernel, bias)))


def _cotangents(margin, algorithm, residuals, dy):
    kept, state, dtypes = residuals
    return _backward(kept, state, dy, margin=margin, algorithm=algorithm, dtypes=tuple(dtypes))


_linear.defvjp(_saved, _cotangents)


def _case(name, shape, columns, bias, **kwargs):
    def draw(rng):
        of = lambda: Fp8Scale(np.float32(4 + rng.random()), np.float32(rng.random(3)))
        arrays = rng.standard_normal(shape), rng.standard_normal((shape[-1], columns)) / math.sqrt(shape[-1])
        return *arrays, Fp8State(of(), of(), of()), *([rng.standard_normal(columns)] if bias else [])

    return Case(name, draw, kwargs)


facade(
    "fp8_linear",
    family="fp8",
    category=OpCategory.GEMM,
    public=fp8_linear,
    cases=(
        _case("a bias", (5, 16), 3, True),
        _case("several dimensions", (2, 3, 16), 5, False, margin=1),
        _case("a vector", (16,), 4, True, amax_compute_algo="most_recent"),
    ),
    dtypes=_arguments.FLOATS,
    operands=("x", "kernel", "state", "bias"),
    constant=dict.fromkeys(
        ("x", "kernel", "bias"), "its gradients, in reverse mode alone, are computed in 8 bits and are no derivatives"
    )
    | {"state": "its gradient is the new state"},
)
