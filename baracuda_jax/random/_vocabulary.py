"""Samplers on shards of the vocabulary.

A prefix of the tokens' order ends at a key and a number of tokens with this key. The key is found by its digits, eight bits
at a time: each shard adds the masses and counts of its tokens by digit, and the sums over the shards say in which digit the
prefix ends. These are integers, so that the prefix is that of whole rows. What is communicated are these sums, [4, 256] for
each row and digit, and numbers of each row: its largest key, counts of shards, the token.

`over` are the axes of the mesh along which the vocabulary is sharded."""

import jax.numpy as jnp
from jax import lax

from . import _mass

SHIFTS = (24, 16, 8, 0)
_HALF = 0xFFFF


def digits(x, keys, smallest, scale, *, probabilities, digit):
    """The reference of a step: uint32 [..., 3, 256], the low and high words of masses and the counts of tokens, by the digit
    of their keys above `digit`, among those that have the higher digits of the prefix. `keys` [..., 2] has the largest
    token's key and the prefix."""
    x = x.astype(jnp.float32)
    key, first, prefix = _mass.descending(x), keys[..., :1], keys[..., 1:]
    is_inside = key >> digit >> 8 == prefix >> digit >> 8
    slot = (key >> digit) & 255
    mass = of(probabilities)(x, _mass.number(first), scale[..., None], smallest[..., None])[0]
    width = 32 - max(x.shape[-1] - 1, 1).bit_length()
    total = (jnp.zeros((*x.shape[:-1], 256), jnp.uint32),) * 2
    for low in range(0, _mass.BITS + 2, width):
        part = _mass.shifted_right(mass, low)[1] & ((1 << width) - 1)
        part = _added(jnp.where(is_inside, part, 0), slot)
        total = _mass.add(total, _mass.shifted_left((jnp.zeros_like(part), part), low))
    counts = _added(is_inside.astype(jnp.uint32), slot)
    return jnp.stack([total[1], total[0], counts], -2)


def _added(values, slots):
    rows = tuple(lax.broadcasted_iota(jnp.int32, values.shape, i) for i in range(values.ndim - 1))
    return jnp.zeros((*values.shape[:-1], 256), jnp.uint32).at[(*rows, slots)].add(values)


def of(probabilities):
    return _mass.of_probabilities if probabilities else _mass.of_logits


def on_shards(has_k, has_p):
    """The function of a shard, of samplers that may keep more than one token by their number, and a part of the mass."""

    def run_on_shards(run, over, x, bits, k, p, smallest, scale, *, save, probabilities, joint, digit):
        rows, count = x.shape[:-1], x.shape[-1] * lax.psum(1, over)
        high, low, k, p, smallest, scale = (
            jnp.broadcast_to(a.reshape(*a.shape, *(1,) * (len(rows) - a.ndim)), rows)
            for a in (bits[..., 0], bits[..., 1], k, p, smallest, scale)
        )
        keys = _mass.descending(x.astype(jnp.float32))
        first = lax.pmin(keys.min(-1), over)
        largest = _mass.number(first)

        def mass_of(key):
            return of(probabilities)(_mass.number(key), largest, scale, smallest)

        def step(prefix, digit):
            found = run["forward"](
                x, jnp.stack([first, prefix], -1), k, p, smallest, scale,
                save=False, probabilities=probabilities, joint=joint, digit=digit,
            )[0]  # fmt: skip
            return _up_to_each(_sum_over_shards(found, over))

        none = jnp.zeros(rows, jnp.uint32)
        highest = step(none, SHIFTS[0])  # where each search begins
        total = tuple(a[..., -1] for a in highest[0])

        def search(reaches):
            """(key, number, masses and count before the key) of the fewest tokens that reach what is wanted;
            reaches(masses, counts) says of sums whether they do."""
            key, mass, tokens = none, (none, none), none
            for shift in SHIFTS:
                masses, counts = highest if shift == SHIFTS[0] else step(key, shift)
                masses, counts = _mass.add(masses, tuple(a[..., None] for a in mass)), counts + tokens[..., None]
                found = (~reaches(masses, counts)).sum(-1, dtype=jnp.int32)
                before = jnp.clip(found - 1, 0, 254)[..., None]
                at = lambda a, before=before: jnp.take_along_axis(a, before, -1, mode="promise_in_bounds")[..., 0]
                mass = tuple(jnp.where(found > 0, at(a), b) for a, b in zip(masses, mass, strict=True))
                tokens = jnp.where(found > 0, at(counts), tokens)
                key |= jnp.minimum(found, 255).astype(jnp.uint32) << shift
            return key, mass, tokens

        def reaching(target):
            """(key, number, mass): of the fewest tokens with at least such a mass."""
            key, mass, _ = search(lambda masses, _: ~_mass.is_less(masses, tuple(a[..., None] for a in target)))
            each = mass_of(key)[0]
            number = _quotient(_mass.subtract(target, mass), each)
            return key, number, _mass.add(mass, _mass.times(each, number))

        some = (k > 0) & (k < count)
        if has_k:
            wanted = jnp.where(some, k, 1).astype(jnp.uint32)
            key, mass, tokens = search(lambda _, counts: counts >= wanted[..., None])
            kept = _mass.add(mass, _mass.times(mass_of(key)[0], wanted - tokens))
        else:  # the first token, of temperature 0
            kept = mass_of(first)[0]
        kept = tuple(jnp.where(some, a, b) for a, b in zip(kept, total, strict=True))
        if has_p:
            fraction = jnp.where(p > 0, jnp.minimum(p, 1 - 2.0**-24) * 2.0**32, 0).astype(jnp.uint32)
            enough = _mass.smaller(reaching(_mass.part(fraction, total if joint else kept))[2], kept)
            kept = tuple(jnp.where(p < 1, a, b) for a, b in zip(enough, kept, strict=True))
        point = _mass.plus_one(_mass.high_product((high, low), kept))
        key, number, _ = reaching(point)
        token = _token(keys == key[..., None], number, over)
        valid = largest >= jnp.finfo(jnp.float32).smallest_normal if probabilities else largest > -jnp.inf
        log = mass_of(key)[1] - jnp.log(_mass.as_float(kept))
        results = jnp.where(valid, token, -1), jnp.where(valid, log, jnp.nan)
        return results if save else results[:1]

    return run_on_shards


