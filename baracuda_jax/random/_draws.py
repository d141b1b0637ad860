"""Numbers of a distribution, drawn by a key: the bits of `jax.random`."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks, keys
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation, Integers
from .._core.wide import wide
from ._arguments import all_of, broadcast, float_dtype, in_range, parameters, sizes

_DOC = """

    Formula:
        {formula}

    Args:
        key: PRNG key of threefry2x32 or philox, typed or raw.
{args}
        shape: static, of the result; by default the one to which the parameters broadcast.
{dtype}        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision} The same key gives the same numbers alone, under vmap and on shards.

    Source: {source}.
    """


def _document(dtype="        dtype: of the result, a float type; by default the parameters'.\n", **parts) -> Decorator:
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(dtype=dtype, **parts)
        return fun

    return decorate


@facade_api("xla")
@_document(
    formula="y = max(low, low + (high - low) u), with u uniform in [0, 1); dlow = sum of (1 - u) dy, dhigh = sum of u dy.",
    args="        low: number or array of floats, the smallest value.\n"
    "        high: number or array of floats, which is not reached.",
    returns="Array of floats.",
    precision="the bits of `jax.random.uniform`, which draws and scales in the result's dtype.",
    source="jax.random.uniform; torch.rand; numpy.random.Generator.uniform",
)
def random_uniform(
    key: ArrayLike,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    *,
    shape: int | Integers | None = None,
    dtype: DTypeLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Uniform random numbers."""
    op = "random_uniform"
    key, arrays, numbers, shape, dtype = _arguments(op, key, shape, dtype, low=low, high=high)
    return _uniform(key, arrays, numbers=numbers, shape=shape, dtype=dtype)


@facade_api("xla")
@_document(
    formula="y = mean + std z, with z of the standard normal distribution; dmean = sum of dy, dstd = sum of z dy.",
    args="        mean: number or array of floats.\n        std: number or array of floats, the standard deviation.",
    returns="Array of floats.",
    precision="with mean 0 and std 1 the bits of `jax.random.normal`, drawn in the result's dtype. Of float16 and bfloat16 "
    "the product and the sum are computed in float32 and rounded once. XLA may fuse them, which rounds once too.",
    source="jax.random.normal; torch.normal, torch.randn; numpy.random.Generator.normal",
)
def random_normal(
    key: ArrayLike,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    *,
    shape: int | Integers | None = None,
    dtype: DTypeLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Normal random numbers."""
    op = "random_normal"
    key, arrays, numbers, shape, dtype = _arguments(op, key, shape, dtype, mean=mean, std=std)
    in_range(op, [(name, value) for name, value in numbers if name == "std"], 0, float("inf"))
    return _normal(key, arrays, numbers=numbers, shape=shape, dtype=dtype)


@facade_api("xla")
@_document(
    formula="y = (u < p), with u uniform in [0, 1), of p's dtype.",
    args="        p: number or array of floats, the probability of True; what is at most 0 or NaN gives False.",
    dtype="",
    returns="Array of bool.",
    precision="the bits of `jax.random.bernoulli`. In float32 p is resolved to 2^-23.",
    source="jax.random.bernoulli; torch.bernoulli",
)
def random_bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    *,
    shape: int | Integers | None = None,
    implementation: Implementation = None,
) -> Array:
    """Random bools, each True with a probability."""
    op = "random_bernoulli"
    key, arrays, numbers, shape, _ = _arguments(op, key, shape, None, p=p)
    in_range(op, numbers, 0, 1)
    return _bernoulli(key, arrays, numbers=numbers, shape=shape)


def _arguments(op, key, shape, dtype, **values):
    key = keys.typed(op, "key", key)
    arrays, numbers = parameters(op, **values)
    dtype = float_dtype(op, dtype, arrays)
    shape = sizes(op, shape) if shape is not None and not arrays else broadcast(op, arrays, shape)
    return key, arrays, numbers, shape, dtype


@compiled("numbers", "shape", "dtype")
def _uniform(key, arrays, *, numbers, shape, dtype):
    low, high = (_as(v, shape, dtype) for v in _in_order(arrays, numbers, "low", "high"))
    return jax.random.uniform(key, shape, dtype, low, high)


@compiled("numbers", "shape", "dtype")
def _normal(key, arrays, *, numbers, shape, dtype):
    z = wide(jax.random.normal(key, shape, dtype))
    mean, std = (_as(v, shape, z.dtype) for v in _in_order(arrays, numbers, "mean", "std"))
    return (mean + std * z).astype(dtype)


@compiled("numbers", "shape")
def _bernoulli(key, arrays, *, numbers, shape):
    (p,) = _in_order(arrays, numbers, "p")
    return jax.random.bernoulli(key, p, shape)


def _in_order(arrays, numbers, *names):
    values = all_of(arrays, numbers)
    return [values[name] for name in names]


def _as(value, shape, dtype):
    """A number stays one; an array gets the shape."""
    return jnp.broadcast_to(value.astype(dtype), shape) if isinstance(value, jax.Array) else jnp.asarray(value, dtype)


def _case(name, draw, **kwargs):
    return Case(name, lambda rng: (keys.draw(rng), *draw(rng)), kwargs)


def _draw_facade(public, operands, cases, differentiable=(), constant=None):
    facade(
        public.__name__,
        family="random",
        category=OpCategory.RANDOM,
        public=public,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=("key", *operands),
        differentiable=differentiable,
        constant=keys.CONSTANT | (constant or {}),
    )


_draw_facade(
    random_uniform,
    ("low", "high"),
    (
        _case("an interval a row", lambda rng: (-rng.random((5, 1)), rng.random((5, 1))), shape=(5, 41)),
        _case("an interval an element", lambda rng: (-rng.random(33), rng.random(33))),
    ),
    differentiable=("low", "high"),
)
_draw_facade(
    random_normal,
    ("mean", "std"),
    (
        _case("a distribution a row", lambda rng: (rng.random((5, 1)), 0.5 + rng.random((5, 1))), shape=(5, 41)),
        _case("a distribution an element", lambda rng: (rng.random((3, 11)), rng.random((3, 11)))),
    ),
    differentiable=("mean", "std"),
)
_draw_facade(
    random_bernoulli,
    ("p",),
    (
        _case("a probability a row", lambda rng: (rng.random((5, 1)),), shape=(5, 41)),
        _case("a probability an element", lambda rng: (rng.random((3, 11)),)),
    ),
    constant={"p": "a step has no derivative"},
)
