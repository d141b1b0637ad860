"""What losses share: documentation and declaration, checks of arguments, and the reduction of terms."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from .._core import checks, explicit
from .._core.case import Case
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import F
from .._core.wide import wide_dtype

Reduction: TypeAlias = Literal["mean", "sum", "none"]
REDUCTIONS = ("mean", "sum", "none")
WITH_BATCHMEAN = ("mean", "batchmean", "sum", "none")
LABEL = "it is compared with numbers alone"
INDEX = "it is an index"

_ARGS = {
    "x": "floats of any shape.",
    "x1": "floats of any shape.",
    "x2": "array of x1's shape and dtype.",
    "target": "array of x's shape and dtype.",
    "weight": "floats that broadcast to x's shape, factors of the elements; None for 1.",
    "reduction": '"mean", "sum", or "none" for all terms.',
    "margin": "static number.",
    "ignore_index": "static integer, a class of rows that are ignored.",
    "label_smoothing": "static number in [0, 1], how much of each target is distributed evenly over all classes.",
    "softcap": "static number above 0, which no logit exceeds; None for no limit.",
    "implementation": '"xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.',
}
_DOC = """

    Formula:
        {formula}

    Args:
        {args}

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32, and the result is rounded once, after the reduction.{precision}
        Next to half precision, other operands may be float32.

    Source: {source}
    """
ELEMENTS = 'Array of the first operand\'s dtype: a number, or, with reduction "none", of its shape.'
ROWS = 'Array of the first operand\'s dtype: a number, or, with reduction "none", of its shape without `axis`.'


def loss(
    formula: str,
    source: str,
    cases: Sequence[Case],
    *,
    constant: Mapping[str, str] | None = None,
    returns: str = ELEMENTS,
    precision: str = "",
    own_rules: bool = False,
    args: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """A decorator: documents a public function, and puts it into the table of ops. Its positional arguments are the
    operands. `args` has the arguments that are not as in other losses."""

    def decorate(fun: F) -> F:
        describe(fun, formula, source, returns, precision, args)
        parameters = inspect.signature(fun).parameters
        operands = tuple(name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD)
        public = facade_api("xla")(fun)
        facade(
            fun.__name__,
            family="loss",
            category=OpCategory.LOSS,
            public=public,
            cases=cases,
            dtypes=checks.FLOATS,
            operands=operands,
            differentiable=tuple(name for name in operands if name not in (constant or {})),
            constant=constant,
            own_rules=own_rules,
        )
        return public

    return decorate


def describe(fun, formula, source, returns=ELEMENTS, precision="", args=None):
    """Adds the sections to the docstring of a public function."""
    known = _ARGS | dict(args or {})
    text = {
        "formula": formula,
        "args": "\n".join(f"{name}: {known[name]}" for name in inspect.signature(fun).parameters),
        "returns": returns,
        "precision": f" {precision}" if precision else "",
        "source": source,
    }
    fun.__doc__ = (fun.__doc__ or "") + _DOC.format(**{k: v.replace("\n", "\n        ") for k, v in text.items()})


# ---------------------------------------------------------------------------------------------------------------------
# Cases


def normal(rng, shape):
    return rng.standard_normal(shape)


def positive(rng, shape):
    return rng.uniform(0.2, 2, shape)


def inside(rng, shape):
    """Probabilities of two classes."""
    return rng.uniform(0.05, 0.95, shape)


def signs(rng, shape):
    return rng.choice([-1.0, 1.0], shape)


def cases(draws, *kwargs):
    """One for each reduction; `draws` are functions of a random generator and a shape."""
    few = zip(((5, 7), (33,), (3, 4, 5)), REDUCTIONS, (*kwargs, *({},) * 3), strict=False)
    of = lambda shape: lambda rng: tuple(draw(rng, shape) for draw in draws)
    return tuple(Case(reduction, of(shape), {"reduction": reduction} | more) for shape, reduction, more in few)


# ---------------------------------------------------------------------------------------------------------------------
# Checks


def number(op, name, value, smallest=-math.inf, above=-math.inf):
    """A static number of at least `smallest`, and larger than `above`."""
    if not checks.is_number(value):
        raise TypeError(f"{op}: {name} must be a static number, got {value!r}")
    if not value >= smallest:
        raise ValueError(f"{op}: {name} must be at least {smallest}, got {value!r}")
    if not value > above and above > -math.inf:
        raise ValueError(f"{op}: {name} must be greater than {above}, got {value!r}")
    return float(value)


def next_to(op, name, value, x, x_name="x", *, labels=False):
    """An array of x's dtype, or of the one that x is computed in, as Python numbers become; with `labels` also integers."""
    wider = wide_dtype(x.dtype)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return jnp.asarray(value, wider)
    value = checks.array(op, name, value)
    if labels and (value.dtype == bool or jnp.issubdtype(value.dtype, jnp.integer)):
        return value.astype(wider)
    if value.dtype not in (x.dtype, wider):
        either = x.dtype.name if wider == x.dtype else f"{x.dtype.name}, or {wider.name}"
        either += ", or integers" if labels else ""
        raise TypeError(f"{op}: {name} must have the dtype of {x_name}, {either}, got {value.dtype.name}")
    return value


