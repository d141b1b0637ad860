"""Losses compared with PyTorch's and optax's, their edges, and what they refuse."""

import functools
import math
import re

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import sent
from by_torch import torch
from examples_of import close
from jax.sharding import PartitionSpec as P
from programs import FLOATS, normal
from sharded import collectives, devices, mesh, put

import baracuda_jax as bj

F = torch.nn.functional
SHAPE = (6, 5)
NAN, INF = float("nan"), float("inf")
EACH = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


def _normal(rng):
    return rng.standard_normal(SHAPE)


def _positive(rng):
    return rng.uniform(0.2, 3, SHAPE)


def _inside(rng):
    return rng.uniform(0.05, 0.95, SHAPE)


def _signs(rng):
    return rng.choice([-1.0, 1.0], SHAPE)


def _row_signs(rng):
    return rng.choice([-1, 1], SHAPE[0])


def _classes(rng):
    return np.array([0, 4, -100, 2, 2, 1])


def _few_classes(rng):
    return np.array([0, 4, 3, 2, 2, 1])


def _labels(rng):
    return np.array([[3, 0, -1, 1, 2], [-1, 0, 0, 0, 0], [0, 1, 2, 3, 4], [2, 2, -1, 0, 0], [4, -1, 3, -1, 2], [1] * 5])


def _weight(rng):
    return rng.uniform(0.2, 2, SHAPE[1])


# The op's name, PyTorch's, what draws the operands, the keywords of both.
LINES = {
    "mse": ("mse_loss", F.mse_loss, (_normal, _normal), {}),
    "mse with a weight": ("mse_loss", F.mse_loss, (_normal, _normal, ("weight", _positive)), {}),
    "l1": ("l1_loss", F.l1_loss, (_normal, _normal), {}),
    "l1 with a weight": ("l1_loss", F.l1_loss, (_normal, _normal, ("weight", _positive)), {}),
    "huber": ("huber_loss", F.huber_loss, (_normal, _normal), {"delta": 0.7}),
    "huber with a weight": ("huber_loss", F.huber_loss, (_normal, _normal, ("weight", _positive)), {}),
    "smooth l1": ("smooth_l1_loss", F.smooth_l1_loss, (_normal, _normal), {"beta": 0.7}),
    "smooth l1 of 0": ("smooth_l1_loss", F.smooth_l1_loss, (_normal, _normal), {"beta": 0}),
    "bce": ("bce_loss", F.binary_cross_entropy, (_inside, _inside, ("weight", _positive)), {}),
    "bce with logits": (
        "bce_with_logits_loss", F.binary_cross_entropy_with_logits,
        (_normal, _inside, ("weight", _positive), ("pos_weight", _weight)), {},
    ),
    "kl": ("kl_div_loss", F.kl_div, (_normal, _inside), {}),
    "kl of logarithms": ("kl_div_loss", F.kl_div, (_normal, _normal), {"log_target": True}),
    "poisson": ("poisson_nll_loss", F.poisson_nll_loss, (_normal, _positive), {"full": True}),
    "poisson of rates": ("poisson_nll_loss", F.poisson_nll_loss, (_positive, _positive), {"log_input": False}),
    "gaussian": ("gaussian_nll_loss", F.gaussian_nll_loss, (_normal, _normal, _positive), {"full": True}),
    "gaussian below eps": ("gaussian_nll_loss", F.gaussian_nll_loss, (_normal, _normal, _positive), {"eps": 1.0}),
    "hinge embedding": ("hinge_embedding_loss", F.hinge_embedding_loss, (_normal, _signs), {"margin": 0.5}),
    "hinge of other targets": ("hinge_embedding_loss", F.hinge_embedding_loss, (_normal, _normal), {}),
    "margin ranking": ("margin_ranking_loss", F.margin_ranking_loss, (_normal, _normal, _signs), {"margin": 0.3}),
    "nll": ("nll_loss", F.nll_loss, (_normal, _classes, ("weight", _weight)), {}),
    "nll ignoring 2": ("nll_loss", F.nll_loss, (_normal, _few_classes), {"ignore_index": 2}),
    "cross entropy": ("cross_entropy_loss", F.cross_entropy, (_normal, _classes, ("weight", _weight)), {}),
    "cross entropy, smoothed": (
        "cross_entropy_loss", F.cross_entropy, (_normal, _classes, ("weight", _weight)), {"label_smoothing": 0.3},
    ),
    "cross entropy without weights": ("cross_entropy_loss", F.cross_entropy, (_normal, _classes), {"label_smoothing": 0.3}),
    "cross entropy of probabilities": (
        "cross_entropy_loss", F.cross_entropy, (_normal, _inside, ("weight", _weight)), {"label_smoothing": 0.3},
    ),
    "soft cross entropy": ("cross_entropy_soft_loss", F.cross_entropy, (_normal, _inside, ("weight", _weight)), {}),
    "multi margin": ("multi_margin_loss", F.multi_margin_loss, (_normal, _few_classes, ("weight", _weight)), {}),
    "squared multi margin": (
        "multi_margin_loss", F.multi_margin_loss, (_normal, _few_classes, ("weight", _weight)), {"p": 2, "margin": 0.4},
    ),
    "multilabel margin": ("multilabel_margin_loss", F.multilabel_margin_loss, (_normal, _labels), {}),
    "multilabel soft margin": (
        "multilabel_soft_margin_loss", F.multilabel_soft_margin_loss, (_normal, _inside, ("weight", _weight)), {},
    ),
    "cosine embedding": (
        "cosine_embedding_loss", F.cosine_embedding_loss, (_normal, _normal, _row_signs), {"margin": 0.2},
    ),
    "triplet margin": ("triplet_margin_loss", F.triplet_margin_loss, (_normal,) * 3, {}),
    "triplet margin with a swap": (
        "triplet_margin_loss", F.triplet_margin_loss, (_normal,) * 3, {"swap": True, "p": 3, "margin": 2.0},
    ),
    "triplet margin of p = 1": ("triplet_margin_loss", F.triplet_margin_loss, (_normal,) * 3, {"p": 1}),
    "triplet margin of p = inf": ("triplet_margin_loss", F.triplet_margin_loss, (_normal,) * 3, {"p": INF}),
}  # fmt: skip

