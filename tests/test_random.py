"""Random ops: the bits of `jax.random`, the distributions, what is kept for gradients, and what is refused."""

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close, same_bits
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from oracles import random as oracles
from programs import FLOATS, normal
from sharded import devices, mesh

import baracuda_jax as bj
from baracuda_jax._core import compat

KEY = jax.random.key(7)
RAW = jax.random.key_data(KEY)
X = normal((5, 8), "float32")
OPS = {
    "random_uniform": lambda key, x: bj.random_uniform(key, shape=x.shape, dtype=jnp.float32),
    "random_normal": lambda key, x: bj.random_normal(key, shape=x.shape, dtype=jnp.float32),
    "random_bernoulli": lambda key, x: bj.random_bernoulli(key, 0.3, shape=x.shape),
    "dropout": lambda key, x: bj.dropout(x, key, 0.3),
    "multinomial": lambda key, x: bj.multinomial(x, key, 3, logits=True),
    "multinomial with replacement": lambda key, x: bj.multinomial(x, key, 4, replacement=True, logits=True),
}


# ---------------------------------------------------------------------------------------------------------------------
# Bits


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 5), (0,), ()], ids=str)
def test_the_bits_of_jax_random(shape, dtype):
    for key in (KEY, RAW):
        same_bits(bj.random_uniform(key, shape=shape, dtype=dtype), jax.random.uniform(KEY, shape, dtype))
        same_bits(
            bj.random_uniform(key, -2.0, 3.0, shape=shape, dtype=dtype), jax.random.uniform(KEY, shape, dtype, -2, 3)
        )
        same_bits(bj.random_normal(key, shape=shape, dtype=dtype), jax.random.normal(KEY, shape, dtype))
        p = sent.full(shape, 0.3, dtype)
        same_bits(bj.random_bernoulli(key, p), jax.random.bernoulli(KEY, p))
    same_bits(bj.random_bernoulli(KEY, 0.3, shape=shape), jax.random.bernoulli(KEY, 0.3, shape))


def test_the_default_dtype_is_jaxs(without_x64):
    assert bj.random_uniform(KEY, shape=3).dtype == bj.random_normal(KEY, shape=(3,)).dtype == jnp.float32
    same_bits(bj.random_uniform(KEY, shape=3), jax.random.uniform(KEY, 3))
    same_bits(bj.random_bernoulli(KEY, shape=(9,)), jax.random.bernoulli(KEY, shape=(9,)))


@pytest.mark.parametrize("replacement", [True, False])
def test_the_draws_of_categorical(replacement):
    logits = normal((4, 50), "float32")
    theirs = lambda logits: jax.random.categorical(KEY, logits, shape=(6, 4), replace=replacement).T
    np.testing.assert_array_equal(bj.multinomial(logits, KEY, 6, replacement=replacement, logits=True), theirs(logits))
    weights = jnp.abs(logits)
    np.testing.assert_array_equal(bj.multinomial(weights, KEY, 6, replacement=replacement), theirs(jnp.log(weights)))


@pytest.mark.parametrize("name", OPS)
def test_alone_mapped_and_on_shards_the_bits_are_the_same(name):
    fun, keys = OPS[name], jax.random.split(KEY, 3)
    alone = [fun(key, X) for key in keys]
    for got, want in zip(jax.jit(jax.vmap(fun, (0, None)))(keys, X), alone, strict=True):
        np.testing.assert_array_equal(got, want)
    if len(devices()) < 8:
        return
    for kind in ("auto", "explicit"):
        for spec in (P(None, "d"), P("d")):
            x = X if spec == P(None, "d") else X.T
            placed = jax.device_put(x, NamedSharding(mesh(kind), spec))
            with jax.set_mesh(mesh(kind)):
                got = jax.jit(fun)(RAW, placed)
            with jax.default_device(devices()[0]):
                np.testing.assert_array_equal(np.asarray(got), np.asarray(fun(KEY, x)))