def alike(op, name, value, x, x_name="x", **options):
    """The same, of x's shape."""
    value = next_to(op, name, value, x, x_name, **options)
    checks.shape(op, name, value, x.shape, f"that of {x_name}")
    return value


def broadcasting(op, name, value, x, x_name="x", **options):
    """The same, of a shape that broadcasts to x's, and of x's rank."""
    value = next_to(op, name, value, x, x_name, **options)
    sizes = (1,) * (x.ndim - value.ndim) + value.shape
    if len(sizes) > x.ndim or any(a not in (1, b) for a, b in zip(sizes, x.shape, strict=True)):
        raise ValueError(f"{op}: {name} must broadcast to the shape of {x_name}, {x.shape}, got {value.shape}")
    return jax.lax.expand_dims(value, range(x.ndim - value.ndim))


def axis_of(op, name, x, axis):
    """An axis, counted from the first."""
    if not x.ndim:
        raise ValueError(f"{op}: {name} must have at least one dimension, got a scalar")
    return checks.axis(op, name, x, axis)


def class_axis(op, x, axis):
    """That of the classes: by default 1, or 0 of a vector."""
    return axis_of(op, "x", x, min(1, x.ndim - 1) if axis is None else axis)


def class_weight(op, value, x, axis):
    """A factor for each class, of x's rank; None stays."""
    if value is None:
        return None
    value = next_to(op, "weight", value, x)
    checks.shape(op, "weight", value, (x.shape[axis],), f"a factor for each class along axis {axis} of x")
    return jax.lax.expand_dims(value, [i for i in range(x.ndim) if i != axis])


def class_index(op, target, x, axis, whose=None):
    """An index for each row, int32, or int64, whose range all its values have. Errors may say `whose` shape it must have."""
    target = checks.array(op, "target", target)
    checks.dtype(op, "target", target, checks.INTEGERS)
    without = x.shape[:axis] + x.shape[axis + 1 :]
    checks.shape(op, "target", target, without, whose or f"that of x without axis {axis}")
    return target.astype(jnp.int64 if target.dtype.itemsize == 8 else jnp.int32)


def reductions(op, reduction, allowed=REDUCTIONS):
    return checks.choice(op, "reduction", reduction, allowed)


# ---------------------------------------------------------------------------------------------------------------------
# What terms become. All of it runs within one program


def reduced(terms, reduction, dtype, count=None):
    """The result. `count` is what a mean divides by; by default the number of terms."""
    if reduction == "mean":
        terms = terms.mean() if count is None else terms.sum() / count
    elif reduction == "batchmean":
        terms = terms.sum() / (terms.shape[0] if terms.ndim else 1)
    elif reduction == "sum":
        terms = terms.sum()
    return terms.astype(dtype)


def reduced_rows(terms, reduction, dtype, weights):
    """The result of a term of each row. A mean divides by the sum of the rows' weights."""
    if reduction != "mean":
        return reduced(terms, reduction, dtype)
    # Without a barrier XLA on a GPU gathers the terms in the one block that adds up the weights.
    if explicit.is_sharded(terms) or explicit.is_sharded(weights):
        terms, weights = jax.lax.optimization_barrier((terms, weights))
        return reduced(terms, reduction, dtype, weights.sum())
    # As one array, whose sums are one kernel. By a choice: vmap gives terms and weights one sharding for that.
    is_term = jax.lax.broadcasted_iota(jnp.int32, (2, *(1,) * terms.ndim), 0) == 0
    both = jax.lax.optimization_barrier(jnp.where(is_term, terms[None], weights[None]))
    sums = both.sum(range(1, both.ndim))
    return (sums[0] / sums[1]).astype(dtype)


def hinge(h, *, slope_at_0=1):
    """The larger of h and 0. NaN propagates."""
    return jnp.where(h < 0 if slope_at_0 else h <= 0, jnp.zeros_like(h), h)
