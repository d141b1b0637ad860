"""Numbers of a distribution, drawn by a key: the bits of `jax.random`. Philox keys have kernels: `_philox_draws.py`."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks, keys
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.op import as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation, Integers
from .._core.wide import wide, wide_dtype
from . import _philox_draws
from ._arguments import all_of, broadcast, float_dtype, in_range, parameters, refuse_native, sizes
from ._bits import philox

_DOC = """

    Formula:
        {formula}

    Args:
        key: PRNG key of threefry2x32 or philox, typed or raw.
{args}
        shape: static, of the result; by default the one to which the parameters broadcast.
{dtype}        implementation: "native" (the kernel, of philox keys), "xla" (plain JAX), a PlanPreference, or None for
            automatic.

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


@facade_api("xla", has_kernels=True)
@_document(
    formula="y = max(low, low + (high - low) u), with u uniform in [0, 1); dlow = sum of (1 - u) dy, dhigh = sum of u dy.",
    args="        low: number or array of floats, the smallest value.\n"
    "        high: number or array of floats, which is not reached.",
    returns="Array of floats.",
    precision="the bits of `jax.random.uniform`, which draws and scales in the result's dtype. The kernel rounds a product "
    "and its sum once in float32 and float64, and each in 16-bit floats, as XLA does on a CPU.",
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
    if _has_kernel(op, key, implementation):
        operands = _operands(arrays, numbers=numbers, names=("low", "high"), shape=shape, dtype=dtype)
        return _uniform_op(
            jax.random.key_data(key), *operands, shape=shape, dtype=dtype.name, implementation=implementation
        )
    return _uniform(key, arrays, numbers=numbers, shape=shape, dtype=dtype)


@facade_api("xla", has_kernels=True)
@_document(
    formula="y = mean + std z, with z of the standard normal distribution; dmean = sum of dy, dstd = sum of z dy.",
    args="        mean: number or array of floats.\n        std: number or array of floats, the standard deviation.",
    returns="Array of floats.",
    precision="with mean 0 and std 1 the bits of `jax.random.normal`, drawn in the result's dtype. Of float16 and bfloat16 "
    "the product and the sum are computed in float32 and rounded once. XLA may fuse them, which rounds once too. The kernel "
    "computes XLA's polynomials of a more exact logarithm: on a CPU its numbers differ from plain JAX's by up to 4 units in "
    "the last place in float32, of one in a hundred, by up to 40 in float64, and not in 16 bits.",
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
    if _has_kernel(op, key, implementation):
        operands = _operands(arrays, numbers=numbers, names=("mean", "std"), shape=shape, dtype=wide_dtype(dtype))
        return _normal_op(
            jax.random.key_data(key), *operands, shape=shape, dtype=dtype.name, implementation=implementation
        )
    return _normal(key, arrays, numbers=numbers, shape=shape, dtype=dtype)


@facade_api("xla", has_kernels=True)
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
    key, arrays, numbers, shape, dtype = _arguments(op, key, shape, None, p=p)
    in_range(op, numbers, 0, 1)
    if _has_kernel(op, key, implementation):
        operands = _operands(arrays, numbers=numbers, names=("p",), shape=shape, dtype=dtype)
        return _bernoulli_op(jax.random.key_data(key), *operands, shape=shape, implementation=implementation)
    return _bernoulli(key, arrays, numbers=numbers, shape=shape)


def _arguments(op, key, shape, dtype, **values):
    key = keys.typed(op, "key", key)
    arrays, numbers = parameters(op, **values)
    dtype = float_dtype(op, dtype, arrays)
    shape = sizes(op, shape) if shape is not None and not arrays else broadcast(op, arrays, shape)
    return key, arrays, numbers, shape, dtype


def _has_kernel(op, key, implementation):
    if keys.is_of(key, philox):
        return True
    refuse_native(op, implementation, "philox keys")
    return False


@compiled("numbers", "names", "shape", "dtype")
def _operands(arrays, *, numbers, names, shape, dtype):
    """Of the op of philox keys: what is one number has no dimensions."""
    values = _in_order(arrays, numbers, *names)
    return [jnp.asarray(v, dtype).reshape(()) if jnp.size(v) == 1 else _as(v, shape, dtype) for v in values]


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


# ---------------------------------------------------------------------------------------------------------------------
# Of philox keys


def _case(name, draw, **kwargs):
    return Case(name, lambda rng: (keys.draw(rng, 4), *draw(rng)), kwargs)


def _declared(public, parameters, cases, bodies, kernel, *, differentiable=(), constant=None, **more):
    return declare(
        public.__name__,
        family="random",
        category=OpCategory.RANDOM,
        public=public,
        cases=cases,
        dtypes=checks.FLOATS,
        operands=("key", *parameters),
        differentiable=differentiable,
        residuals=("key", *differentiable) if differentiable else (),
        constant=keys.CONSTANT | (constant or {}),
        kernels={"forward": (kernel,)},
        library="xla",
        batched=as_they_are,
        cut="each device computes its rows",
        fused=True,
        **bodies,
        **more,
    )


_uniform_op = _declared(
    random_uniform,
    ("low", "high"),
    (
        _case("an interval", lambda rng: (-rng.random(1), rng.random(1)), shape=(5, 41)),
        _case("an interval a row", lambda rng: (-rng.random((5, 1)), rng.random((5, 1))), shape=(5, 41)),
        _case("an interval an element", lambda rng: (-rng.random(33), rng.random(33))),
    ),
    _philox_draws.UNIFORM,
    "philox_uniform",
    differentiable=("low", "high"),
)
_normal_op = _declared(
    random_normal,
    ("mean", "std"),
    (
        _case("a distribution", lambda rng: (rng.random(1), 0.5 + rng.random(1)), shape=(5, 41)),
        _case("a distribution a row", lambda rng: (rng.random((5, 1)), 0.5 + rng.random((5, 1))), shape=(5, 41)),
        _case("a distribution an element", lambda rng: (rng.random((3, 11)), rng.random((3, 11)))),
    ),
    _philox_draws.NORMAL,
    "philox_normal",
    differentiable=("mean", "std"),
)
_bernoulli_op = _declared(
    random_bernoulli,
    ("p",),
    (
        _case("a probability", lambda rng: (rng.random(1),), shape=(5, 41)),
        _case("long rows", lambda rng: (rng.random(1),), shape=(3, 1031)),
    ),
    _philox_draws.BERNOULLI,
    "philox_bernoulli",
    constant={"p": "a step has no derivative"},
    sometimes=("philox_uniform",),
)
