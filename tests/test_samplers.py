"""Samplers: which tokens they keep, how often they draw them, that kernels and plain JAX draw the same, and what is refused."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import same_bits
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from oracles import random as oracles
from sharded import collectives, devices

import baracuda_jax as bj
from baracuda_jax.random import _mass, _speculative_tree

KEY = jax.random.key(7)
RNG = functools.partial(np.random.default_rng, 0)
BOTH = ("native", "xla")
SAMPLERS = {
    "top_k_sampling": {"k": 5},
    "top_p_sampling": {"p": 0.8},
    "min_p_sampling": {"min_p": 0.1},
    "top_k_top_p_sampling": {"k": 9, "p": 0.6},
}


def _sample(name, *args, **kwargs):
    return getattr(bj, name)(*args, **(SAMPLERS[name] | kwargs))


def _logits(*shape, dtype="float32"):
    return sent.asarray(2 * RNG().standard_normal(shape), dtype)


def _chances(logits, axis=-1):
    x = np.exp(np.asarray(logits, np.float64) - np.max(np.asarray(logits, np.float64), axis, keepdims=True))
    return x / x.sum(axis, keepdims=True)


def _chi_square(counts, expected):
    """That of 99.9 % of draws, at least: the key is fixed."""
    from scipy.stats import chi2

    assert (counts[expected == 0] == 0).all()
    counts, expected = counts[expected > 0], expected[expected > 0]
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(0.999, max(1, counts.size - 1))


# ---------------------------------------------------------------------------------------------------------------------
# Which tokens are kept


def _of_transformers(name, x, k=None, p=None, min_p=None):
    """Which logits the processors of transformers leave, of a row without ties."""
    kept, chances = np.ones(x.shape, bool), _chances(x)
    if k is not None:
        kept &= x >= np.sort(x)[-k]
        chances = np.where(kept, chances, 0) / chances[kept].sum()
    if p is not None:
        order = np.argsort(x)
        kept[order[np.cumsum(chances[order]) <= 1 - p]] = False
        kept[order[-1]] = True
    return kept & (_chances(x) >= (min_p or 0) * _chances(x).max())


@pytest.mark.parametrize("implementation", BOTH)
@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_kept_is_as_in_transformers(name, implementation):
    """By the logprob of a token one knows how much was kept."""
    logits = _logits(40, 300)
    tokens, logprobs = _sample(name, logits, KEY, return_logprobs=True, implementation=implementation)
    for x, token, logprob in zip(np.asarray(logits, np.float64), tokens, logprobs, strict=True):
        kept, chances = _of_transformers(name, x, **SAMPLERS[name]), _chances(x)
        assert kept[token]
        np.testing.assert_allclose(math.exp(logprob), chances[token] / chances[kept].sum(), rtol=1e-5)


@pytest.mark.parametrize("implementation", BOTH)
def test_joint_is_about_all_tokens(implementation):
    """Of 0.4, 0.3, 0.2, 0.1, 3 are kept, and 0.6 of 0.9 or of 1: 2 in both. 0.75 of 0.9 is 0.675, 0.75 of 1 takes the third."""
    logits = jnp.broadcast_to(jnp.log(sent.asarray([0.2, 0.4, 0.1, 0.3])), (500, 4))
    draw = lambda **kwargs: np.asarray(bj.top_k_top_p_sampling(logits, KEY, 3, implementation=implementation, **kwargs))
    assert set(draw(p=0.6)) == set(draw(p=0.6, joint=True)) == set(draw(p=0.75)) == {1, 3}
    assert set(draw(p=0.75, joint=True)) == {0, 1, 3}


@pytest.mark.parametrize("implementation", BOTH)
def test_of_equal_tokens_the_first_are_kept(implementation):
    """Also where so many are equal that none is less probable."""
    for count in (10, 9000):
        logits = sent.zeros((300, count))
        assert np.asarray(bj.top_k_sampling(logits, KEY, 4, implementation=implementation)).max() == 3
        assert np.asarray(bj.top_p_sampling(logits, KEY, 0.5, implementation=implementation)).max() in range(
            count // 2 - count // 10, count // 2
        )
        assert set(np.asarray(bj.top_p_sampling(logits, KEY, 0.0, implementation=implementation))) == {0}
        drawn = np.asarray(bj.min_p_sampling(logits, KEY, 1.0, implementation=implementation))
        assert drawn.max() > 0.8 * count


@pytest.mark.parametrize("implementation", BOTH)
def test_parameters_that_keep_all_or_one(implementation):
    logits = _logits(6, 50)
    draw = lambda name, value, **kwargs: np.asarray(
        getattr(bj, name)(logits, KEY, value, implementation=implementation, **kwargs)
    )
    every = draw("top_p_sampling", 1.0)
    for k in (0, -3, 50, 51, 2**40):
        np.testing.assert_array_equal(draw("top_k_sampling", k), every)
    np.testing.assert_array_equal(draw("min_p_sampling", 0.0), every)
    best = np.asarray(logits).argmax(-1)
    for found in (
        draw("top_k_sampling", 1),
        draw("top_p_sampling", 0.0),
        draw("top_p_sampling", 1e-30),
        draw("min_p_sampling", 1.0),
        draw("top_p_sampling", 1.0, temperature=0),
        draw("min_p_sampling", 0.0, temperature=1e-38),
    ):
        np.testing.assert_array_equal(found, best)
    mixed = draw("top_p_sampling", 1.0, temperature=sent.asarray([0, 1, 0, 1, 1, 0.0]))
    np.testing.assert_array_equal(mixed, np.where([1, 0, 1, 0, 0, 1], best, every))


# ---------------------------------------------------------------------------------------------------------------------
# Kernels and plain JAX


def _rows(count, dtype):
    """Logits of many kinds."""
    rng = RNG()
    x = 3 * rng.standard_normal((24, count))
    x[1] = 0.5
    x[2] = np.round(x[2])
    x[3, ::2] = -np.inf
    x[4] = -np.inf
    x[5], x[5, -1] = -np.inf, -3
    x[6, count // 2] = np.inf
    x[7] = np.where(x[7] > 2, np.inf, x[7])
    x[8, 0] = np.nan
    x[9] *= 1e-3
    x[10] *= 1e3
    x[11] += 1e4
    x[12] = np.sort(x[12])
    x[13] = np.repeat(x[13, : count // 2 + 1], 2)[:count]
    x[14] = np.where(x[14] > 0, 0.0, -0.0)
    return sent.asarray(np.concatenate([x, x[::-1]]), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("count", [1, 2, 33, 256, 257, 5000])
@pytest.mark.parametrize("probabilities", [False, True], ids=["logits", "probabilities"])
def test_kernels_draw_what_plain_jax_draws(count, dtype, probabilities):
    x, rng = _rows(count, dtype), RNG()
    if probabilities:
        x = jnp.where(jnp.isnan(x), x, jnp.exp(x - x[:, :1]))
    rows = x.shape[0]
    p, k = np.tile([0, 0.5, 0.9, 1], rows // 4), rng.integers(-1, count + 2, rows)
    p, k = sent.asarray(np.where(rng.random(rows) < 0.5, p, rng.random(rows)), "float32"), sent.asarray(k)
    heat = 1.0 if probabilities else sent.asarray(rng.choice([0, 0.5, 1, 2, 1e4], rows), "float32")

    @functools.partial(jax.jit, static_argnames="implementation")
    def draw(x, implementation):
        options = {"return_logprobs": True, "return_valid": True, "implementation": implementation}
        options |= {"probabilities": probabilities, "temperature": heat}
        return [
            bj.top_k_sampling(x, KEY, k, **options),
            bj.top_p_sampling(x, KEY, p, **options),
            bj.min_p_sampling(x, KEY, p, **options),
            bj.top_k_top_p_sampling(x, KEY, k, p, **options),
            bj.top_k_top_p_sampling(x, KEY, k, p, joint=True, **options),
        ]

    for native, plain in zip(*(draw(x, i) for i in BOTH), strict=True):
        np.testing.assert_array_equal(native[0], plain[0])
        np.testing.assert_array_equal(native[2], plain[2])
        np.testing.assert_allclose(native[1], plain[1], rtol=1e-5, atol=1e-5)


def test_masses_are_the_exponentials():
    """Within 2^-22 (1 + |log p|), and nothing that is below 2^-36."""
    x = np.linspace(-30, 0, 100_001, dtype=np.float32)
    (high, low), log = jax.jit(_mass.of_logits)(x, np.float32(0), np.float32(math.log2(math.e)), np.float32(-np.inf))
    mass = (np.asarray(high, np.float64) * 2**32 + np.asarray(low)) / 2**_mass.BITS
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(mass - exact) <= 2.0**-_mass.BITS + 2.0**-22 * (1 + np.abs(x)) * exact).all()
    np.testing.assert_allclose(log, x, rtol=1e-6)


def test_arithmetic_of_pairs():
    rng = RNG()
    a, b = (rng.integers(0, 2**63, 200, dtype=np.uint64) for _ in range(2))
    a[:3], b[:3] = (0, 2**63 - 1, 1), (2**63 - 1, 2**63 - 1, 0)
    fraction = np.r_[rng.integers(0, 2**32, 197), 0, 1, 2**32 - 1].astype(np.uint32)
    pair = lambda x: ((x >> np.uint64(32)).astype(np.uint32), x.astype(np.uint32))
    masses = rng.integers(0, 2**37, 200).astype(np.uint64)

    @jax.jit
    def compute(a, b, fraction, masses):
        return _mass.high_product(a, b), _mass.part(fraction, a), _mass.sums(masses), _mass.add(a, b)

    product, part, sums, total = (
        [int(h) << 32 | int(low) for h, low in zip(*map(np.asarray, found), strict=True)]
        for found in compute(pair(a), pair(b), fraction, pair(masses))
    )
    a, b, fraction = ([int(x) for x in of] for of in (a, b, fraction))
    assert product == [x * y >> 64 for x, y in zip(a, b, strict=True)]
    assert part == [max(1, -(-x * f >> 32)) for x, f in zip(a, fraction, strict=True)]
    assert sums == np.cumsum(masses).tolist() and total == [x + y for x, y in zip(a, b, strict=True)]


# ---------------------------------------------------------------------------------------------------------------------
# How often tokens are drawn


@pytest.mark.parametrize("name", SAMPLERS)
def test_tokens_are_drawn_by_their_probabilities(name):
    """A million draws."""
    logits, n = np.asarray(_logits(12)), 1_000_000
    tokens = _sample(name, jnp.broadcast_to(logits, (n, 12)), KEY, temperature=1.5)
    kept = _of_transformers(name, logits / 1.5, **SAMPLERS[name])
    expected = np.where(kept, _chances(logits / 1.5), 0)
    _chi_square(np.bincount(tokens, minlength=12), n * expected / expected.sum())


def test_logprobs_are_those_of_the_draws():
    logits = _logits(9)
    tokens, logprobs = bj.top_p_sampling(jnp.broadcast_to(logits, (200, 9)), KEY, 0.9, return_logprobs=True)
    found = dict(zip(np.asarray(tokens).tolist(), np.asarray(logprobs, np.float64), strict=True))
    assert all(len(set(np.asarray(logprobs)[np.asarray(tokens) == token])) == 1 for token in found)
    np.testing.assert_allclose(sum(np.exp(list(found.values()))), 1, rtol=1e-6)
    assert not jax.jit(
        jax.grad(lambda x: bj.top_p_sampling(jax.lax.stop_gradient(x), KEY, 0.9, return_logprobs=True)[1])
    )(logits).any()


# ---------------------------------------------------------------------------------------------------------------------
# The same tokens everywhere


@pytest.mark.parametrize("name", SAMPLERS)
def test_alone_in_batches_mapped_and_on_shards_the_tokens_are_the_same(name):
    logits = _logits(8, 300)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(KEY, jnp.arange(8))
    draw = jax.jit(functools.partial(_sample, name))
    want = np.asarray(draw(logits, KEY))
    for implementation in BOTH:
        fun = jax.jit(functools.partial(_sample, name, implementation=implementation))
        np.testing.assert_array_equal(fun(logits, keys), want)
        np.testing.assert_array_equal(jax.vmap(fun)(logits, jax.random.key_data(keys)), want)
        np.testing.assert_array_equal(np.r_[fun(logits[:3], keys[:3]), fun(logits[3:], keys[3:])], want)
        np.testing.assert_array_equal(fun(logits[5], keys[5]), want[5])
        np.testing.assert_array_equal(fun(logits.reshape(2, 4, 300), KEY).ravel(), want)
        if len(devices()) < 4:
            continue
        for spec in (P("d"), P(None, "d")):
            over = NamedSharding(Mesh(np.array(devices()[:4]), ("d",)), spec)
            np.testing.assert_array_equal(fun(jax.device_put(logits, over), KEY), want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("count", [8, 5120])
@pytest.mark.parametrize("probabilities", [False, True], ids=["logits", "probabilities"])
@pytest.mark.parametrize("implementation", BOTH)
@pytest.mark.parametrize("name", SAMPLERS)
def test_shards_of_the_vocabulary_draw_what_whole_rows_draw(name, implementation, probabilities, count, dtype):
    """Of logits of all kinds; none are gathered."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    x, rng = _rows(count, dtype), RNG()
    if probabilities:
        x = jnp.where(jnp.isnan(x), x, jnp.exp(x - x[:, :1]))
    rows = x.shape[0]
    p, k = np.tile([0, 0.5, 0.9, 1], rows // 4), rng.integers(-1, count + 2, rows)
    p, k = sent.asarray(np.where(rng.random(rows) < 0.5, p, rng.random(rows)), "float32"), sent.asarray(k)
    heat = 1.0 if probabilities else sent.asarray(rng.choice([0, 0.5, 1, 2, 1e4], rows), "float32")
    of_rows = {"k": k, "p": p, "min_p": p}
    options = {"return_logprobs": True, "return_valid": True, "implementation": implementation}
    options |= {"probabilities": probabilities, "temperature": heat} | {key: of_rows[key] for key in SAMPLERS[name]}
    if "k" in options and "p" in options:
        options["joint"] = probabilities
    draw = jax.jit(lambda x: getattr(bj, name)(x, KEY, **options))
    over = NamedSharding(Mesh(np.array(devices()).reshape(2, 4), ("e", "d")), P("e", "d"))
    program = draw.lower(placed := jax.device_put(x, over)).compile()
    assert set(collectives(program.as_text())) == {"all-reduce"}
    got, want = program(placed), draw(x)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[2], want[2])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# Rows without probabilities


