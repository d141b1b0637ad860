"""Tokens of a draft model, verified by the model that it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit, keys
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..indexing import gather, index_select
from ._samplers import top_p_sampling


@api
def speculative_sampling(
    draft_tokens: ArrayLike,
    draft_probabilities: ArrayLike,
    target_probabilities: ArrayLike,
    key: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Tokens with the probabilities of a target model, from those that a draft model has drawn one after the other.

    Formula:
        A draft token d with draft probability p and target probability q is accepted while u < q / p, with u uniform in
        [0, 1). In place of the first that is not, a token is drawn by max(q - p, 0) over all tokens. After all, one more is
        drawn by the target's last probabilities.

    Args:
        draft_tokens: integers [..., L]. A negative one, as of padding, or one from V on ends the draft: the target draws.
        draft_probabilities: floats [..., L, V], by which the draft tokens were drawn; each row adds up to 1.
        target_probabilities: floats [..., L + 1, V] of the same dtype: of the target before each draft token and after the
            last.
        key: PRNG key, typed or raw: row i draws by `jax.random.fold_in(key, i)`. Or a key for each
            row, by which this row draws.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        (int32 [..., L + 1], the tokens: those accepted, the one that is drawn, and -1; int32 [...], how many were accepted).
        Where no token can be drawn, of NaN or no probability at all, it is -1.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float64 is rounded to float32, 16-bit floats are computed in float32. The token is drawn as by
        `top_p_sampling` with p 1, alone, in a batch, under vmap and on shards the same.

    Source: Leviathan et al., Fast Inference from Transformers via Speculative Decoding (2023); Chen et al., Accelerating
        Large Language Model Decoding with Speculative Sampling (2023); flashinfer.sampling.chain_speculative_sampling.
    """
    op = "speculative_sampling"
    tokens, draft, target, key = arguments(op, draft_tokens, draft_probabilities, target_probabilities, key)
    accepted, weights, key = _accept(tokens, draft, target, key, implementation=implementation)
    drawn, valid = top_p_sampling(
        weights, key, 1.0, probabilities=True, return_valid=True, implementation=implementation
    )
    return _joined(tokens, accepted, drawn, valid), accepted


def arguments(op, draft_tokens, draft_probabilities, target_probabilities, key):
    """Checked, with a key for each row."""
    tokens = checks.array(op, "draft_tokens", draft_tokens)
    checks.dtype(op, "draft_tokens", tokens, checks.INTEGERS)
    if tokens.ndim < 1:
        raise ValueError(f"{op}: draft_tokens must have at least one dimension, the draft; got a scalar")
    draft = checks.floats(op, "draft_probabilities", draft_probabilities)
    target = checks.floats(op, "target_probabilities", target_probabilities)
    checks.same_dtype(op, "target_probabilities", target, "draft_probabilities", draft)
    *rows, length = tokens.shape
    count = draft.shape[-1] if draft.ndim else 0
    if not count:
        raise ValueError(
            f"{op}: draft_probabilities must have at least one token a row, got shape {tuple(draft.shape)}"
        )
    checks.shape(op, "draft_probabilities", draft, (*rows, length, count), "that of draft_tokens, and tokens")
    checks.shape(
        op, "target_probabilities", target, (*rows, length + 1, count), "one more row than draft_probabilities has"
    )
    return tokens, draft, target, keys.of_rows(op, "key", key, tuple(rows))


@compiled("implementation")
def _accept(tokens, draft, target, key, *, implementation):
    """How many are accepted; the weights of the token that is drawn then; and the key that draws it."""
    length, count = draft.shape[-2:]
    is_token = (tokens >= 0) & (tokens <= min(count - 1, int(jnp.iinfo(tokens.dtype).max)))
    index = jnp.where(is_token, tokens, 0).astype(jnp.int32)
    one = lambda x, i: gather(x, i[..., None], implementation=implementation)[..., 0]
    row = explicit.mapped(lambda x, i: index_select(x, i[None], 0, implementation=implementation)[0], tokens.ndim - 1)
    wide = lambda x: x.astype(jnp.float32)
    p, q = wide(one(draft, index)), wide(one(target[..., :length, :], index))
    u = explicit.mapped(lambda key: jax.random.uniform(jax.random.fold_in(key, 0), (length,), jnp.float32), key.ndim)(
        key
    )
    accepted = jnp.cumprod((is_token & (u * p < q)).astype(jnp.int32), -1).sum(-1, dtype=jnp.int32)
    weights = wide(row(target, accepted))
    if length:
        at = jnp.minimum(accepted, length - 1)
        position = jax.lax.broadcasted_iota(jnp.int32, tokens.shape, tokens.ndim - 1)
        refused = (is_token & (position == accepted[..., None])).any(-1, keepdims=True)
        left = jnp.maximum(weights - jnp.where(refused, wide(row(draft, at)), 0), 0)
        # Nothing is left where rounding refused a token of equal probabilities.
        weights = jnp.where((left == 0).all(-1, keepdims=True), weights, left)
    return accepted, weights, explicit.mapped(lambda key: jax.random.fold_in(key, 1), key.ndim)(key)


@compiled()
def _joined(tokens, accepted, drawn, valid):
    padded = jnp.concatenate([tokens.astype(jnp.int32), jnp.zeros_like(drawn)[..., None]], -1)
    position = jax.lax.broadcasted_iota(jnp.int32, padded.shape, padded.ndim - 1)
    accepted, drawn = accepted[..., None], jnp.where(valid, drawn, -1)[..., None]
    return jnp.where(position < accepted, padded, jnp.where(position == accepted, drawn, -1))


def _case(name, rows, length, count, keys_of=(), agree=1.0):
    """`agree`: how much alike the models are."""

    def draw(rng):
        logits = rng.standard_normal((*rows, length + 1, count))
        other = agree * logits + (1 - agree) * rng.standard_normal(logits.shape)
        draft, target = (x / x.sum(-1, keepdims=True) for x in (np.exp(logits[..., :length, :]), np.exp(other)))
        tokens = (draft.cumsum(-1) < rng.random((*rows, length, 1))).sum(-1)
        key = rng.integers(0, 2**32, (*keys_of, 2), dtype="uint32") if keys_of else keys.draw(rng)
        return tokens, draft, target, key

    return Case(name, draw)


compose(
    "speculative_sampling",
    family="random",
    category=OpCategory.RANDOM,
    public=speculative_sampling,
    cases=(
        _case("models that differ", (4,), 3, 17, agree=0.3),
        _case("models that agree", (2, 3), 4, 9, keys_of=(2, 3)),
        _case("one row", (), 5, 33, agree=0.6),
    ),
    dtypes=checks.FLOATS,
    operands=("draft_tokens", "draft_probabilities", "target_probabilities", "key"),
    made_of=("gather", "index_select", "top_p_sampling"),
    outputs=("tokens",),
    constant=dict.fromkeys(("draft_tokens", "draft_probabilities", "target_probabilities"), "tokens have no derivative")
    | keys.CONSTANT,
)