def _sum_over_shards(found, over):
    """[..., 3, 256] -> (pair of masses, counts)."""
    return _of_parts(lax.psum(_parts(*(found[..., i, :] for i in range(3))), over))


def _up_to_each(sums):
    (high, low), counts = sums
    return _of_parts(jnp.cumsum(_parts(low, high, counts), -1, dtype=jnp.uint32))


def _parts(low, high, counts):
    """Low words as halves, whose sums do not overflow."""
    return jnp.stack([low & _HALF, low >> 16, high, counts], -2)


def _of_parts(parts):
    low, middle, high, counts = (parts[..., i, :] for i in range(4))
    pair = _mass.add((jnp.zeros_like(low), low), (middle >> 16, middle << 16))
    return (pair[0] + high, pair[1]), counts


def _quotient(a, b):
    """The smallest n with n b >= a, at least 1: a number of tokens."""
    highest = _mass.MOST_TOKENS.bit_length() - 1

    def at_bit(i, carried):
        number, left = carried
        bit = jnp.uint32(highest) - i.astype(jnp.uint32)
        part = _mass.shifted_left(b, bit)
        fits = _mass.is_less(part, left)
        left = tuple(jnp.where(fits, x, y) for x, y in zip(_mass.subtract(left, part), left, strict=True))
        return jnp.where(fits, number + (jnp.uint32(1) << bit), number), left

    # A loop: unrolled, it takes XLA minutes to compile.
    return lax.fori_loop(0, highest + 1, at_bit, (jnp.zeros_like(a[1]), a))[0] + 1


def _token(is_equal, number, over):
    """The index of the equal token of this number, counted from 1 over the shards in their order."""
    own, word = lax.axis_index(over), jnp.uint32
    count, size = is_equal.shape[-1], lax.psum(1, over)
    width = 256
    padded = jnp.pad(is_equal, [(0, 0)] * (is_equal.ndim - 1) + [(0, -count % width)])
    ranges = padded.reshape(*padded.shape[:-1], padded.shape[-1] // width, width)
    counts = ranges.sum(-1, dtype=word)
    here = counts.sum(-1, dtype=word)
    every = lax.psum(jnp.where(lax.iota(jnp.int32, size).reshape(size, *(1,) * here.ndim) == own, here, 0), over)
    before = jnp.where(lax.iota(jnp.int32, size).reshape(size, *(1,) * here.ndim) < own, every, 0).sum(0, dtype=word)
    is_here = (before < number) & (number <= before + here)
    wanted = jnp.where(is_here, number - before, 1)[..., None]
    sums = jnp.cumsum(counts, -1, dtype=word)
    at = jnp.minimum((sums < wanted).sum(-1, keepdims=True, dtype=jnp.int32), sums.shape[-1] - 1)
    take = lambda a: jnp.take_along_axis(a, at, -1, mode="promise_in_bounds")
    wanted = wanted - (take(sums) - take(counts))
    one = jnp.take_along_axis(ranges, at[..., None], -2, mode="promise_in_bounds")[..., 0, :]
    inside = (jnp.cumsum(one, -1, dtype=word) < wanted).sum(-1, dtype=jnp.int32)
    token = own.astype(jnp.int32) * count + at[..., 0] * width + inside
    return lax.psum(jnp.where(is_here, token, 0), over)