@pytest.mark.parametrize("implementation", BOTH)
@pytest.mark.parametrize("name", SAMPLERS)
def test_rows_that_are_not_valid(name, implementation):
    nan, inf = math.nan, math.inf
    draw = functools.partial(_sample, name, return_logprobs=True, return_valid=True, implementation=implementation)
    rows = sent.asarray([[1, nan, 2], [-inf, -inf, -inf], [0, 1, inf], [-inf, -5, -inf]])
    tokens, logprobs, valid = map(np.asarray, draw(rows, KEY))
    assert tokens.tolist() == [0, 0, 2, 1] and valid.tolist() == [False, False, True, True]
    np.testing.assert_array_equal(logprobs, [nan, nan, 0, 0])
    rows = sent.asarray([[1, nan, 2], [0, 0, 0], [-1, 0, 0.5], [0, inf, 1], [-inf, -1, -0.0]])
    tokens, logprobs, valid = map(np.asarray, draw(rows, KEY, probabilities=True))
    assert tokens.tolist() == [0, 0, 2, 1, 0] and valid.tolist() == [False, False, True, True, False]
    np.testing.assert_array_equal(logprobs, [nan, nan, 0, 0, nan])


def test_no_rows():
    for implementation in BOTH:
        assert bj.top_p_sampling(sent.zeros((0, 5)), KEY, 0.5, implementation=implementation).shape == (0,)
        assert bj.top_k_sampling(sent.zeros((2, 0, 5)), KEY, 2, implementation=implementation).shape == (2, 0)