def test_the_mask_on_explicit_axes_stays_on_its_shards():
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    over = mesh("explicit")
    x = jax.device_put(sent.ones((8, 6)), NamedSharding(over, P("d")))
    with jax.set_mesh(over):
        for axes in ((), (0,), (1,)):
            fun = jax.jit(jax.value_and_grad(lambda x, axes=axes: bj.dropout(x, RAW, 0.4, broadcast_axes=axes).sum()))
            compiled = fun.lower(x).compile()
            assert "all-gather" not in compiled.as_text()
            assert jax.typeof(compiled(x)[1]).sharding.spec == P("d", None)


# ---------------------------------------------------------------------------------------------------------------------
# Distributions


def _chi_square(counts, expected):
    """That of 99.9 % of draws, at least: the key is fixed."""
    from scipy.stats import chi2

    counts, expected = np.asarray(counts, np.float64), np.asarray(expected, np.float64)
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(0.999, counts.size - 1)


def test_uniform_and_normal_numbers_are_distributed_so():
    from scipy.stats import kstest

    uniform, numbers = bj.random_uniform(KEY, 2.0, 5.0, shape=100_000), bj.random_normal(KEY, 1.0, 3.0, shape=100_000)
    assert (uniform >= 2).all() and (uniform < 5).all()
    assert kstest((np.asarray(uniform) - 2) / 3, "uniform").pvalue > 1e-3
    assert kstest((np.asarray(numbers) - 1) / 3, "norm").pvalue > 1e-3


@pytest.mark.parametrize("replacement", [True, False])
def test_indices_are_drawn_by_their_weights(replacement):
    """Without replacement, pairs: p_i p_j / (1 - p_i)."""
    p, n = np.array([0.1, 0.0, 0.2, 0.7]), 100_000
    found = np.asarray(bj.multinomial(jnp.broadcast_to(5 * p, (n, 4)), KEY, 2, replacement=replacement))
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (found[:, 0], found[:, 1]), 1)
    expected = np.outer(p, p) if replacement else np.outer(p / (1 - p), p) * (1 - np.eye(4))
    assert (pairs[expected == 0] == 0).all()
    _chi_square(pairs[expected > 0], n * expected[expected > 0])


def test_elements_are_dropped_with_the_rate():
    y = np.asarray(bj.dropout(sent.ones(100_000), KEY, 0.3))
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.7], rtol=1e-6)
    _chi_square([(y == 0).sum(), (y != 0).sum()], [30_000, 70_000])


# ---------------------------------------------------------------------------------------------------------------------
# Multinomial


def test_indices_of_no_weight_are_never_drawn():
    weights = sent.asarray([[0.0, 2.0, 0.0, 1.0], [0, 0, 0, 0], [jnp.nan, -1, 5, jnp.nan]])
    got = bj.multinomial(weights, KEY, 3)
    assert sorted(got[0].tolist()) == [-1, 1, 3] and got[1].tolist() == [-1, -1, -1] and got[2].tolist() == [2, -1, -1]
    got = np.asarray(bj.multinomial(weights, KEY, 50, replacement=True))
    assert set(got[0]) == {1, 3} and set(got[1]) == {-1} and set(got[2]) == {2}
    logits = sent.asarray([-jnp.inf, 0.0, jnp.nan])
    assert set(np.asarray(bj.multinomial(logits, KEY, 9, replacement=True, logits=True))) == {1}


def test_zero_samples():
    assert bj.multinomial(sent.ones((2, 3)), KEY, 0).shape == (2, 0)


# ---------------------------------------------------------------------------------------------------------------------
# Dropout


def test_rates_of_0_and_1():
    x = sent.asarray([1.0, -2.0, jnp.inf, jnp.nan])
    same_bits(bj.dropout(x, KEY, 0.0), x)
    for rate in (1.0, jnp.float32(1)):
        y, gradient = jax.jit(jax.value_and_grad(lambda x, rate=rate: bj.dropout(x, KEY, rate).sum()))(x)
        assert y == 0 and (gradient == 0).all()


