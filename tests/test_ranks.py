"""Ranks of quantiles are exact integers, however long a row is."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent

import baracuda_jax as bj
from baracuda_jax.sort import _ranks

SHARES = [0, 1, 0.5, 0.25, 1 / 3, 0.1, 0.9, 1e-9, 1 - 2**-24, 2.0**-25, 2.0**-40]
COUNTS = [0, 1, 2, 2**23 + 1, 2**24 - 1, 2**24, 2**24 + 1, 2**31 - 2, 2**31 - 1]


@pytest.mark.parametrize(
    "share, count", [("float32", "int32"), ("float64", "int32"), ("float32", "int64"), ("float64", "int64")]
)
def test_ranks_are_exact(share, count):
    rng = np.random.default_rng(0)
    shares = np.concatenate([SHARES, rng.random(200)]).astype(share)
    most = 2**31 if count == "int32" else 2**40
    counts = np.concatenate([COUNTS, rng.integers(0, most, 50)]).astype(count)
    low, high, fraction = map(np.asarray, jax.jit(_ranks.between)(counts[:, None], shares[None]))
    for i, n in enumerate(counts):
        for j, q in enumerate(shares):
            exact = Fraction(float(q)) * int(n)
            assert (low[i, j], high[i, j]) == (exact.__floor__(), exact.__ceil__()), (n, q)
            assert abs(float(exact - exact.__floor__()) - fraction[i, j]) < 2**-22, (n, q)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ranks_of_short_rows_are_numpys(dtype):
    """0.1 of 30 is 3, and not between 3 and 4."""
    count, shares = np.arange(200, dtype=np.int32)[:, None], (np.arange(101) / 100).astype(dtype)
    low, high, fraction = _ranks.around(sent.asarray(count), sent.asarray(shares), 200)
    product = count.astype(dtype) * shares
    np.testing.assert_array_equal(low, np.floor(product))
    np.testing.assert_array_equal(high, np.ceil(product))
    np.testing.assert_array_equal(fraction, product - np.floor(product))


@pytest.mark.parametrize("name", ["median", "nanmedian", "quantile"])
def test_the_middle_of_a_long_row(name):
    """Of 2^23 + 1 zeros and as many ones, 0.5."""
    x = sent.asarray(np.arange(2**24 + 2) > 2**23, jnp.int8 if name == "median" else jnp.float32)
    args = (jnp.float32(0.5),) if name == "quantile" else ()
    assert float(getattr(bj, name)(x, *args, implementation="native")) == 0.5


def test_the_derivative_in_the_share():
    x = sent.asarray([3.0, 1.0, 7.0])
    assert (
        jax.jit(jax.grad(lambda q: bj.quantile(x, q)))(0.25) == 4 and jax.grad(lambda q: bj.quantile(x, q))(0.75) == 8
    )
