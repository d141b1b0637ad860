"""Samplers of language models: a token of each row, drawn among the most probable ones."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks, keys
from .._core.api import api
from .._core.case import Case
from .._core.types import Implementation
from ._draw_token import sampler
from ._sampler_arguments import document, sample

_K = """\
        k: how many tokens are kept; at most 0, or at least V, for all. An integer, or an array of integers of the leading
            dimensions of logits, or of shape ()."""
_P = """\
        p: the fraction of the probability, in [0, 1]; 1 keeps all, 0 the most probable token. A number, or an array of
            floats of the leading dimensions of logits, or of shape ()."""


@api
@document(
    "the first k are kept.", _K,
    "top-k sampling, Fan et al., Hierarchical Neural Story Generation (2018); transformers.TopKLogitsWarper; "
    "flashinfer.sampling.top_k_sampling_from_probs",
)  # fmt: skip
def top_k_sampling(
    logits: ArrayLike,
    key: ArrayLike,
    k: ArrayLike,
    *,
    temperature: ArrayLike = 1.0,
    probabilities: bool = False,
    return_logprobs: bool = False,
    return_valid: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """A token drawn among the k most probable ones of each row."""
    return sample(
        "top_k_sampling",
        _top_k,
        logits,
        key,
        temperature,
        probabilities,
        return_logprobs,
        return_valid,
        implementation,
        k=k,
    )


@api
@document(
    "the shortest prefix is kept whose probabilities add up to p of all, at least one token.", _P,
    "nucleus sampling, Holtzman et al., The Curious Case of Neural Text Degeneration (2020); "
    "transformers.TopPLogitsWarper; flashinfer.sampling.top_p_sampling_from_probs",
)  # fmt: skip
def top_p_sampling(
    logits: ArrayLike,
    key: ArrayLike,
    p: ArrayLike,
    *,
    temperature: ArrayLike = 1.0,
    probabilities: bool = False,
    return_logprobs: bool = False,
    return_valid: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """A token drawn among the most probable ones of each row, whose probabilities add up to p."""
    return sample(
        "top_p_sampling",
        _top_p,
        logits,
        key,
        temperature,
        probabilities,
        return_logprobs,
        return_valid,
        implementation,
        p=p,
    )


@api
@document(
    "those with a probability of at least min_p times the largest one are kept.",
    """\
        min_p: the ratio, in [0, 1]; 0 keeps all. A number, or an array of floats of the leading dimensions of logits, or of
            shape ().""",
    "Nguyen et al., Turning Up the Heat: Min-p Sampling (2024); transformers.MinPLogitsWarper; "
    "flashinfer.sampling.min_p_sampling_from_probs",
)  # fmt: skip
def min_p_sampling(
    logits: ArrayLike,
    key: ArrayLike,
    min_p: ArrayLike,
    *,
    temperature: ArrayLike = 1.0,
    probabilities: bool = False,
    return_logprobs: bool = False,
    return_valid: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """A token drawn among those of each row that are not much less probable than the most probable one."""
    return sample(
        "min_p_sampling", _min_p, logits, key, temperature, probabilities, return_logprobs, return_valid, implementation,
        min_p=min_p,
    )  # fmt: skip


@api
@document(
    "the first k are kept, and of these the shortest prefix whose probabilities add up to p of theirs, at least one token. "
    "With\n        `joint`, to p of those of all tokens.",
    f"{_K}\n{_P}\n        joint: static, whether p is about all tokens, and not about the first k.",
    "transformers.TopKLogitsWarper and TopPLogitsWarper, in this order; "
    'flashinfer.sampling.top_k_top_p_sampling_from_probs, whose filter_apply_order="joint" is `joint`',
)  # fmt: skip
def top_k_top_p_sampling(
    logits: ArrayLike,
    key: ArrayLike,
    k: ArrayLike,
    p: ArrayLike,
    *,
    joint: bool = False,
    temperature: ArrayLike = 1.0,
    probabilities: bool = False,
    return_logprobs: bool = False,
    return_valid: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """A token drawn among the k most probable ones of each row, of which the most probable add up to p."""
    return sample(
        "top_k_top_p_sampling", _top_k_top_p, logits, key, temperature, probabilities, return_logprobs, return_valid,
        implementation, k=k, p=p, joint=joint,
    )  # fmt: skip


def _case(name, shape, *draws, keys_of=(), **kwargs):
    def draw(rng):
        drawn = [rng.integers(0, 2**32, (*keys_of, 2), dtype="uint32") if keys_of else keys.draw(rng)]
        return (2 * rng.standard_normal(shape), *drawn, *(draw(rng) for draw in draws))

    return Case(name, draw, kwargs)


def _declare(public, *cases, **keeps):
    return sampler(public.__name__, public, cases, checks.FLOATS, **keeps)


_top_k = _declare(
    top_k_sampling,
    _case("one k", (5, 41), k=7),
    _case("a k for each row", (2, 3, 300), lambda rng: rng.integers(-1, 310, (2, 3))),
    _case("logprobs", (4, 33), k=3, return_logprobs=True, return_valid=True),
    has_k=True,
)
_top_p = _declare(
    top_p_sampling,
    _case("one p", (5, 41), p=0.7),
    _case("a p and a key for each row", (2, 3, 300), lambda rng: rng.random((2, 3)), keys_of=(2, 3)),
    _case("one row", (700,), p=0.9, temperature=0.5),
    has_p=True,
)
_min_p = _declare(
    min_p_sampling,
    _case("one ratio", (5, 41), min_p=0.1),
    _case("a ratio for each row", (2, 3, 300), lambda rng: rng.random((2, 3))),
)
_top_k_top_p = _declare(
    top_k_top_p_sampling,
    _case("one k and p", (5, 41), k=9, p=0.7),
    _case("joint", (2, 3, 300), lambda rng: rng.integers(1, 310, (2, 3)), lambda rng: rng.random((2, 3)), joint=True),
    has_k=True,
    has_p=True,
)