# ---------------------------------------------------------------------------------------------------------------------
# Speculative sampling


def _models(n, length, count):
    draft, target = _chances(RNG().standard_normal((2, length + 1, count)))
    repeated = lambda x: jnp.broadcast_to(sent.asarray(x, "float32"), (n, *x.shape))
    drawn = bj.top_p_sampling(repeated(draft[:length]), jax.random.key(1), 1.0, probabilities=True)
    return draft[:length], target, (drawn, repeated(draft[:length]), repeated(target))


def test_tokens_have_the_probabilities_of_the_target():
    """Those of the first two, as pairs; and the number accepted, whose mean is known."""
    n, count = 300_000, 4
    draft, target, arrays = _models(n, 2, count)
    tokens, accepted = map(np.asarray, bj.speculative_sampling(*arrays, KEY))
    _chi_square(np.bincount(tokens[:, 0], minlength=count), n * target[0])
    second = tokens[accepted >= 1]
    pairs = np.bincount(second[:, 0] * count + second[:, 1], minlength=count**2).reshape(count, count)
    _chi_square(pairs, pairs.sum(1, keepdims=True) * target[1])
    chance = np.minimum(draft, target[:2]).sum(-1)
    np.testing.assert_allclose((accepted >= 1).mean(), chance[0], atol=5e-3)
    np.testing.assert_allclose((accepted == 2).mean(), chance.prod(), atol=5e-3)
    assert ((tokens >= 0).sum(-1) == accepted + 1).all()


