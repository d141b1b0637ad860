"""The primitives of samplers: a token of each row, drawn among the most probable ones.

Operands are x [..., V], logits or probabilities; 64 random bits, uint32 [..., 2]; how many tokens are kept, int32, 0 for
all; the fraction of the mass that is kept, from 1 on all; the smallest ratio of a probability to the largest, of logits its
log2; and log2(e) / temperature: float32. These may have fewer of x's leading dimensions.

Where the vocabulary is sharded, shards call the primitive with a `digit`, for a step of their search: `_vocabulary.py`. Then
the second operand has two keys for each row."""

import jax
import jax.numpy as jnp
from jax import lax

from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory
from . import _mass, _vocabulary

OPERANDS = ("logits", "bits", "k", "p", "smallest", "scale")
CONSTANT = "tokens have no derivative"


def _reference(x, *others, probabilities, joint, digit):
    """Tokens are sorted. What is kept is so many of the first, of which the draw takes the first that it reaches."""
    if digit is not None:
        keys, _, _, smallest, scale = others
        return (_vocabulary.digits(x, keys, smallest, scale, probabilities=probabilities, digit=digit),)
    rows = x.shape[:-1]
    bits = others[0].reshape(*others[0].shape[:-1], *(1,) * (x.ndim - others[0].ndim), 2)
    bits = jnp.broadcast_to(bits, (*rows, 2))
    k, p, smallest, scale = (
        jnp.broadcast_to(a.reshape(*a.shape, *(1,) * (len(rows) - a.ndim)), rows)[..., None] for a in others[1:]
    )
    x = x.astype(jnp.float32)
    keys, tokens = lax.sort((_mass.descending(x), lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)), num_keys=2)
    ordered = _mass.number(keys)
    largest = ordered[..., :1]
    mass, log = _vocabulary.of(probabilities)(ordered, largest, scale, smallest)
    sums = _mass.sums(mass)

    def at(index, *arrays):
        index = jnp.minimum(index, x.shape[-1] - 1)
        return tuple(jnp.take_along_axis(a, index, -1, mode="promise_in_bounds") for a in arrays)

    reaching = lambda mass: _mass.is_less(sums, mass).sum(-1, keepdims=True, dtype=jnp.int32)
    kept = total = tuple(a[..., -1:] for a in sums)
    some = (k > 0) & (k < x.shape[-1])
    kept = tuple(jnp.where(some, a, b) for a, b in zip(at(jnp.where(some, k - 1, 0), *sums), kept, strict=True))
    fraction = jnp.where(p > 0, jnp.minimum(p, 1 - 2.0**-24) * 2.0**32, 0).astype(jnp.uint32)
    enough = at(reaching(_mass.part(fraction, total if joint else kept)), *sums)
    kept = tuple(jnp.where(p < 1, a, b) for a, b in zip(_mass.smaller(enough, kept), kept, strict=True))
    point = _mass.plus_one(_mass.high_product((bits[..., :1], bits[..., 1:]), kept))
    token, log = at(reaching(point), tokens, log)
    valid = largest >= jnp.finfo(jnp.float32).smallest_normal if probabilities else largest > -jnp.inf
    token, log = jnp.where(valid, token, -1), jnp.where(valid, log - jnp.log(_mass.as_float(kept)), jnp.nan)
    return token[..., 0], log[..., 0]


def _native(x, *others, save, probabilities, joint, digit):
    if digit is not None:
        keys, _, _, smallest, scale = others
        out = [jax.ShapeDtypeStruct((*x.shape[:-1], 3, 256), jnp.uint32)]
        dims, options = "...n, ...b, ..., ... -> ...cd", {"probabilities": probabilities, "shift": digit}
        return tuple(kernel("sampling_digits", dims, x, keys, smallest, scale, out=out, **options))
    out = [jax.ShapeDtypeStruct((*x.shape[:-1], 1), dtype) for dtype in (jnp.int32, jnp.float32)]
    token, log = kernel(
        "sampling",
        "...n, ...b, ..., ..., ..., ... -> ...s, ...s",
        x,
        *others,
        out=out,
        probabilities=probabilities,
        joint=joint,
    )
    return (token[..., 0], log[..., 0]) if save else (token[..., 0],)


def _labels(names, types, params):
    """Rows [*batch, n]; random bits [*batch, b]; the others have batches alone."""
    last = {"logits": ("n",), "bits": ("b",)}
    return [
        (*(f"batch{i}" for i in range(x.ndim - len(last.get(name, ())))), *last.get(name, ()))
        for name, x in zip(names, types, strict=True)
    ]


def sampler(name, public, cases, dtypes, has_k=False, has_p=False):
    """Declares one, which may keep so many tokens, or such a part of the mass. -1 is the token of a row without
    probabilities."""
    return declare(
        name,
        family="random",
        category=OpCategory.RANDOM,
        kin="sampler",
        public=public,
        cases=cases,
        dtypes=dtypes,
        operands=OPERANDS,
        results=("tokens", "logprobs"),
        constant=dict.fromkeys(OPERANDS, CONSTANT),
        shared={"bits": 1, "k": 0, "p": 0, "smallest": 0, "scale": 0},
        batched=as_they_are,
        regime=along_axes,
        cut=Partition(
            _labels,
            whole=frozenset("b"),
            combine={"n": {"forward": _vocabulary.on_shards(has_k, has_p)}},
            plain=True,
        ),
        forward=Body(_reference, _native),
        kernels={"forward": ("sampling",)},
        sometimes=("sampling_digits",),
    )
