"""Delayed scaling: the scale of the next step, from the largest magnitudes of steps before."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _arguments


@facade_api("xla")
def fp8_recipe_update(
    history: ArrayLike,
    scale: ArrayLike,
    *,
    dtype: DTypeLike = "float8_e4m3fn",
    margin: float = 0,
    amax_compute_algo: Literal["max", "most_recent"] = "max",
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Scale of the next step by delayed scaling, and the history rolled for it.

    Formula:
        amax = max(history), or history[0] for "most_recent"
        scale = largest finite value of the dtype / amax / 2^margin, where amax is finite and above 0; else as it was
        history[i] = history[i + 1], the last = the old history[0], and then history[0] = 0

    Args:
        history: float32 [..., steps], the largest magnitudes of steps, for each array; [0] is that of the current step.
        scale: float32 [...], the scale of each array.
        dtype: that which the arrays are cast to, "float8_e4m3fn" or "float8_e5m2".
        margin: static number, the bits that are left free above amax.
        amax_compute_algo: "max" or "most_recent".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (history, scale): the new ones. A scale is finite: at most the largest float32. Neither is differentiable.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32.

    Source: Transformer Engine's DelayedScaling; Micikevicius et al., FP8 formats for deep learning (2022).
    """
    op = "fp8_recipe_update"
    history = _arguments.history(op, "history", history)
    scale = _arguments.float32(op, "scale", scale, history.shape[:-1], "one for each history")
    dtype = _arguments.dtype_name(op, dtype, _arguments.FLOAT8)
    margin, algorithm = _arguments.recipe(op, margin, amax_compute_algo)
    return update(history, scale, dtype=dtype, margin=margin, algorithm=algorithm)


@compiled("dtype", "margin", "algorithm")
def update(history, scale, *, dtype, margin, algorithm):
    history, scale = jax.lax.stop_gradient((history, scale))
    amax = jnp.max(history, -1) if algorithm == "max" else history[..., 0]
    found = jnp.minimum(float(jnp.finfo(dtype).max) / amax / 2.0**margin, float(jnp.finfo(jnp.float32).max))
    scale = jnp.where(jnp.isfinite(amax) & (amax > 0), found, scale)
    return jnp.roll(history, -1, -1).at[..., 0].set(0), scale


def _case(name, shape, **kwargs):
    draw = lambda rng: (np.abs(rng.standard_normal(shape)), 0.5 + rng.random(shape[:-1]))
    return Case(name, lambda rng: tuple(np.asarray(a, np.float32) for a in draw(rng)), kwargs)


facade(
    "fp8_recipe_update",
    family="fp8",
    category=OpCategory.QUANTIZATION,
    public=fp8_recipe_update,
    cases=(
        _case("one array", (5,)),
        _case("several arrays", (3, 4), dtype="float8_e5m2", margin=1),
        _case("the current step alone", (2, 3), amax_compute_algo="most_recent"),
    ),
    dtypes=("float32",),
    operands=("history", "scale"),
    constant=dict.fromkeys(("history", "scale"), "scales are statistics, which training takes as given"),
    outputs=("history", "scale"),
)