@pytest.mark.parametrize("implementation", BOTH)
def test_drafts_that_are_accepted_refused_or_end(implementation):
    draw = functools.partial(bj.speculative_sampling, key=KEY, implementation=implementation)
    same = sent.asarray([[0.5, 0.5, 0], [0, 0.5, 0.5]])
    tokens, accepted = draw(sent.asarray([1, 2]), same, jnp.concatenate([same, sent.asarray([[1.0, 0, 0]])]))
    assert tokens.tolist() == [1, 2, 0] and accepted == 2
    target = sent.asarray([[0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0]])
    tokens, accepted = draw(sent.asarray([0, 2]), same, target)
    assert tokens.tolist() == [1, -1, -1] and accepted == 0
    for end in (-1, 3, 2**31 - 1):
        tokens, accepted = draw(sent.asarray([1, end]), same, target)
        assert tokens.tolist() == [1, 2, -1] and accepted == 1
    tokens, accepted = draw(sent.zeros((0,), "int32"), sent.zeros((0, 3)), target[:1])
    assert tokens.tolist() == [1] and accepted == 0
    tokens, accepted = draw(sent.asarray([1, 2]), same, target.at[1].set(jnp.nan))
    assert tokens.tolist() == [1, -1, -1] and accepted == 1


def test_speculative_sampling_of_rows_alone_and_together():
    _, _, arrays = _models(6, 3, 7)
    fun = jax.jit(bj.speculative_sampling)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(KEY, jnp.arange(6))
    want = fun(*arrays, KEY)
    jax.tree.map(same_bits, fun(*arrays, keys), want)
    jax.tree.map(same_bits, jax.vmap(fun)(*arrays, keys), want)
    jax.tree.map(same_bits, fun(*(a[4] for a in arrays), keys[4]), jax.tree.map(lambda y: y[4], want))
    np.testing.assert_array_equal(
        want[0], oracles.speculative_sampling(*map(np.asarray, arrays), jax.random.key_data(KEY))
    )