# PyTorch's other losses have none; the laws compare the ops' gradients with differences.
WITH_DERIVATIVES_IN_WEIGHTS = ("mse_loss", "l1_loss", "huber_loss", "multilabel_soft_margin_loss")


def _drawn(draws, dtype):
    """Operands of a dtype, and the names of those that are given by name."""
    rng = np.random.default_rng(7)
    names = [draw[0] if isinstance(draw, tuple) else None for draw in draws]
    arrays = [(draw[1] if isinstance(draw, tuple) else draw)(rng) for draw in draws]
    return names, [sent.asarray(a, dtype) if a.dtype == np.float64 else sent.asarray(a) for a in arrays]


def _called(fun, names, kwargs):
    count = names.count(None)
    return lambda *arrays: fun(*arrays[:count], **dict(zip(names[count:], arrays[count:], strict=True)), **kwargs)


@EACH
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("line", LINES)
def test_values_and_gradients_are_torchs(line, dtype, reduction):
    """PyTorch's in float64, of the same operands."""
    function, theirs, draws, kwargs = LINES[line]
    kwargs = kwargs | {"reduction": reduction}
    names, arrays = _drawn(draws, dtype)
    function, theirs = _called(getattr(bj, function), names, kwargs), _called(theirs, names, kwargs)
    is_float = [jnp.issubdtype(a.dtype, jnp.floating) for a in arrays]
    tensors = [by_torch.tensor(a, "float64" if f else None) for a, f in zip(arrays, is_float, strict=True)]
    fixed = [name is not None and LINES[line][0] not in WITH_DERIVATIVES_IN_WEIGHTS for name in names]
    moving = [i for i, f in enumerate(is_float) if f and not fixed[i]]
    for i in moving:
        tensors[i].requires_grad_()
    want = theirs(*tensors)
    dy = sent.asarray(np.random.default_rng(1).uniform(0.5, 2, want.shape), dtype)
    given = torch.autograd.grad(want, [tensors[i] for i in moving], by_torch.tensor(dy, "float64"), allow_unused=True)

    @jax.jit
    def both(arrays, dy):
        of = lambda *some: function(*(some[moving.index(i)] if i in moving else a for i, a in enumerate(arrays)))
        y, pull = jax.vjp(of, *(arrays[i] for i in moving))
        return y, pull(dy)

    y, gradients = both(arrays, dy)
    assert y.dtype == dtype
    close(y, by_torch.numbers(want), dtype)
    for got, expected in zip(gradients, given, strict=True):
        close(got, np.zeros(got.shape) if expected is None else by_torch.numbers(expected), dtype, scale=2)


@pytest.mark.parametrize(
    "function, theirs",
    [
        (
            lambda x, t, q: bj.cross_entropy_loss(x, t, reduction="none"),
            lambda x, t, q: optax.losses.softmax_cross_entropy_with_integer_labels(x, t),
        ),
        (
            lambda x, t, q: bj.cross_entropy_soft_loss(x, q, reduction="none"),
            lambda x, t, q: optax.losses.softmax_cross_entropy(x, q),
        ),
        (
            lambda x, t, q: bj.bce_with_logits_loss(x, q, reduction="none"),
            lambda x, t, q: optax.losses.sigmoid_binary_cross_entropy(x, q),
        ),
        (
            lambda x, t, q: bj.kl_div_loss(x, q, reduction="none").sum(-1),
            lambda x, t, q: optax.losses.kl_divergence(x, q),
        ),
        (
            lambda x, t, q: bj.kl_div_loss(x, jnp.log(q), log_target=True, reduction="none").sum(-1),
            lambda x, t, q: optax.losses.kl_divergence_with_log_targets(x, jnp.log(q)),
        ),
        (lambda x, t, q: bj.huber_loss(x, q, reduction="none"), lambda x, t, q: optax.losses.huber_loss(x, q)),
        (lambda x, t, q: bj.mse_loss(x, q, reduction="none") / 2, lambda x, t, q: optax.losses.l2_loss(x, q)),
        (
            lambda x, t, q: bj.cosine_embedding_loss(x, q, 1, reduction="none"),
            lambda x, t, q: optax.losses.cosine_distance(x, q),
        ),
    ],
)
def test_terms_are_optaxs(function, theirs):
    rng = np.random.default_rng(0)
    args = sent.asarray(_normal(rng)), sent.asarray(_few_classes(rng)), sent.asarray(_inside(rng))
    close(function(*args), theirs(*args), "float64", scale=10)


# ---------------------------------------------------------------------------------------------------------------------
# Of a linear layer


def _layer(rows=11):
    rng, width, classes = np.random.default_rng(5), 6, 7
    drawn = rng.standard_normal((rows, width)), rng.standard_normal((classes, width)), rng.standard_normal(classes)
    target = rng.integers(-1, classes, rows).astype(np.int32)
    return [sent.asarray(a) for a in (*drawn, rng.uniform(0.2, 2, classes))], sent.asarray(target)


LAYERS = [{}, {"z_loss": 0.01, "softcap": 2.0}, {"label_smoothing": 0.2, "z_loss": 0.1}]


