"""Means of losses: of the elements of matrices, of their rows, or of sequences of frames."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, Benchmark, along


def _normal(draws, rows, columns):
    return draws.normal((rows, columns))


def _inside(draws, rows, columns):
    return draws.uniform((rows, columns), 0.05, 0.95)


def _positive(draws, rows, columns):
    return draws.uniform((rows, columns), 0.2, 2.0)


def _signs(draws, rows, columns):
    return 2.0 * draws.integers((rows, columns), 0, 2) - 1


def _sign_of_row(draws, rows, columns):
    return 2 * draws.integers((rows,), 0, 2) - 1


def _class(draws, rows, columns):
    return draws.integers((rows,), 0, columns)


def _labels(draws, rows, columns):
    """Four of each row."""
    return draws.integers((rows, 4), 0, columns)


def _hinge(h):
    """As PyTorch clamps: the slope at 0 is 1."""
    return jnp.where(h < 0, 0, h)


def _huber(x, t):
    d = jnp.abs(x - t)
    return jnp.where(d < 1, d * d / 2, d - 0.5).mean()


def _bce(x, t):
    log = lambda p: jnp.maximum(p, -100)
    return -(t * log(jnp.log(x)) + (1 - t) * log(jnp.log1p(-x))).mean()


def _gaussian(x, t, v):
    v = jnp.maximum(v, 1e-6)
    return (jnp.log(v) + (x - t) ** 2 / v).mean() / 2


def _binary(x, t):
    return -(t * jax.nn.log_sigmoid(x) + (1 - t) * jax.nn.log_sigmoid(-x)).mean()


def _wide(fun):
    """In float32, rounded once."""
    floats = lambda a: a.astype(jnp.float32) if jnp.issubdtype(a.dtype, jnp.floating) else a
    return lambda x, *args: fun(*map(floats, (x, *args))).astype(x.dtype)


def _picked(log_p, t):
    return -jnp.take_along_axis(log_p, t[:, None], 1).mean()


def _nll(log_p, t):
    counts = t != -100
    terms = -jnp.take_along_axis(log_p, jnp.where(counts, t, 0)[:, None], 1)[:, 0]
    return jnp.where(counts, terms, 0).sum() / counts.sum()


def _multi_margin(x, t):
    """Rows with a class out of range are masked: PyTorch raises an error, and unchecked JAX takes NaN or another class."""
    counts = (t >= 0) & (t < x.shape[1])
    h = jax.nn.relu(1 - jnp.take_along_axis(x, jnp.where(counts, t, 0)[:, None], 1) + x)
    terms = jnp.where(jnp.arange(x.shape[1])[None] == t[:, None], 0, h).mean(1)
    return jnp.where(counts, terms, 0).sum() / counts.sum()


def _multilabel_margin(x, t):
    others = ~(t[:, :, None] == jnp.arange(x.shape[1])[None, None]).any(1)
    h = jax.nn.relu(1 - jnp.take_along_axis(x, t, 1)[:, :, None] + x[:, None])
    return jnp.where(others[:, None], h, 0).sum((1, 2)).mean() / x.shape[1]


def _cosine(a, b, t):
    norm = lambda v: jnp.sqrt((v * v).sum(1))
    cos = (a * b).sum(1) / (norm(a) * norm(b))
    return jnp.where(t == 1, 1 - cos, _hinge(cos)).mean()


def _triplets(a, p, n):
    distance = lambda v: jnp.sqrt(jnp.square(a - v + 1e-6).sum(1))
    return _hinge(1 + distance(p) - distance(n)).mean()


# op: (what draws its operands, how many have gradients, plain JAX, PyTorch's name)
LINES = {
    "mse_loss": ((_normal, _normal), 2, lambda x, t: jnp.square(x - t).mean(), "mse_loss"),
    "l1_loss": ((_normal, _normal), 2, lambda x, t: jnp.abs(x - t).mean(), "l1_loss"),
    "huber_loss": ((_normal, _normal), 2, _huber, "huber_loss"),
    "smooth_l1_loss": ((_normal, _normal), 2, _huber, "smooth_l1_loss"),
    "bce_loss": (
        (_inside, _inside), 1, _bce, "binary_cross_entropy",
    ),
    "bce_with_logits_loss": ((_normal, _inside), 1, _binary, "binary_cross_entropy_with_logits"),
    "kl_div_loss": (
        (_normal, _inside), 1, lambda x, t: (t * (jnp.where(t == 0, 0, jnp.log(t)) - x)).mean(), "kl_div",
    ),
    "poisson_nll_loss": ((_normal, _positive), 1, lambda x, t: (jnp.exp(x) - t * x).mean(), "poisson_nll_loss"),
    "gaussian_nll_loss": ((_normal, _normal, _positive), 3, _gaussian, "gaussian_nll_loss"),
    "hinge_embedding_loss": (
        (_normal, _signs), 1, lambda x, t: jnp.where(t == 1, x, _hinge(1 - x)).mean(), "hinge_embedding_loss",
    ),
    "margin_ranking_loss": (
        (_normal, _normal, _signs), 2, lambda a, b, t: _hinge(-t * (a - b)).mean(), "margin_ranking_loss",
    ),
    "nll_loss": ((_normal, _class), 1, _nll, "nll_loss"),
    "cross_entropy_loss": ((_normal, _class), 1, lambda x, t: _picked(jax.nn.log_softmax(x, 1), t), "cross_entropy"),
    "cross_entropy_soft_loss": (
        (_normal, _inside), 1, lambda x, t: -(t * jax.nn.log_softmax(x, 1)).sum(1).mean(), "cross_entropy",
    ),
    "multi_margin_loss": ((_normal, _class), 1, _multi_margin, "multi_margin_loss"),
    "multilabel_margin_loss": ((_normal, _labels), 1, _multilabel_margin, "multilabel_margin_loss"),
    "multilabel_soft_margin_loss": ((_normal, _inside), 1, _binary, "multilabel_soft_margin_loss"),
    "cosine_embedding_loss": ((_normal, _normal, _sign_of_row), 2, _cosine, "cosine_embedding_loss"),
    "triplet_margin_loss": ((_normal, _normal, _normal), 3, _triplets, "triplet_margin_loss"),
}  # fmt: skip


NOT_IN_16_BITS = ("multi_margin_loss", "multilabel_margin_loss")  # on PyTorch's CPU


def line(op, rows, columns, dtype):
    drawn, moving, plain, theirs = LINES[op]

    def pytorch(torch, *tensors):
        tensors = [t if t.is_floating_point() else t.long() for t in tensors]
        if op == "multilabel_margin_loss":  # whose labels are as many as classes in PyTorch
            tensors[1] = torch.nn.functional.pad(tensors[1], (0, columns - 4), value=-1)
        return getattr(torch.nn.functional, theirs)(*tensors)

    in_torch = dtype == "float32" or op not in NOT_IN_16_BITS
    return Benchmark(
        op, f"[{rows}, {columns}]", dtype,
        lambda draws: tuple(draw(draws, rows, columns) for draw in drawn),
        lambda *arrays, implementation: getattr(baracuda_jax, op)(*arrays, implementation=implementation),
        _wide(plain), pytorch if in_torch else None, moving=moving, needs=tuple(range(len(drawn))),
    )  # fmt: skip


def classes(shape, axis, dtype, softcap=None):
    """The cross entropy of each slice with a class."""

    def plain(x, t):
        x = x if softcap is None else softcap * jnp.tanh(x / softcap)
        return -jnp.take_along_axis(jax.nn.log_softmax(x, axis), jnp.expand_dims(t, axis), axis).squeeze(axis)

    def pytorch(torch, x, t):
        x = x if softcap is None else softcap * torch.tanh(x / softcap)
        return torch.nn.functional.cross_entropy(x.movedim(axis, 1), t.long(), reduction="none").float()

    kept = tuple(n for i, n in enumerate(shape) if i != axis)
    return Benchmark(
        "cross_entropy_terms", f"{list(shape)}{along(shape, axis)}", dtype,
        lambda draws: (draws.normal(shape), draws.integers(kept, 0, shape[axis])),
        lambda *arrays, implementation: baracuda_jax.cross_entropy_terms(
            *arrays, axis=axis, softcap=softcap, implementation=implementation
        ),
        lambda x, t: plain(x.astype(jnp.float32), t), pytorch if len(shape) > 1 else None,
        variant="softcap" if softcap else "", needs=(0, 1),
    )  # fmt: skip


# Rows and classes of language models.
VOCABULARIES = {"tiny": [(16, 600)], "small": [(512, 32768)], "large": [(8192, 128256), (4096, 50257)]}


# Rows, features, classes.
LAYERS = {"tiny": (64, 32, 128), "small": (1024, 256, 4096), "large": (8192, 4096, 128256)}


def layers(rows, features, classes, dtype):
    """A language model's last layer and its loss."""

    def plain(x, weight, target):
        logits = jax.lax.dot_general(x, weight, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        return _picked(jax.nn.log_softmax(logits, 1), target).astype(x.dtype)

    return Benchmark(
        "linear_cross_entropy", f"[{rows}, {features}] of {classes} classes", dtype,
        lambda draws: (
            draws.normal((rows, features)), draws.normal((classes, features)), draws.integers((rows,), 0, classes)
        ),
        lambda *arrays, implementation: baracuda_jax.linear_cross_entropy(*arrays, implementation=implementation),
        plain, lambda torch, x, weight, t: torch.nn.functional.linear_cross_entropy(x, weight, t.long()),
        moving=2, needs=(0, 1, 2), rough=100,
    )  # fmt: skip


# Samples, frames, classes, labels.
SEQUENCES = {
    "tiny": [(4, 64, 32, 12)], "small": [(32, 512, 64, 64)], "large": [(32, 512, 64, 64), (64, 1536, 256, 200)]
}  # fmt: skip


def sequences(batch, frames, classes, labels, dtype):
    """Of full and of half length in turn."""

    def draw(draws):
        is_short = jnp.arange(batch) % 2
        return (
            draws.normal((batch, frames, classes)), draws.integers((batch, labels), 1, classes),
            frames >> is_short, labels >> is_short,
        )  # fmt: skip

    def pytorch(torch, x, targets, *lengths):
        log_probs = torch.log_softmax(x.float(), -1).transpose(0, 1)
        lengths = [length.long() for length in lengths]
        return torch.nn.functional.ctc_loss(log_probs, targets.long(), *lengths).to(x.dtype)

    return Benchmark(
        "ctc_loss", f"[{batch}, {frames}, {classes}], {labels} labels", dtype, draw,
        lambda *arrays, implementation: baracuda_jax.ctc_loss(*arrays, implementation=implementation),
        torch=pytorch, needs=(0, 1, 2, 3),
        rough=100,  # plain JAX adds logarithms, whose last digits are of their size
    )  # fmt: skip


# Samples, frames, labels, classes.
TRANSDUCERS = {"tiny": (2, 16, 6, 16), "small": (8, 100, 30, 128), "large": (16, 300, 80, 1024)}


def transducers(batch, frames, labels, classes, dtype):
    """Of full and of half length in turn."""

    def draw(draws):
        is_short = jnp.arange(batch) % 2
        return (
            draws.normal((batch, frames, labels + 1, classes)), draws.integers((batch, labels), 1, classes),
            frames >> is_short, labels >> is_short,
        )  # fmt: skip

    return Benchmark(
        "rnnt_loss", f"[{batch}, {frames}, {labels + 1}, {classes}]", dtype, draw,
        lambda *arrays, implementation: baracuda_jax.rnnt_loss(*arrays, implementation=implementation),
        needs=(0, 1, 2, 3), rough=100,
    )  # fmt: skip


# Pairs of series, and their lengths.
SERIES = {"tiny": (2, 24, 20), "small": (32, 128, 128), "large": (64, 512, 512)}


def series(batch, rows, columns, dtype):
    """Costs as of series of numbers: squares of differences."""
    return Benchmark(
        "soft_dtw", f"[{batch}, {rows}, {columns}]", dtype, lambda draws: (draws.normal((batch, rows, columns)) ** 2,),
        lambda cost, implementation: baracuda_jax.soft_dtw(cost, implementation=implementation),
        needs=(0,), rough=100,
    )  # fmt: skip


def benchmarks(size):
    yield from (classes(shape, 1, dtype) for shape in VOCABULARIES[size] for dtype in DTYPES)
    yield from (sequences(*shape, dtype) for shape in SEQUENCES[size] for dtype in DTYPES)
    yield from (transducers(*TRANSDUCERS[size], dtype) for dtype in DTYPES)
    yield from (series(*SERIES[size], dtype) for dtype in DTYPES)
    yield from (layers(*LAYERS[size], dtype) for dtype in DTYPES)
    for op in LINES:
        for dtype in DTYPES:
            yield line(op, *MATRICES[size], dtype)