PARENTS = np.array([-1, -1, -1, 0, 0, 1, 2], np.int32)


def _trees(n, count, without_replacement=False):
    """Trees of drafts, of models whose probabilities depend on the token before; and the target's at the root and after each."""
    rng = RNG()
    root, after = _chances(rng.standard_normal((2, count))), _chances(rng.standard_normal((2, count, count)))
    draw = lambda p: (p.cumsum(-1)[..., :-1] < rng.random((n, 1))).sum(-1)
    tokens, draft, target = np.zeros((n, 7), np.int32), np.zeros((n, 7, count)), np.zeros((n, 8, count))
    target[:, 0], left = root[1], {}
    for i, parent in enumerate(PARENTS):
        p = np.broadcast_to(root[0], (n, count)) if parent < 0 else after[0][tokens[:, parent]]
        draft[:, i] = left.get(parent, p) if without_replacement else p
        tokens[:, i] = draw(draft[:, i])
        target[:, i + 1] = after[1][tokens[:, i]]
        rest = draft[:, i] * (np.arange(count) != tokens[:, i, None])
        left[parent] = rest / rest.sum(-1, keepdims=True)
    arrays = (
        sent.asarray(tokens),
        sent.asarray(PARENTS),
        sent.asarray(draft, "float32"),
        sent.asarray(target, "float32"),
    )
    return root[1], after[1], arrays


@pytest.mark.parametrize("without_replacement", [False, True])
def test_tokens_of_trees_have_the_probabilities_of_the_target(without_replacement):
    """Those of the first two, as pairs, of siblings drawn independently, and of others."""
    n, count = 100_000, 4
    first, after, arrays = _trees(n, count, without_replacement)
    tokens, accepted, path = map(np.asarray, jax.jit(bj.speculative_tree_sampling)(*arrays, KEY))
    _chi_square(np.bincount(tokens[:, 0], minlength=count), n * first)
    second = tokens[accepted >= 1]
    pairs = np.bincount(second[:, 0] * count + second[:, 1], minlength=count**2).reshape(count, count)
    _chi_square(pairs, pairs.sum(1, keepdims=True) * after)
    assert ((tokens >= 0).sum(-1) == accepted + 1).all() and ((path >= 0).sum(-1) == accepted).all()
    assert (np.bincount(accepted) > n / 100).all()  # of each length many
    nodes = np.where(path >= 0, path, 0)
    assert (
        np.where(path >= 0, np.take_along_axis(np.asarray(arrays[0]), nodes, 1), -1)
        == np.where(path >= 0, tokens[:, :-1], -1)
    ).all()
    before = np.concatenate([np.full((n, 1), -1), path[:, :-1]], 1)
    assert (PARENTS[nodes] == before)[path >= 0].all()


