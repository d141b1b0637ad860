"""What samplers share: their documentation, their checks, and the call of a primitive."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, explicit, keys
from .._core.compiled import compiled
from .._core.types import Decorator
from . import _mass
from ._arguments import all_of, in_range, parameters

_LOG2_E = math.log2(math.e)
_LARGEST = float(np.finfo(np.float32).max)
_DOC = """

    Formula:
        With the tokens in the order of their probability, descending, and of equal ones in the order of their index:
        {formula}
        One of the tokens kept is drawn, by their probabilities softmax(logits / temperature), or by the given ones.

    Args:
        logits: floats [..., V], of at most 2^26 tokens; -inf for a token that must not be drawn. With `probabilities`,
            probabilities, which need not add up to 1; negative ones count as 0.
        key: PRNG key, typed or raw: row i draws by `jax.random.fold_in(key, i)`. Or a key for each
            row, by which this row draws.
{args}
        temperature: of logits; 0 gives the most probable token. A number, or an array of floats of the leading dimensions of
            logits, or of shape ().
        probabilities: static, whether these are given instead of logits.
        return_logprobs: static, whether to return the logarithm of the probability with which the token was drawn, among
            the tokens kept. It has no gradient.
        return_valid: static, whether to return a flag: False for a row that has NaN or no probability at all.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        int32 [...], or a tuple of it, the logprobs, float32 [...], and the flags, bool [...], as asked for. The token of a
        row that is not valid is 0, and its logprob NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float64 is rounded to float32. A probability is an integer in units of 2^-36 of the largest, and relative to
        that within 2^-22 (1 + |log p|): what is below is never drawn. These are added without rounding. So the kernel and
        plain JAX draw the same token, alone, in a batch, under vmap and on shards.

    Source: {source}.
    """


def document(formula, args, source) -> Decorator:
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(formula=formula, args=args, source=source)
        return fun

    return decorate


def sample(
    op, of, logits, key, temperature, probabilities, return_logprobs, return_valid, implementation, *,
    k=None, p=None, min_p=None, joint=False,
):  # fmt: skip
    """The call of the primitive `of`."""
    logits = checks.floats(op, "logits", logits)
    if logits.ndim < 1 or not logits.shape[-1]:
        raise ValueError(f"{op}: logits must have at least one token a row, got shape {tuple(logits.shape)}")
    if isinstance(logits.shape[-1], int) and logits.shape[-1] > _mass.MOST_TOKENS:
        raise ValueError(f"{op}: logits may have at most {_mass.MOST_TOKENS} tokens a row, got {logits.shape[-1]}")
    rows = logits.shape[:-1]
    key = keys.of_rows(op, "key", key, rows)
    probabilities = checks.flag(op, "probabilities", probabilities)
    flags = {"return_logprobs": return_logprobs, "return_valid": return_valid, "joint": joint}
    flags = {name: checks.flag(op, name, value) for name, value in flags.items()}
    if probabilities and not (checks.is_number(temperature) and temperature == 1):
        raise ValueError(f"{op}: temperature must be 1 with probabilities, got {temperature}")
    given = {"p": p, "min_p": min_p, "temperature": temperature}
    arrays, numbers = parameters(op, **{name: value for name, value in given.items() if value is not None})
    in_range(op, [(name, value) for name, value in numbers if name != "temperature"], 0, 1)
    in_range(op, [(name, value) for name, value in numbers if name == "temperature"], 0, math.inf)
    if k is not None:
        if isinstance(k, jax.Array | np.ndarray):
            arrays["k"] = checks.array(op, "k", k)
            checks.dtype(op, "k", arrays["k"], checks.INTEGERS)
        else:
            numbers = (*numbers, ("k", min(checks.integer(op, "k", k, -(2**63)), _mass.MOST_TOKENS)))
    for name, value in arrays.items():
        if value.ndim:
            checks.shape(op, name, value, rows, "that of the leading dimensions of logits")
    operands = _operands(logits, key, arrays, numbers=numbers, probabilities=probabilities)
    save = flags["return_logprobs"]
    found = of(
        *operands,
        probabilities=probabilities,
        joint=flags["joint"],
        digit=None,
        implementation=implementation,
        save=save,
    )
    return _results(found if save else (found,), valid=flags["return_valid"])


@compiled("numbers", "probabilities")
def _operands(logits, key, arrays, *, numbers, probabilities):
    """Those of the primitive."""
    values = {"k": 0, "p": 1.0, "min_p": 0.0} | all_of(arrays, numbers)
    number = lambda name: jnp.asarray(values[name], jnp.float32)
    min_p = number("min_p")
    min_p = jnp.where(min_p > 0, jnp.minimum(min_p, 1), 0)
    smallest = min_p if probabilities else _logarithm(values["min_p"], min_p)
    temperature = number("temperature")
    warm = temperature > 0
    scale = jnp.where(warm, jnp.minimum(jnp.float32(_LOG2_E) / jnp.where(warm, temperature, 1), _LARGEST), 1)
    k = jnp.where(warm, _count(values["k"]), 1)
    bits = explicit.mapped(lambda key: jax.random.bits(key, (2,), jnp.uint32), key.ndim)(key)
    logits = logits.astype(jnp.float32) if logits.dtype == jnp.float64 else logits
    return logits, bits, k, number("p"), smallest, scale


def _logarithm(given, min_p):
    """log2; that of a number as NumPy rounds it."""
    if isinstance(given, jax.Array):
        return jnp.where(min_p > 0, jnp.log2(min_p), -jnp.inf)
    return jnp.float32(math.log2(given) if given > 0 else -math.inf)


def _count(k):
    """As int32, none below 0."""
    if not isinstance(k, jax.Array):
        return jnp.int32(max(k, 0))
    if k.dtype.itemsize < 4:
        k = k.astype(jnp.int32)
    return jnp.clip(k, 0, _mass.MOST_TOKENS).astype(jnp.int32)


@compiled("valid")
def _results(found, *, valid):
    tokens, *logprobs = found
    results = (jnp.maximum(tokens, 0), *logprobs, *([tokens >= 0] if valid else []))
    return results if len(results) > 1 else results[0]