def test_without_training_nothing_is_dropped():
    same_bits(bj.dropout(X, training=False), X)
    same_bits(jax.jit(lambda x: bj.dropout(x, KEY, 1.0, training=False))(X), X)


def test_the_mask_is_that_of_flax():
    """bernoulli(key, 1 - rate) in float32, also with 64 bits enabled."""
    kept = jax.random.bernoulli(KEY, jnp.float32(0.7), X.shape)
    close(bj.dropout(X, KEY, 0.3), jnp.where(kept, X / 0.7, 0), "float32")
    same_bits(bj.dropout(X, KEY, jnp.float32(0.3)) != 0, kept)


@pytest.mark.parametrize("axes", [0, (1,), (0, -1)], ids=str)
def test_what_is_dropped_together(axes):
    y = np.asarray(bj.dropout(sent.ones((6, 7)), KEY, 0.5, broadcast_axes=axes))
    for axis in axes if isinstance(axes, tuple) else (axes,):
        assert (y == np.take(y, [0], axis)).all()


@pytest.mark.parametrize("axes", [(), -1, (0, 2)], ids=str)
@pytest.mark.parametrize("words", [2, 4], ids=["threefry", "philox"])
def test_dropout_in_plain_jax(words, axes):
    """Values and gradients, under vmap too, of keys and axes of which there is no kernel."""
    raw, x = np.random.default_rng(words).integers(0, 2**32, words, dtype=np.uint32), normal((4, 6, 5), "float64")
    fun = lambda x: bj.dropout(x, raw, 0.3, broadcast_axes=axes)
    y, pull = jax.vjp(jax.jit(fun), x)
    listed = axes if isinstance(axes, tuple) else (axes,)
    close(y, oracles.dropout(np.asarray(x), raw, 0.3, broadcast_axes=listed), "float64")
    close(pull(x)[0], y, "float64")
    same_bits(bj.backward.dropout_backward(x, raw, 0.3, broadcast_axes=axes), pull(x)[0])
    same_bits(jax.jit(jax.vmap(fun))(jnp.stack([x, x])), jnp.stack([fun(x), fun(x)]))


@pytest.mark.parametrize("name", ["random_uniform", "random_normal"])
def test_gradients_in_parameters_of_threefry(name):
    """dlow = sum of 1 - u, dhigh = sum of u; dmean = count, dstd = sum of z."""
    fun = getattr(bj, name)
    slopes = jax.jit(jax.grad(lambda a, b: fun(RAW, a, b, shape=50).sum(), (0, 1)))(jnp.float64(0.0), jnp.float64(1.0))
    drawn = np.asarray(fun(RAW, 0.0, 1.0, shape=50, dtype="float64")).sum()
    close(slopes[1], drawn, "float64")
    close(slopes[0], 50 - drawn if name == "random_uniform" else 50.0, "float64")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rate", [0.3, "traced"])
def test_the_gradient_has_the_values_mask(rate, dtype):
    x = 1 + jnp.abs(normal((4, 9), dtype))
    fun = lambda x, rate: bj.dropout(x, KEY, rate)
    wide = jnp.float64 if dtype == "float64" else jnp.float32
    given = wide(0.3) if rate == "traced" else 0.3

    @jax.jit
    def everything(x):
        y, pull = jax.vjp(lambda x: fun(x, given), x)
        square = lambda x: (fun(x, given).astype(wide) ** 3).sum() / 6
        return y, pull(sent.ones_like(x))[0], jax.grad(lambda x: jax.grad(square)(x).sum())(x)

    y, dx, second = everything(x)
    scale = np.where(np.asarray(y) != 0, 1 / 0.7, 0)
    close(dx, scale, dtype)
    close(second, scale**3 * np.asarray(x, np.float64), dtype, scale=4)


def test_a_rate_has_no_gradient():
    assert jax.jit(jax.grad(lambda rate: bj.dropout(X, KEY, rate).sum()))(jnp.float32(0.3)) == 0