def test_a_tree_that_is_a_chain():
    _, _, arrays = _models(50, 3, 7)
    tokens, accepted, path = bj.speculative_tree_sampling(arrays[0], sent.asarray([-1, 0, 1]), *arrays[1:], KEY)
    jax.tree.map(same_bits, (tokens, accepted), bj.speculative_sampling(*arrays, KEY))
    np.testing.assert_array_equal(path, np.where(np.arange(3) < np.asarray(accepted)[:, None], np.arange(3), -1))


def test_nodes_that_are_not_in_the_tree():
    """Padding, what is below it, and nodes before their parents."""
    same = sent.full((4, 3), 1 / 3, "float32")
    target = sent.asarray([[0, 1.0, 0], [0, 0, 1.0], [0, 1.0, 0], [1.0, 0, 0], [1.0, 0, 0]], "float32")
    draw = lambda tokens, parents: bj.speculative_tree_sampling(
        sent.asarray(tokens), sent.asarray(parents), same, target, KEY
    )
    tokens, accepted, path = draw([0, 1, 1, 2], [-1, -1, 1, 1])
    assert tokens.tolist() == [1, 1, 0, -1, -1] and accepted == 2 and path.tolist() == [1, 2, -1, -1]
    for tokens, parents in (([-1, 1, 1, 2], [-1, 0, 0, 1]), ([3, 0, 2, 2], [-1, -1, -1, 0]), ([1, 1, 1, 1], [1, 2, 3, 4]), ([1] * 4, [-2, 0, 5, 3])):  # fmt: skip
        tokens, accepted, path = draw(tokens, parents)
        assert tokens.tolist() == [1, -1, -1, -1, -1] and accepted == 0 and path.tolist() == [-1] * 4
    tokens, accepted, path = bj.speculative_tree_sampling(
        sent.zeros((0,), "int32"), sent.zeros((0,), "int32"), same[:0], target[:1], KEY
    )
    assert tokens.tolist() == [1] and accepted == 0 and path.shape == (0,)
    tokens, accepted, _ = bj.speculative_tree_sampling(
        sent.asarray([1, 1, 1, 2]), sent.asarray([-1, 0, 0, 0]), same, target.at[1].set(jnp.nan), KEY
    )
    assert tokens.tolist() == [1, -1, -1, -1, -1] and accepted == 1


def test_trees_alone_together_and_on_shards():
    _, _, arrays = _trees(8, 16)
    fun = jax.jit(bj.speculative_tree_sampling)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(KEY, jnp.arange(8))
    want = fun(*arrays, KEY)
    jax.tree.map(same_bits, fun(*arrays, keys), want)
    jax.tree.map(same_bits, jax.vmap(fun, (0, None, 0, 0, 0))(*arrays, keys), want)
    each = jnp.broadcast_to(arrays[1], arrays[0].shape)
    jax.tree.map(same_bits, fun(arrays[0], each, *arrays[2:], keys), want)
    np.testing.assert_array_equal(
        want[0], oracles.speculative_tree_sampling(*map(np.asarray, arrays), jax.random.key_data(KEY))
    )
    if len(devices()) < 4:
        return
    for spec in (P("d"), P(None, None, "d")):
        over = NamedSharding(Mesh(np.array(devices()[:4]), ("d",)), spec)
        placed = jax.device_put(arrays[2:], over)
        jax.tree.map(same_bits, fun(*arrays[:2], *placed, KEY), want)


def test_the_sum_of_what_is_left():
    """As exact as float32, in any order."""
    x = RNG().random((5, 3000)).astype(np.float32) ** 8
    x /= 2 * x.sum(-1, keepdims=True)
    found = np.asarray(jax.vmap(_speculative_tree._sum)(x))
    np.testing.assert_allclose(found, x.astype(np.float64).sum(-1), rtol=2e-7)
    np.testing.assert_array_equal(found, jax.vmap(_speculative_tree._sum)(x[:, ::-1]))


