"""Arrays of more than 2^31 elements, whose offsets need 64 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baracuda_jax as bj

pytestmark = pytest.mark.large
ROWS, COLUMNS = 2**26 + 3, 32


def test_segments_of_more_than_2_31_elements():
    data = jnp.zeros((ROWS, COLUMNS), jnp.uint8).at[-1, -1].set(7)
    ids = jnp.arange(ROWS, dtype=jnp.int32) % 3
    y, arg = bj.segment_max(data, ids, 4, return_residuals=True, implementation="native")
    last = (ROWS - 1) % 3
    want = np.zeros((4, COLUMNS))
    want[last, -1] = 7
    np.testing.assert_array_equal(y, want)
    assert arg[last, -1] == ROWS - 1
    np.testing.assert_array_equal(bj.segment_sum(data, ids, 4, implementation="native"), want)


def test_edges_and_ids_of_more_than_2_31_elements(platform):
    """The rows that they name are the last ones."""
    x = jnp.zeros((ROWS, COLUMNS), jnp.uint8).at[-1, -1].set(7)
    senders, receivers = np.array([ROWS - 1, 0, ROWS, ROWS - 1]), np.array([2, 0, 1, 0])
    want = np.zeros((3, COLUMNS))
    want[[0, 2], -1] = 7
    for reduce in ("sum", "max"):
        y = bj.aggregate(x, senders, receivers, num_segments=3, reduce=reduce, implementation="native")
        np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(bj.gather_rows(x, senders[:1], implementation="native"), want[2:])
    if platform == "cpu":
        return
    table = x.astype(jnp.bfloat16)
    del x
    bag = lambda table: bj.embedding_bag(senders, table, np.array([0, 1]), mode="sum", implementation="native")
    y, pull = jax.vjp(bag, table)
    assert y[:, -1].tolist() == [7, 7]
    (dtable,) = pull(jnp.ones_like(y))
    assert dtable[-1, -1] == 2 and dtable[0, 0] == 1 and not dtable[1:-1].any()


def test_gradients_of_more_than_2_31_elements(platform):
    if platform == "cpu":
        pytest.skip("takes 4 GiB and long on a CPU")
    ids = jnp.arange(ROWS, dtype=jnp.int32) % 3
    dx = bj.segment_sum_backward(
        ids, jnp.arange(3 * COLUMNS, dtype=jnp.bfloat16).reshape(3, COLUMNS), implementation="native"
    )
    want = jnp.arange(3 * COLUMNS, dtype=jnp.bfloat16).reshape(3, COLUMNS)
    for first in (0, ROWS // 2, ROWS - 3):
        np.testing.assert_array_equal(
            dx[first : first + 3].astype(jnp.float32), want[ids[first : first + 3]].astype(jnp.float32)
        )


def test_reductions_of_more_than_2_31_elements(platform):
    x = jnp.zeros((ROWS, COLUMNS), jnp.int8).at[-1, -1].set(7).at[0, 0].set(-3)
    assert (
        bj.sum(x, implementation="native") == 4
        and bj.max(x, implementation="native") == 7
        and bj.any(x[-1:], implementation="native")
    )
    want = np.zeros(COLUMNS)
    want[0], want[-1] = -3, 7
    np.testing.assert_array_equal(bj.sum(x, 0, implementation="native"), want)
    rows = bj.min(x, 1, implementation="native")
    assert rows[0] == -3 and rows[-1] == 0
    if platform == "cpu":
        return
    x = jnp.ones((ROWS, COLUMNS), jnp.bfloat16)
    y, pull = jax.vjp(lambda x: bj.mean(x, 0, implementation="native"), x)
    np.testing.assert_array_equal(y.astype(jnp.float32), 1)
    assert pull(y)[0][-1, -1] == jnp.bfloat16(1 / ROWS)


def test_the_error_of_a_sum_of_2_28_elements(platform):
    if platform == "cpu":
        pytest.skip("takes 3 GiB and long on a CPU")
    x = jax.random.uniform(jax.random.key(0), (2**28,), jnp.float32)
    want = np.asarray(x).sum(dtype=np.float64)
    assert abs(float(bj.sum(x, implementation="native")) - want) <= (28 + 8) * 2.0**-24 * want


def test_windows_of_more_than_2_31_elements(platform):
    if platform == "cpu":
        pytest.skip("takes 4 GiB and long on a CPU")
    x = jnp.ones((2**19 + 1, 1, 4096), jnp.bfloat16).at[-1, 0, -1].set(-3)
    y, pull = jax.vjp(lambda x: bj.lp_pool1d(x, 1, 2, implementation="native"), x)
    assert y.shape == (2**19 + 1, 1, 2048)
    np.testing.assert_array_equal(y[-1, 0, -2:].astype(jnp.float32), [2, 4])
    np.testing.assert_array_equal(y[0, 0, :2].astype(jnp.float32), [2, 2])
    (dx,) = pull(y)
    np.testing.assert_array_equal(dx[-1, 0, -3:].astype(jnp.float32), [2, 4, -4])


def test_cross_entropy_of_more_than_2_31_logits(platform):
    """Of 128,256 classes, the last row's last of which has another logit."""
    if platform == "cpu":
        pytest.skip("takes 9 GiB and long on a CPU")
    rows, classes = 2**31 // 128_256 + 2, 128_256
    x = jnp.zeros((rows, classes), jnp.bfloat16).at[-1, -1].set(3)
    target = np.full(rows, classes - 1)
    nll, pull = jax.vjp(lambda x: bj.cross_entropy_terms(x, target, axis=1, implementation="native"), x)
    np.testing.assert_allclose(nll[:-1], np.log(classes), rtol=1e-6)
    np.testing.assert_allclose(nll[-1], np.log(classes - 1 + np.exp(3)) - 3, rtol=1e-6)
    (dx,) = pull(jnp.ones_like(nll))
    p = 1 / (classes - 1 + np.exp([0, 3]))
    np.testing.assert_allclose(dx[0, :-1].astype(jnp.float32), p[0], rtol=2**-7)
    np.testing.assert_allclose(dx[-1, :-1].astype(jnp.float32), p[1], rtol=2**-7)
    np.testing.assert_array_equal(dx[:, -1].astype(jnp.float32), -1)