def test_no_mask_is_kept_for_the_gradient():
    """The key is, and the linearized program draws from it."""
    x = sent.ones((64, 32))
    program = lambda x, key: jax.vjp(lambda x: bj.dropout(x, key, 0.3), x)
    kept = jax.tree.leaves(jax.eval_shape(lambda x, key: program(x, key)[1], x, KEY))
    assert [y.shape for y in kept if y.shape] == [] and sum(
        jnp.issubdtype(y.dtype, jax.dtypes.prng_key) for y in kept
    ) == 1
    pull = jax.jit(program)(x, KEY)[1]
    drawn = [e for e in compat.equations(jax.make_jaxpr(pull)(x)) if e.primitive.name == "random_bits"]
    assert len(drawn) == 1


# ---------------------------------------------------------------------------------------------------------------------
# Token penalties


def _theirs(logits, tokens, repetition, frequency, presence):
    """In PyTorch, row by row."""
    counts = torch.stack(
        [torch.bincount(t[(t >= 0) & (t < logits.shape[-1])], minlength=logits.shape[-1]) for t in tokens]
    )
    y = torch.where(logits < 0, logits * repetition[:, None], logits / repetition[:, None])
    y = y - frequency[:, None] * counts - presence[:, None]
    return torch.where(counts > 0, y, logits)


@pytest.mark.parametrize("dtype", FLOATS)
def test_token_penalty_is_torchs(dtype):
    rng = np.random.default_rng(0)
    tokens = rng.integers(-1, 18, (3, 20))
    logits, dy = normal((3, 16), dtype), normal((3, 16), dtype, 1)
    penalties = [sent.asarray(a, dtype) for a in (1 + rng.random((3, 3)))]
    want, gradients = by_torch.vjp(
        lambda logits, *p: _theirs(logits.double(), torch.tensor(tokens), *p).to(logits.dtype), (logits, *penalties), dy
    )
    fun = lambda logits, *p: bj.token_penalty(logits, tokens, *p)
    y, pulled = jax.jit(lambda *args: (lambda y, pull: (y, pull(dy)))(*jax.vjp(fun, *args)))(logits, *penalties)
    close(y, want, dtype)
    for got, expected in zip(pulled, gradients, strict=True):
        close(got, expected, dtype, scale=8)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_token_ids_of_any_width(dtype):
    """With more tokens than 8 bits count."""
    logits, info = sent.ones(300), jnp.iinfo(dtype)
    ids = np.array([0, 7, 7, info.max, info.min], dtype)
    want = oracles.token_penalty(np.ones(300), ids, 2.0, 0.25, 0.5)
    close(bj.token_penalty(logits, ids, 2.0, 0.25, 0.5), want, "float64")


def test_infinite_logits_and_no_tokens():
    logits = sent.asarray([-jnp.inf, jnp.inf, 3.0])
    same_bits(bj.token_penalty(logits, sent.asarray([0, 1]), 1.5, 1.0, 1.0), logits)
    same_bits(bj.token_penalty(X, sent.zeros((5, 0), int), 2.0, 1.0, 1.0), X)
    same_bits(bj.token_penalty(X, sent.full((5, 3), -1), 2.0, 1.0, 1.0), X)


# ---------------------------------------------------------------------------------------------------------------------
# Refused


OTHER = jax.random.key(0, impl="rbg")


