"""Softmax attention in plain JAX: all scores at once, or block by block of the keys.

Arrays here are wide. Queries are [..., k, g, t, d] with k heads of keys and g heads of queries for each, keys and values
[..., k, s, d]. Scores are [..., k, g, t, s], and so are bias and mask, with 1 where they are the same, and slopes, times
the distance from query to key.

By blocks, the sum over keys keeps the largest score so far. Its derivative needs no such order: with lse known, each block
gives its part of the tangent by itself. So nothing of the size of the scores is stored for the gradient, and derivatives of
any order are those of plain JAX."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

NOWHERE = -(2**31)  # the position of a key that no query sees


class Spec(NamedTuple):
    """What is static. Without a block all scores are computed at once."""

    scale: float
    softcap: float | None = None
    is_causal: bool = False
    left: int | None = None
    right: int | None = None
    block: int | None = None


class Limits(NamedTuple):
    """Which keys j a query i sees: arrays [..., 1, 1, 1, 1], or None where all do."""

    mask: Any = None
    shift: Any = None  # added to i where causal, or in a window
    rows: Any = None  # the number of queries
    columns: Any = None  # the number of keys
    positions: Any = None  # of keys, [..., 1, 1, 1, s], NOWHERE for those that no query sees; None for 0, 1, 2, ...


def attend(spec, q, k, v, bias, slopes, limits):
    """(y [..., k, g, t, d], lse [..., k, g, t]). A query that sees no key has 0 and -inf."""
    if spec.block is None or k.shape[-2] <= spec.block:
        return _at_once(spec, q, k, v, bias, slopes, limits)
    return _by_blocks(spec, q, k, v, bias, slopes, limits)


def _at_once(spec, q, k, v, bias, slopes, limits):
    s = _scores(spec, q, k, bias, slopes, limits, 0)
    top = jax.lax.stop_gradient(finite(jnp.max(s, -1, initial=-jnp.inf)))
    p = jnp.exp(s - top[..., None])
    total = p.sum(-1)
    some = total > 0
    total = jnp.where(some, total, 1)
    y = jnp.einsum("...kgts,...ksd->...kgtd", p, v) / total[..., None]
    return y, jnp.where(some, top + jnp.log(total), -jnp.inf)


def finite(lse):
    """With 0 where nothing is seen."""
    return jnp.where(lse == -jnp.inf, 0, lse)


def _scores(spec, q, k, bias, slopes, limits, first):
    """Those of keys from the position `first` on; -inf where a key is not seen."""
    s = jnp.einsum("...kgtd,...ksd->...kgts", q, k) * spec.scale
    if spec.softcap is not None:
        s = spec.softcap * jnp.tanh(s / spec.softcap)
    if bias is not None:
        s = s + bias
    if slopes is not None:
        at, j = _positions(s.shape, limits, first)
        s = s + slopes * (j - at).astype(s.dtype)
    seen = _seen(spec, s.shape, limits, first)
    return s if seen is None else jnp.where(seen, s, -jnp.inf)


def _index(shape, axis):
    return jax.lax.broadcasted_iota(jnp.int32, tuple(n if i == axis else 1 for i, n in enumerate(shape)), axis)


def _positions(shape, limits, first):
    """Those of queries among the keys, and those of keys."""
    i, j = _index(shape, len(shape) - 2), _index(shape, len(shape) - 1) + first
    j = j if limits.positions is None else limits.positions
    return i if limits.shift is None else i + limits.shift, j


def _seen(spec, shape, limits, first):
    i, (at, j) = _index(shape, len(shape) - 2), _positions(shape, limits, first)
    conditions = [] if limits.mask is None else [limits.mask]
    conditions += [] if limits.positions is None else [limits.positions != NOWHERE]
    conditions += [j <= at] if spec.is_causal else []
    conditions += [] if spec.left is None else [j >= at - spec.left]
    conditions += [] if spec.right is None else [j <= at + spec.right]
    conditions += [] if limits.rows is None else [i < limits.rows]
    conditions += [] if limits.columns is None else [_index(shape, len(shape) - 1) + first < limits.columns]
    return functools.reduce(jnp.logical_and, conditions) if conditions else None


# ---------------------------------------------------------------------------------------------------------------------
# By blocks


def _blocks(spec, k, v, bias, limits):
    """The keys in blocks, the last one filled up: (those of the first, those of the others, the limits without those of
    single keys)."""
    length, size = k.shape[-2], spec.block
    count = -(-length // size)
    missing = count * size - length

    def cut(x, axis):
        if x is None or x.shape[axis] == 1 < length:
            return x, None
        x = jnp.pad(x, [(0, missing if i == axis % x.ndim else 0) for i in range(x.ndim)])
        x = jnp.moveaxis(x.reshape(*x.shape[:axis], count, size, *x.shape[x.ndim + axis + 1 :]), axis - 1, 0)
        return x[0], x[1:]

    pairs = [cut(k, -2), cut(v, -2), cut(bias, -1), cut(limits.mask, -1), cut(limits.positions, -1)]
    limits = limits._replace(mask=None, positions=None)
    if missing and limits.columns is None:
        limits = limits._replace(columns=length)
    starts = size * jnp.arange(1, count, dtype=jnp.int32)
    whole = [first if rest is None else None for first, rest in pairs]
    fill = lambda block: [w if b is None else b for w, b in zip(whole, block, strict=True)]
    return [first for first, _ in pairs], ([rest for _, rest in pairs], starts), fill, limits


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _by_blocks(spec, q, k, v, bias, slopes, limits):
    first, rest, fill, limits = _blocks(spec, k, v, bias, limits)

    def scores(block, start):
        k, v, bias, mask, positions = block
        return _scores(spec, q, k, bias, slopes, limits._replace(mask=mask, positions=positions), start), v

    def step(carry, xs):
        top, total, y = carry
        s, v = scores(fill(xs[0]), xs[1])
        new = jnp.maximum(top, s.max(-1))
        kept, p = jnp.exp(top - finite(new)), jnp.exp(s - finite(new)[..., None])
        y = kept[..., None] * y + jnp.einsum("...kgts,...ksd->...kgtd", p, v)
        return (new, kept * total + p.sum(-1), y), None

    s, v = scores(first, 0)
    top = s.max(-1)
    p = jnp.exp(s - finite(top)[..., None])
    carry = top, p.sum(-1), jnp.einsum("...kgts,...ksd->...kgtd", p, v)
    top, total, y = jax.lax.scan(step, carry, rest)[0]
    some = total > 0
    total = jnp.where(some, total, 1)
    return y / total[..., None], jnp.where(some, finite(top) + jnp.log(total), -jnp.inf)


def _tangent(spec, primals, tangents):
    *arrays, limits = primals
    y, lse = _by_blocks(spec, *arrays, limits)
    moving = [i for i, t in enumerate(tangents[:5]) if t is not None and not isinstance(t, SymbolicZero)]

    def sums(*some):
        known = dict(zip(moving, some, strict=True))
        return _sums(spec, *(known.get(i, x) for i, x in enumerate(arrays)), limits, finite(lse))

    if not moving:
        return (y, lse), (jnp.zeros_like(y), jnp.zeros_like(lse))
    dy, dlse = jax.jvp(sums, [arrays[i] for i in moving], [tangents[i] for i in moving])[1]
    return (y, lse), (dy - y * dlse[..., None], dlse)


_by_blocks.defjvp(_tangent, symbolic_zeros=True)


def _sums(spec, q, k, v, bias, slopes, limits, lse):
    """The sums over keys of exp(score - lse) v and of exp(score - lse), whose derivatives keep nothing of a block."""
    first, rest, fill, limits = _blocks(spec, k, v, bias, limits)

    @functools.partial(jax.checkpoint, prevent_cse=False)
    def of_block(q, slopes, lse, limits, block, start):
        k, v, bias, mask, positions = block
        limits = limits._replace(mask=mask, positions=positions)
        p = jnp.exp(_scores(spec, q, k, bias, slopes, limits, start) - lse[..., None])
        return jnp.einsum("...kgts,...ksd->...kgtd", p, v), p.sum(-1)

    def step(carry, xs):
        return jax.tree.map(jnp.add, carry, of_block(q, slopes, lse, limits, fill(xs[0]), xs[1])), None

    return jax.lax.scan(step, of_block(q, slopes, lse, limits, first, 0), rest)[0]