# ---------------------------------------------------------------------------------------------------------------------
# Refused

X = np.zeros((3, 4))


@pytest.mark.parametrize(
    "name, error, match, args, kwargs",
    [
        ("top_k_sampling", ValueError, r"logits must have at least one token a row, got shape \(3, 0\)", (sent.zeros((3, 0)), KEY), {}),
        ("top_k_sampling", TypeError, "logits must have one of the dtypes float32.*got int32", (sent.zeros((3, 4), "int32"), KEY), {}),
        ("top_k_sampling", TypeError, "k must be an integer, got 1.5", (X, KEY), {"k": 1.5}),
        ("top_k_sampling", TypeError, "k must have one of the dtypes int8.*got float64", (X, KEY), {"k": sent.zeros(3)}),
        ("top_k_sampling", ValueError, r"k must have shape \(3,\), that of the leading dimensions of logits, got \(4,\)", (X, KEY), {"k": sent.zeros(4, "int32")}),
        ("top_k_sampling", TypeError, r"key must be one key, typed or uint32 of shape \(2,\) or \(4,\), or one for each of the rows \(3,\), got uint32 of shape \(4, 2\)", (X, sent.zeros((4, 2), "uint32")), {}),
        ("top_p_sampling", TypeError, "key must be a key of threefry2x32 or philox, got one of rbg", (X, jax.random.key(0, impl="rbg")), {}),
        ("top_p_sampling", ValueError, "p must be at least 0 and at most 1, got 1.5", (X, KEY), {"p": 1.5}),
        ("top_p_sampling", ValueError, "p must be at least 0 and at most 1, got nan", (X, KEY), {"p": math.nan}),
        ("top_p_sampling", ValueError, "temperature must be at least 0, got -1", (X, KEY), {"temperature": -1}),
        ("top_p_sampling", ValueError, "temperature must be 1 with probabilities, got 0.5", (X, KEY), {"temperature": 0.5, "probabilities": True}),
        ("top_p_sampling", TypeError, "return_valid must be True or False, got 1", (X, KEY), {"return_valid": 1}),
        ("min_p_sampling", ValueError, "min_p must be at least 0 and at most 1, got -0.1", (X, KEY), {"min_p": -0.1}),
        ("top_k_top_p_sampling", TypeError, "joint must be True or False, got None", (X, KEY), {"joint": None}),
    ],
)  # fmt: skip
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        _sample(name, *args, **kwargs)


TOKENS, DRAFT = np.zeros((3, 2), "int32"), np.zeros((3, 2, 5))


@pytest.mark.parametrize(
    "error, match, args",
    [
        (TypeError, "draft_tokens must have one of the dtypes int8.*got float64", (DRAFT[..., 0], DRAFT, sent.zeros((3, 3, 5)))),
        (ValueError, "draft_tokens must have at least one dimension, the draft; got a scalar", (TOKENS[0, 0], DRAFT, DRAFT)),
        (ValueError, r"draft_probabilities must have shape \(3, 2, 4\), that of draft_tokens, and tokens, got \(3, 4\)", (TOKENS, X, X)),
        (ValueError, r"target_probabilities must have shape \(3, 3, 5\), one more row than draft_probabilities has, got \(3, 2, 5\)", (TOKENS, DRAFT, DRAFT)),
        (TypeError, "target_probabilities must have the dtype of draft_probabilities, float64, got float16", (TOKENS, DRAFT, sent.zeros((3, 3, 5), "float16"))),
    ],
)  # fmt: skip
def test_what_speculative_sampling_refuses(error, match, args):
    with pytest.raises(error, match=f"^speculative_sampling: {match}"):
        bj.speculative_sampling(*args, KEY)


def test_what_speculative_tree_sampling_refuses():
    target = sent.zeros((3, 3, 5))
    for error, match, parents in (
        (TypeError, "parents must have one of the dtypes int8.*got float64", sent.zeros(2)),
        (ValueError, r"parents must have shape \(3, 2\), that of draft_tokens, or of its last dimension, got \(3,\)", sent.zeros(3, "int32")),
    ):  # fmt: skip
        with pytest.raises(error, match=f"^speculative_tree_sampling: {match}"):
            bj.speculative_tree_sampling(TOKENS, parents, DRAFT, target, KEY)