@pytest.mark.parametrize(
    "name, error, match, args, kwargs",
    [
        ("random_uniform", TypeError, r"key must be one key, typed or uint32 of shape \(2,\) or \(4,\), got uint32 of shape \(3, 2\)", (sent.zeros((3, 2), jnp.uint32),), {}),
        ("random_uniform", TypeError, "key must be a key of threefry2x32 or philox, got one of rbg", (OTHER,), {}),
        ("random_uniform", TypeError, "dtype must be one of float32.*, got int32", (KEY,), {"dtype": jnp.int32}),
        ("random_uniform", ValueError, r"low must broadcast to shape, \(3,\), got \(2,\)", (KEY, sent.ones(2)), {"shape": 3}),
        ("random_uniform", ValueError, r"shapes must broadcast, got \(2,\) of low, \(3,\) of high", (KEY, sent.ones(2), sent.ones(3)), {}),
        ("random_uniform", ValueError, r"shape\[1\] must be at least 0, got -1", (KEY,), {"shape": (2, -1)}),
        ("random_normal", ValueError, "std must be at least 0, got -1", (KEY, 0.0, -1.0), {}),
        ("random_normal", TypeError, "mean must have one of the dtypes float32.*got int32", (KEY, sent.arange(3, dtype=jnp.int32)), {}),
        ("random_bernoulli", ValueError, "p must be at least 0 and at most 1, got 1.5", (KEY, 1.5), {}),
        ("dropout", ValueError, "rate must be at least 0 and at most 1, got -0.1", (X, KEY, -0.1), {}),
        ("dropout", ValueError, "rate must be at least 0 and at most 1, got nan", (X, KEY, float("nan")), {}),
        ("dropout", ValueError, r"rate must have shape \(\), that of one number, got \(5,\)", (X, KEY, X[:, 0]), {}),
        ("dropout", TypeError, "training must be True or False, got 1", (X, KEY), {"training": 1}),
        ("dropout", ValueError, r"broadcast_axes must be in \[-2, 1\] for x of shape \(5, 8\), got 2", (X, KEY), {"broadcast_axes": (2,)}),
        ("dropout", TypeError, "key must be an array, got NoneType", (X,), {}),
        ("dropout", TypeError, "x must have one of the dtypes float32.*got int32", (sent.arange(3, dtype=jnp.int32), KEY), {}),
        ("dropout", TypeError, "got an unexpected keyword argument 'p'; use rate", (X, KEY), {"p": 0.5}),
        ("dropout", TypeError, "got an unexpected keyword argument 'deterministic'; use training, which is its opposite", (X, KEY), {"deterministic": True}),
        ("multinomial", ValueError, "num_samples must be at most 8, the number of weights, without replacement, got 9", (X, KEY, 9), {}),
        ("multinomial", ValueError, r"x must have one weight a row at least, got shape \(\)", (1.0, KEY), {}),
        ("multinomial", TypeError, "replacement must be True or False, got 0", (X, KEY), {"replacement": 0}),
        ("token_penalty", ValueError, "repetition must be greater than 0, got 0", (X, sent.zeros((5, 2), int), 0), {}),
        ("token_penalty", ValueError, r"tokens must be \[..., T\] with the leading dimensions of logits, \(5,\), got shape \(2,\)", (X, sent.zeros(2, int)), {}),
        ("token_penalty", TypeError, "tokens must have one of the dtypes int8.*got float32", (X, X), {}),
        ("token_penalty", ValueError, r"presence must have shape \(5,\), that of the leading dimensions of logits, got \(8,\)", (X, sent.zeros((5, 2), int)), {"presence": X[0]}),
        ("dropout", ValueError, "implementation='native', but there are kernels for philox keys without broadcast_axes alone; xla computes the rest", (X, KEY), {"implementation": "native"}),
        ("dropout", ValueError, "implementation='native', but there are kernels for philox keys without", (X, np.arange(4, dtype=np.uint32)), {"implementation": "native", "broadcast_axes": 0}),
        ("random_normal", ValueError, "implementation='native', but there are kernels for philox keys alone; xla computes the rest", (KEY,), {"implementation": "native"}),
        ("dropout_backward", TypeError, "dy must have one of the dtypes float32.*got int32", (sent.arange(3, dtype=jnp.int32), KEY), {}),
    ],
)  # fmt: skip
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj if hasattr(bj, name) else bj.backward, name)(*args, **kwargs)


def test_a_plan_takes_a_typed_key():
    plan = bj.plan("dropout", X, KEY, rate=0.3)
    same_bits(plan(X, KEY), bj.dropout(X, KEY, 0.3))
    assert plan.backend == "xla"