def test_cross_entropy_has_a_kernel_for_its_value_and_one_for_its_gradient():
    """The second reads what the first saved."""
    x, target = sent.ones((4, 7), "float32"), sent.zeros(4, int)
    calls = bj.plan("cross_entropy_loss", x, target, implementation="native").backward.calls
    assert [(call.name, call.backend) for call in calls] == [
        ("cross_entropy_terms", "native"), ("cross_entropy_terms_backward", "native"),
    ]  # fmt: skip
    program = jax.jit(jax.grad(functools.partial(bj.cross_entropy_loss, implementation="native"))).lower(x, target)
    for target in ("reduce_logsumexp", "cross_entropy_terms_backward"):
        assert program.as_text().count(f"baracuda.{target}") == 1


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "float64"))
@pytest.mark.parametrize("softcap", (None, 3.0))
def test_the_gradient_of_cross_entropy_at_every_edge(dtype, softcap):
    """By the kernel as by plain JAX: infinities, NaN, ignored rows whatever they have, no rows and one class."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 70)) * 4
    x[1, 3], x[2, 5], x[3], x[4, 0], x[5, :4] = -np.inf, np.nan, -np.inf, np.inf, -np.inf
    target = np.array([69, 2, 5, 1, 0, -100, 70])
    with jax.enable_x64(dtype == "float64"):
        for rows, classes in ((7, 70), (7, 64), (0, 5), (7, 1)):
            a, t = sent.asarray(x[:rows, :classes], dtype), sent.asarray(np.minimum(target[:rows], classes))
            dnll, dlse = sent.asarray(rng.standard_normal((2, rows)), "float64" if dtype == "float64" else "float32")
            of = lambda name, a=a, t=t, d=(dnll, dlse): jax.jit(
                lambda *arrays: bj.backward.cross_entropy_terms_backward(
                    *arrays, softcap=softcap, axis=-1, implementation=name
                )
            )(a, t, *d)
            native, plain = of("native"), of("xla")
            assert native.dtype == a.dtype
            tolerance = {"float32": 1e-6, "bfloat16": 1e-2, "float64": 1e-12}[dtype]
            np.testing.assert_allclose(
                np.asarray(native, np.float64), np.asarray(plain, np.float64), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_gradient_of_cross_entropy_of_odd_rows(dtype):
    """So many that vectors begin at another column in each row."""
    x, target = normal((131, 4099), dtype), np.arange(131) * 31 - 1
    dx = jax.grad(lambda x: bj.cross_entropy_terms(x, target, implementation="native").sum())(x)
    wide = np.asarray(x).astype(np.float64)
    want = np.exp(wide - wide.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    want[np.arange(131), target] -= 1
    want[0] = 0
    close(dx, want, dtype, scale=4)


def test_terms_are_what_losses_are_made_of():
    """In float32, with derivatives of both; rows that are ignored have none, whatever they have."""
    x = sent.asarray([[2.0, 0.0, 1.0], [np.nan, 3.0, 0.0], [1e4, 0.0, -1e4]], "bfloat16")
    target = sent.asarray([0, -1, 1])
    nll, lse = bj.cross_entropy_terms(x, target, return_lse=True)
    assert nll.dtype == lse.dtype == jnp.float32
    np.testing.assert_allclose(nll, [0.40760596, 0, 9984], rtol=1e-6)
    np.testing.assert_allclose(lse, [2.407606, 0, 9984], rtol=1e-6)
    both = lambda x: sum(y.sum() for y in bj.cross_entropy_terms(x, target, return_lse=True))
    slope = np.asarray(jax.jit(jax.grad(both))(x), np.float64)
    p = np.exp([2.0, 0, 1]) / np.exp([2.0, 0, 1]).sum()
    np.testing.assert_allclose(slope[0], 2 * p - [1, 0, 0], atol=4e-3)
    np.testing.assert_array_equal(slope[1:], [[0, 0, 0], [2, -1, 0]])


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("axis", [-1, 0])
def test_the_gradient_of_donated_logits_is_stored_where_they_were(axis, implementation):
    """Also of logits inside of a program; and logits that are read afterwards are copied first."""
    rng = np.random.default_rng(6)
    shape, size = (64, 512), 64 * 512 * 4
    target = rng.integers(0, shape[axis], shape[axis + 1])
    drawn = rng.standard_normal(shape).astype("float32")
    options = {"axis": axis, "donate": True, "implementation": implementation}
    loss = lambda x, options=options: bj.cross_entropy_loss(x, target, **options)
    want = jax.jit(jax.grad(functools.partial(loss, options=options | {"donate": False})))(drawn)
    given, within = jax.jit(jax.grad(loss), donate_argnums=0), jax.jit(lambda x: jnp.tanh(jax.grad(loss)(jnp.sin(x))))
    memory = given.lower(drawn).compile().memory_analysis()
    assert memory.alias_size_in_bytes == size
    if axis:
        assert memory.temp_size_in_bytes < size / 8
        assert within.lower(drawn).compile().memory_analysis().temp_size_in_bytes < 1.125 * size
    np.testing.assert_array_equal(given(jnp.array(drawn)), want)
    x, dx = jax.jit(lambda x: (2 * x, jax.grad(loss)(2 * x)))(drawn)
    np.testing.assert_array_equal(x, 2 * drawn)
    np.testing.assert_array_equal(dx, jax.jit(jax.grad(loss))(2 * drawn))
    again = jnp.array(drawn)
    np.testing.assert_array_equal(jax.grad(loss)(again), want)
    np.testing.assert_array_equal(again, drawn)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_accuracy_is_that_of_the_first_largest_logit(dtype):
    """NumPy's argmax; ignored rows have none, and the derivatives of the terms are the same."""
    rng = np.random.default_rng(4)
    x, target = np.round(rng.standard_normal((3, 5, 40))), rng.integers(-1, 6, (3, 40))
    x[0, :, 0], target[0, 0] = -np.inf, 0
    of = functools.partial(bj.cross_entropy_terms, return_correct=True)
    nll, lse, correct = of(sent.asarray(x, dtype), target, return_lse=True)
    np.testing.assert_array_equal(correct, x.argmax(1) == target)
    assert correct.dtype == bool and 0 < correct.sum() < correct.size
    for same, want in zip(
        (nll, lse), bj.cross_entropy_terms(sent.asarray(x, dtype), target, return_lse=True), strict=True
    ):
        np.testing.assert_array_equal(same, want)
    x = sent.asarray(x[1:], dtype)
    sums = (lambda x: of(x, target[1:])[0].sum(), lambda x: bj.cross_entropy_terms(x, target[1:]).sum())
    np.testing.assert_array_equal(*(np.asarray(jax.jit(jax.grad(fun))(x), np.float64) for fun in sums))
    assert not of(sent.zeros((2, 0), dtype), sent.zeros(2, int))[1].any()


@pytest.mark.parametrize("chunk_rows", [4, None])
@pytest.mark.parametrize("kwargs", LAYERS, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_layers_cross_entropy_is_that_of_its_logits(reduction, kwargs, chunk_rows):
    """Also the tangent, the gradient and the gradient's gradient."""
    arrays, target = _layer()
    shares = jnp.cos(jnp.arange(11.0)) if reduction == "none" else 1.0
    more = {"reduction": reduction, **kwargs}

    def chunked(x, weight, bias, factors):
        return (bj.linear_cross_entropy(x, weight, target, bias, factors, chunk_rows=chunk_rows, **more) * shares).sum()

    def plain(x, weight, bias, factors):
        return (bj.cross_entropy_loss(x @ weight.T + bias, target, factors, **more) * shares).sum()

    def everything(fun):
        of_all = lambda *arrays: jax.grad(fun, (0, 1, 2, 3))(*arrays)
        tangents = [jnp.sin(1 + jnp.arange(a.size, dtype=a.dtype)).reshape(a.shape) for a in arrays]
        along = lambda *arrays: sum((a * t).sum() for a, t in zip(of_all(*arrays), tangents, strict=True))
        return (*jax.jvp(fun, arrays, tangents), *of_all(*arrays), *jax.grad(along, (0, 1, 2, 3))(*arrays))

    for found, want in zip(
        jax.jit(everything, static_argnums=0)(chunked), jax.jit(everything, static_argnums=0)(plain), strict=True
    ):
        close(found, want, "float64", scale=100)


def test_a_layers_logits_are_never_whole():
    """Of either program, whose largest array has a chunk of rows; and a frozen layer has no gradient."""
    rows, width, classes, chunk = 512, 16, 300, 64
    x, weight, target = sent.zeros((rows, width)), sent.zeros((classes, width)), sent.zeros(rows, int)

    def sizes(fun):
        shapes = re.findall(r"tensor<([\dx]+)xf\d+>", jax.jit(fun).lower(x, weight).as_text())
        return {math.prod(map(int, shape.split("x"))) for shape in shapes}

    for reduction in ("mean", "none"):
        loss = lambda x, weight, r=reduction: bj.linear_cross_entropy(
            x, weight, target, reduction=r, chunk_rows=chunk
        ).sum()
        assert max(sizes(jax.value_and_grad(loss, (0, 1)))) <= chunk * classes
    loss = lambda x, weight: bj.linear_cross_entropy(x, weight, target, chunk_rows=chunk)
    products = lambda moving: jax.jit(jax.grad(loss, moving)).lower(x, weight).as_text().count("dot_general")
    # Those of the first chunk, where sums begin, and those of the loop.
    assert products(0) == 2 and products((0, 1)) == 2 * 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_layers_gradient_is_added_up_in_float32(dtype):
    """Where a chunk adds less to it than a digit of 16 bits."""
    rows = 4096
    x, weight = sent.ones((rows, 1), dtype), sent.zeros((2, 1), dtype)
    loss = lambda weight: bj.linear_cross_entropy(x, weight, sent.zeros(rows, int), reduction="sum", chunk_rows=1)
    assert jax.jit(jax.grad(loss))(weight).ravel().tolist() == [-rows / 2, rows / 2]


def test_rows_of_a_layer_that_are_ignored():
    """Whatever is in them, also next to a bias of -inf and in the rows that fill up a chunk."""
    (x, weight, *_), _ = _layer(rows=4)
    x = x.at[1].set(NAN)
    bias = sent.zeros(7).at[0].set(-INF)
    fun = lambda x, target: bj.linear_cross_entropy(x, weight, target, bias, chunk_rows=3)
    value, gradient = jax.jit(jax.value_and_grad(fun))(x, sent.asarray([3, -100, 9, 2]))
    close(value, fun(x[sent.asarray([0, 3])], sent.asarray([3, 2])), "float64")
    assert jnp.isfinite(gradient).all() and not gradient[sent.asarray([1, 2])].any()
    nothing, gradient = jax.jit(jax.value_and_grad(fun))(x, sent.full(4, -100))
    assert jnp.isnan(nothing) and not gradient.any()
    assert jnp.isnan(fun(x[:0], sent.zeros(0, int)))


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_layer_whose_classes_are_sharded(reduction, kind):
    """Sums of each row are exchanged, once for the value, and of x's gradient; neither the layer nor logits are."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    rng, over = np.random.default_rng(3), mesh(kind)
    x, weight, target = rng.standard_normal((12, 8)), rng.standard_normal((16, 8)), rng.integers(-1, 16, 12)

    def loss(x, weight, target):
        return bj.linear_cross_entropy(x, weight, target, reduction=reduction, chunk_rows=5).sum()

    of_both = jax.jit(jax.value_and_grad(loss, (0, 1)))
    want = of_both(x, weight, target)
    for specs in ((P(), P("d"), P()), (P(), P(None, "d"), P())):
        placed = put((x, weight, target), over, specs)
        for got, expected in zip(jax.tree.leaves(of_both(*placed)), jax.tree.leaves(want), strict=True):
            close(got, expected, "float64", scale=10)
    placed = put((x, weight, target), over, (P(), P("d"), P()))
    assert set(collectives(of_both.lower(*placed).compile().as_text())) == {"all-reduce"}


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("chunk_rows", [16, 30])
def test_a_layer_whose_rows_are_sharded(chunk_rows, kind):
    """Each device computes the logits of its part of each chunk, and only gradients of the layer are added up."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    rng, over = np.random.default_rng(4), mesh(kind)
    x, weight, target = rng.standard_normal((64, 8)), rng.standard_normal((16, 8)), rng.integers(-1, 16, 64)
    loss = lambda x, weight, target: bj.linear_cross_entropy(x, weight, target, chunk_rows=chunk_rows)
    of_both = jax.jit(jax.value_and_grad(loss, (0, 1)))
    placed = put((x, weight, target), over, (P("d"), P(), P("d")))
    for got, want in zip(jax.tree.leaves(of_both(*placed)), jax.tree.leaves(of_both(x, weight, target)), strict=True):
        close(got, want, "float64", scale=10)
    if chunk_rows == 16:  # as many rows on each device
        text = of_both.lower(*placed).compile().as_text()
        assert set(collectives(text)) == {"all-reduce"} and not re.search(r"f64\[16,16\]\S* dot\(", text)


# ---------------------------------------------------------------------------------------------------------------------
# Shapes and dtypes


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy_loss", "multi_margin_loss"])
def test_classes_along_any_axis(name, axis):
    rng = np.random.default_rng(2)
    x, weight = sent.asarray(rng.standard_normal((4, 3, 5))), sent.asarray(rng.uniform(0.5, 2, (4, 3, 5)[axis]))
    target = sent.asarray(rng.integers(-1, 3, np.delete(x.shape, axis)))
    fun = functools.partial(getattr(bj, name), reduction="none")
    y = fun(x, target, weight, axis=axis)
    rows = jnp.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    close(y.ravel(), fun(rows, target.ravel(), weight), "float64")
    close(y[0, 0], fun(rows[0], target[0, 0], weight), "float64")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int64", "uint64"])
def test_classes_of_any_integer_type(dtype):
    """Also where there are more classes than the type has numbers."""
    x = sent.asarray(np.random.default_rng(0).standard_normal((3, 300)))
    target = sent.asarray([0, 127, 3], dtype)
    close(bj.nll_loss(x, target, reduction="none"), -x[sent.arange(3), target.astype(int)], "float64")
    assert bj.nll_loss(x[:1, :100], sent.asarray([jnp.iinfo(dtype).max], dtype), reduction="sum") == 0


def test_half_precision_next_to_float32():
    x, q, w = (sent.asarray(draw(np.random.default_rng(i))) for i, draw in enumerate((_normal, _inside, _positive)))
    half = x.astype(jnp.bfloat16)
    y = bj.bce_with_logits_loss(half, q.astype(jnp.float32), w.astype(jnp.float32))
    assert y.dtype == jnp.bfloat16
    close(y, bj.bce_with_logits_loss(half.astype(jnp.float64), q, w), "bfloat16")
    y = bj.mse_loss(sent.full(4096, 300, jnp.float16), sent.zeros(4096, jnp.float16))
    assert y == INF  # 90000 is beyond float16, and so is not a sum of squares that is divided
    assert bj.mse_loss(sent.full(4096, 200, jnp.float16), sent.zeros(4096, jnp.float16)) == 40000


def test_python_numbers_broadcast():
    x = sent.asarray(_normal(np.random.default_rng(0)), jnp.float32)
    close(bj.gaussian_nll_loss(x, x + 1, 0.5), bj.gaussian_nll_loss(x, x + 1, sent.full_like(x, 0.5)), "float32")
    close(bj.mse_loss(x, x + 1, 2.0), 1.0, "float32")
    close(bj.margin_ranking_loss(x, x + 1, 1), 1.0, "float32")
    close(bj.cosine_embedding_loss(x, x, 1), 0.0, "float32")


def test_any_number_of_labels():
    x, labels = sent.asarray(_normal(np.random.default_rng(0))), sent.asarray(_labels(None))
    some = sent.asarray([[3, 0, -1], [-1, 0, 0], [0, 1, 7], [2, 2, -1], [4, -1, 3], [1, 1, 1]])
    padded = jnp.pad(some, ((0, 0), (0, 2)), constant_values=-1).at[2, 2].set(-1)
    close(bj.multilabel_margin_loss(x, some), bj.multilabel_margin_loss(x, padded), "float64")
    close(
        bj.multilabel_margin_loss(x.T, labels.T, axis=0, reduction="none"),
        bj.multilabel_margin_loss(x, labels, reduction="none"),
        "float64",
    )


# ---------------------------------------------------------------------------------------------------------------------
# Edges


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy_loss", "multi_margin_loss"])
def test_an_ignored_row_has_no_value_and_no_gradient(name):
    """Whatever is in it; classes outside are ignored."""
    fun = getattr(bj, name)
    x = sent.asarray([[1.0, 2.0, 0.5], [NAN, INF, -INF], [0.0, NAN, 0.0]])
    target, kwargs = sent.asarray([2, 3, -1]), {"label_smoothing": 0.1} if name == "cross_entropy_loss" else {}
    for weight in (None, sent.asarray([0.5, 2.0, 3.0])):
        mean = functools.partial(fun, target=target, weight=weight, **kwargs)
        value, gradient = jax.jit(jax.value_and_grad(mean))(x)
        alone, alone_gradient = jax.jit(jax.value_and_grad(lambda x, w=weight: fun(x, target[:1], w, **kwargs)))(x[:1])
        close(value, alone, "float64")
        close(gradient[:1], alone_gradient, "float64")
        assert not gradient[1:].any()
        second = jax.jit(jax.hessian(mean))(x)
        assert jnp.isfinite(second).all() and not second[1:].any()


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy_loss", "multi_margin_loss"])
def test_all_rows_ignored(name):
    fun, x, target = getattr(bj, name), sent.ones((2, 3)), sent.asarray([-100, -100])
    value, gradient = jax.jit(jax.value_and_grad(fun))(x, target)
    assert jnp.isnan(value) and not gradient.any()
    assert fun(x, target, reduction="sum") == 0
    assert fun(x, target, reduction="none").tolist() == [0, 0]


EMPTY = {
    "mse_loss": ((0, 3), (0, 3)), "bce_loss": ((0,), (0,)), "kl_div_loss": ((0, 3), (0, 3)),
    "gaussian_nll_loss": ((0,), (0,), (1,)), "margin_ranking_loss": ((0,),) * 3,
    "multilabel_soft_margin_loss": ((0, 3), (0, 3)), "cosine_embedding_loss": ((0, 3), (0, 3), (0,)),
    "triplet_margin_loss": ((0, 3),) * 3, "cross_entropy_soft_loss": ((0, 3), (0, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_no_elements(name):
    """As in PyTorch."""
    arrays = [sent.zeros(shape, jnp.float32) for shape in EMPTY[name]]
    fun = getattr(bj, name)
    assert jnp.isnan(fun(*arrays)) and fun(*arrays, reduction="sum") == 0
    assert fun(*arrays, reduction="none").shape[0] == 0
    assert jax.jit(jax.grad(fun))(*arrays).shape == arrays[0].shape


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy_loss", "multi_margin_loss", "multilabel_margin_loss"])
def test_no_rows(name):
    x = sent.zeros((0, 3), jnp.float32)
    target = sent.zeros((0, 3) if "label" in name else (0,), jnp.int32)
    assert jnp.isnan(getattr(bj, name)(x, target)) and getattr(bj, name)(x, target, reduction="sum") == 0


def test_binary_cross_entropy_of_certainty():
    """PyTorch's values, and its gradients where the target is the other class."""
    x, target = sent.asarray([0.0, 0.0, 1.0, 1.0, 0.5]), sent.asarray([1.0, 0.0, 0.0, 1.0, 1.0])
    fun = functools.partial(bj.bce_loss, reduction="sum")
    tensors = [by_torch.tensor(a) for a in (x, target)]
    tensors[0].requires_grad_()
    want = F.binary_cross_entropy(*tensors, reduction="none")
    close(bj.bce_loss(x, target, reduction="none"), by_torch.numbers(want), "float64")
    gradient = jax.jit(jax.grad(fun))(x, target)
    theirs = by_torch.numbers(torch.autograd.grad(want.sum(), tensors[0])[0])
    np.testing.assert_allclose(gradient[sent.asarray([0, 2, 4])], theirs[[0, 2, 4]], rtol=1e-8)
    assert gradient[1] == 1 and gradient[3] == -1
    assert jnp.isfinite(jax.jit(jax.grad(fun, 1))(x, target)).all()
    assert jnp.isfinite(jax.jit(jax.hessian(fun))(x, target)).all()
    for dtype in ("float32", "float16", "bfloat16"):
        some = jax.jit(jax.grad(fun))(x.astype(dtype), target.astype(dtype))
        assert not jnp.isnan(some).any()


def test_second_derivatives_at_0():
    """Those of the softplus: abs and max would lose them."""
    second = lambda fun: jax.grad(jax.grad(fun))(0.0)
    assert second(lambda x: bj.bce_with_logits_loss(x, 1.0)) == 0.25
    assert second(lambda x: bj.huber_loss(x, 0.0)) == 1
    assert second(lambda x: bj.smooth_l1_loss(x, 0.0, beta=0.5)) == 2
    assert second(lambda x: bj.l1_loss(x, 0.0)) == 0
    assert (
        jax.jit(jax.grad(bj.bce_with_logits_loss))(1e4, 1.0) == 0
        and jax.jit(jax.grad(bj.bce_with_logits_loss))(-1e4, 1.0) == -1
    )


def test_large_differences():
    for x in (1e300, INF):
        value, slope = jax.jit(jax.value_and_grad(bj.huber_loss))(x, 0.0)
        assert value == x and slope == 1
        value, slope = jax.jit(jax.value_and_grad(bj.smooth_l1_loss))(-x, 0.0)
        assert value == x and slope == -1


def test_divergence_from_nothing():
    """A probability of 0 has no term."""
    x, target = sent.asarray([-INF, -1.0, -INF]), sent.asarray([0.0, 0.0, 0.5])
    assert bj.kl_div_loss(x, target, reduction="none").tolist() == [0, 0, INF]
    for args, kwargs in (((x[:2], target[:2]), {}), ((x[:2], jnp.log(target[:2])), {"log_target": True})):
        fun = functools.partial(bj.kl_div_loss, reduction="sum", **kwargs)
        assert fun(*args) == 0
        for gradient in jax.jit(jax.grad(fun, (0, 1)))(*args):
            assert not gradient.any()
    assert bj.kl_div_loss(sent.zeros(()), sent.ones(()), reduction="batchmean") == 0
    ones = sent.ones((2, 3))
    assert bj.kl_div_loss(ones, ones, reduction="batchmean") == -3


def test_impossible_classes():
    """A logit of -inf is a class that is masked."""
    x = sent.asarray([[0.0, -INF, 1.0], [-INF, 2.0, 0.0]])
    soft = sent.asarray([[0.25, 0.0, 0.75], [0.0, 1.0, 0.0]])
    want = bj.cross_entropy_soft_loss(x.at[0, 1].set(-1e9).at[1, 0].set(-1e9), soft)
    (value, gradients) = jax.jit(jax.value_and_grad(bj.cross_entropy_soft_loss, (0, 1)))(x, soft)
    close(value, want, "float64")
    assert all(jnp.isfinite(g).all() for g in gradients)
    close(gradients[0].sum(1), np.zeros(2), "float64")
    value, gradient = jax.jit(jax.value_and_grad(bj.cross_entropy_loss))(x, sent.asarray([2, 1]))
    assert jnp.isfinite(value) and jnp.isfinite(gradient).all() and gradient[0, 1] == 0
    assert bj.cross_entropy_loss(x, sent.asarray([1, 1])) == INF
    # The derivative in a probability of 0 is a number where the logit is.
    gradient = jax.jit(jax.grad(bj.cross_entropy_soft_loss, 1))(sent.zeros((1, 2)), sent.asarray([[1.0, 0.0]]))
    close(gradient, np.full((1, 2), np.log(2)), "float64")


@pytest.mark.parametrize("sign", [1, -1])
def test_the_cosine_of_a_vector_that_is_0(sign):
    x1, x2 = sent.asarray([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]]), sent.asarray([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    target = sent.full(3, sign)
    assert bj.cosine_embedding_loss(x1, x2, target, reduction="none").tolist() == [sign == 1] * 3
    fun = functools.partial(bj.cosine_embedding_loss, target=target)
    for gradient in jax.jit(jax.grad(fun, (0, 1)))(x1, x2):
        assert not gradient.any()
    for second in jax.tree.leaves(jax.jit(jax.hessian(fun, (0, 1)))(x1, x2)):
        assert jnp.isfinite(second).all()
    for scale in (1e-7, 1e-4, 1e100):  # as PyTorch's, or where its squares overflow
        y = bj.cosine_embedding_loss(scale * x2[:1], x2[:1], 1)
        want = F.cosine_embedding_loss(*map(by_torch.tensor, (min(scale, 1) * x2[:1], x2[:1], target[:1] * sign)))
        close(y, by_torch.numbers(want), "float64", scale=1e4)  # its 1e-12 is a float32


@pytest.mark.parametrize("p", [1, 2, 3, 1.5, INF])
@pytest.mark.parametrize("eps", [1e-6, 0.0])
def test_triplets_at_distance_0(p, eps):
    x = sent.asarray([[1.0, 2.0, 3.0]])
    fun = lambda a, b, c: bj.triplet_margin_loss(a, b, c, p=p, eps=eps, swap=True)
    close(fun(x, x, x), 1.0, "float64")
    for gradient in jax.jit(jax.grad(fun, (0, 1, 2)))(x, x, x):
        assert jnp.isfinite(gradient).all()
    assert jnp.isfinite(jax.jit(jax.hessian(fun))(x, x + 1, x + 2)).all()


def test_slopes_at_a_kink_are_torchs():
    one, gradient = sent.ones(()), lambda fun, *args: float(jax.grad(fun)(*args))
    assert gradient(bj.margin_ranking_loss, one, one, one) == -1
    assert gradient(bj.hinge_embedding_loss, one, -one) == -1
    assert not jax.jit(jax.grad(bj.multi_margin_loss))(sent.asarray([[1.0, 0.0]]), sent.asarray([0])).any()
    assert not jax.jit(jax.grad(bj.multilabel_margin_loss))(sent.asarray([[1.0, 0.0]]), sent.asarray([[0, -1]])).any()


def test_nan_propagates():
    x = sent.asarray([[1.0, NAN, 0.0]])
    assert jnp.isnan(bj.multi_margin_loss(x, sent.asarray([0])))
    assert jnp.isnan(bj.multilabel_margin_loss(x, sent.asarray([[0]])))
    assert jnp.isnan(bj.huber_loss(x, x)) and jnp.isnan(bj.bce_loss(x, x)) and jnp.isnan(bj.kl_div_loss(x, x))
    assert jnp.isnan(bj.bce_loss(sent.full(1, -0.1), sent.ones(1)))


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


X = np.ones((2, 3))
T = np.zeros(2, jnp.int32)
SINGLE = np.ones((2, 3), jnp.float32)


@pytest.mark.parametrize(
    "name, error, match, args, kwargs",
    [
        ("mse_loss", TypeError, "x must have one of the dtypes .*, got int32", (T, T), {}),
        ("mse_loss", TypeError, "x must be an array, got str", ("x", T), {}),
        ("mse_loss", TypeError, "target must be an array, got NoneType", (X, None), {}),
        ("mse_loss", TypeError, "target must have the dtype of x, float64, got float32", (X, SINGLE), {}),
        ("mse_loss", TypeError, "target must have the dtype of x, bfloat16, or float32, got float64", (X.astype(jnp.bfloat16), X), {}),
        ("mse_loss", ValueError, r"target must have shape \(2, 3\), that of x, got \(2, 1\)", (X, X[:, :1]), {}),
        ("mse_loss", ValueError, r"weight must broadcast to the shape of x, \(2, 3\), got \(2,\)", (X, X, X[:, 0]), {}),
        ("mse_loss", ValueError, "reduction must be one of 'mean', 'sum', 'none', got 'batchmean'", (X, X), {"reduction": "batchmean"}),
        ("mse_loss", ValueError, "implementation='native', but the op has no kernel; xla computes it", (X, X), {"implementation": "native"}),
        ("huber_loss", ValueError, "delta must be greater than 0, got 0", (X, X), {"delta": 0}),
        ("huber_loss", TypeError, "delta must be a static number, got '1'", (X, X), {"delta": "1"}),
        ("smooth_l1_loss", ValueError, "beta must be at least 0, got -1", (X, X), {"beta": -1}),
        ("smooth_l1_loss", ValueError, "beta must be at least 0, got nan", (X, X), {"beta": NAN}),
        ("bce_loss", ValueError, r"weight must broadcast .*, got \(1, 2, 3\)", (X, X, X[None]), {}),
        ("bce_with_logits_loss", TypeError, "pos_weight must have the dtype of x", (X, X, None, T), {}),
        ("kl_div_loss", TypeError, "log_target must be True or False, got 1", (X, X), {"log_target": 1}),
        ("kl_div_loss", ValueError, "reduction must be one of 'mean', 'batchmean', 'sum', 'none', got 'max'", (X, X), {"reduction": "max"}),
        ("poisson_nll_loss", ValueError, "eps must be at least 0, got -1", (X, X), {"eps": -1}),
        ("gaussian_nll_loss", TypeError, "var must be an array, got NoneType", (X, X, None), {}),
        ("gaussian_nll_loss", ValueError, "eps must be greater than 0, got 0", (X, X, X), {"eps": 0}),
        ("hinge_embedding_loss", TypeError, "target must have the dtype of x, float64, or integers, got complex128", (X, X + 0j), {}),
        ("hinge_embedding_loss", TypeError, "margin must be a static number, got True", (X, X), {"margin": True}),
        ("margin_ranking_loss", ValueError, r"x2 must have shape \(2, 3\), that of x1, got \(3,\)", (X, X[0], X), {}),
        ("cross_entropy_loss", ValueError, "z_loss must be 0 for a target of probabilities, got 0.5", (X, X), {"z_loss": 0.5}),
        ("cross_entropy_loss", ValueError, "softcap must be greater than 0, got 0", (X, T), {"softcap": 0}),
        ("cross_entropy_terms", TypeError, "return_correct must be True or False, got 1", (X, T), {"return_correct": 1}),
        ("linear_cross_entropy", ValueError, r"linear_weight must have shape \(C, 3\) for x of shape \(2, 3\), got \(3, 2\)", (X, X.T, T), {}),
        ("linear_cross_entropy", ValueError, r"target must have shape \(2,\), that of x without its last axis, got \(2, 3\)", (X, X, X.astype(int)), {}),
        ("linear_cross_entropy", ValueError, r"linear_bias must have shape \(2,\), one for each row of linear_weight, got \(3,\)", (X, X, T, X[0]), {}),
        ("linear_cross_entropy", TypeError, "linear_weight must have the dtype of x", (X, X.astype(jnp.float16), T), {}),
        ("linear_cross_entropy", ValueError, "chunk_rows must be at least 1, got 0", (X, X, T), {"chunk_rows": 0}),
        ("linear_cross_entropy", ValueError, "label_smoothing must be at most 1, got 2", (X, X, T), {"label_smoothing": 2}),
        ("linear_cross_entropy", ValueError, "precision must be one that jax.lax.dot_general takes", (X, X, T), {"precision": "most"}),
        ("nll_loss", TypeError, "target must have one of the dtypes int8.*, got float64", (X, X[:, 0]), {}),
        ("nll_loss", ValueError, r"target must have shape \(2,\), that of x without axis 1, got \(2, 3\)", (X, X.astype(int)), {}),
        ("nll_loss", ValueError, "x must have at least one dimension, got a scalar", (X[0, 0], T[0]), {}),
        ("nll_loss", ValueError, r"axis must be in \[-2, 1\] for x of shape \(2, 3\), got 2", (X, T), {"axis": 2}),
        ("nll_loss", TypeError, "ignore_index must be an integer, got 0.5", (X, T), {"ignore_index": 0.5}),
        ("cross_entropy_loss", ValueError, r"weight must have shape \(3,\), a factor for each class along axis 1 of x, got \(2,\)", (X, T, X[:, 0]), {}),
        ("cross_entropy_loss", ValueError, "label_smoothing must be at most 1, got 1.5", (X, T), {"label_smoothing": 1.5}),
        ("cross_entropy_loss", ValueError, r"target must have shape \(2, 3\), that of x, got \(2,\)", (X, X[:, 0]), {}),
        ("cross_entropy_soft_loss", ValueError, "label_smoothing must be at least 0, got -1", (X, X), {"label_smoothing": -1}),
        ("multi_margin_loss", ValueError, "p must be one of 1, 2, got 3", (X, T), {"p": 3}),
        ("multilabel_margin_loss", ValueError, r"target must have shape \(2, 4\), that of x except for axis 1, got \(3, 4\)", (X, sent.zeros((3, 4), int)), {}),
        ("multilabel_margin_loss", TypeError, "target must have one of the dtypes int8", (X, X), {}),
        ("multilabel_soft_margin_loss", ValueError, "x must have at least one dimension, got a scalar", (X[0, 0], X[0, 0]), {}),
        ("cosine_embedding_loss", ValueError, r"target must have shape \(2,\), that of x1 without axis 1, got \(3,\)", (X, X, X[0]), {}),
        ("triplet_margin_loss", ValueError, r"negative must have shape \(2, 3\), that of anchor, got \(2,\)", (X, X, T * 1.0), {}),
        ("triplet_margin_loss", ValueError, "p must be greater than 0, got 0", (X, X, X), {"p": 0}),
        ("triplet_margin_loss", TypeError, "swap must be True or False, got 1", (X, X, X), {"swap": 1}),
    ],
)  # fmt: skip
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)
