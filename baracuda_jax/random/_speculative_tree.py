"""Trees of tokens of a draft model, verified by the model that it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit, keys
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._samplers import top_p_sampling
from ._speculative_sampling import arguments


@api
def speculative_tree_sampling(
    draft_tokens: ArrayLike,
    parents: ArrayLike,
    draft_probabilities: ArrayLike,
    target_probabilities: ArrayLike,
    key: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """Tokens with the probabilities of a target model, from a tree of tokens that a draft model has drawn.

    Formula:
        From the root on, q is the target's row there. Of its children in order, one with token d and draft row p is accepted
        while u < q[d] / p[d], with u uniform in [0, 1): then the same goes on there. If it is not, q becomes max(q - p, 0),
        divided by its sum, for the next child. When no child is accepted a token is drawn by q.

    Args:
        draft_tokens: integers [..., L], the nodes, each after its parent. A negative one, as of padding, or one from V on is
            ignored, and so are those below it.
        parents: integers [L] or [..., L], the index of the parent of each node, -1 for the root: the last token of the text.
            A node whose parent is not before it is ignored.
        draft_probabilities: floats [..., L, V], by which the nodes' tokens were drawn; each row adds up to 1. Siblings that
            were drawn independently have one row; of those drawn without replacement each has the row that is left after the
            ones before it.
        target_probabilities: floats [..., L + 1, V] of the same dtype: of the target after the text, and after each node.
        key: PRNG key of threefry2x32 or philox, typed or raw: row i draws by `jax.random.fold_in(key, i)`. Or a key for each
            row, by which this row draws.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        (int32 [..., L + 1], the tokens: those accepted, the one that is drawn, and -1; int32 [...], how many were accepted;
        int32 [..., L], their nodes, and -1). Where no token can be drawn, of NaN or no probability at all, it is -1.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float64 is rounded to float32, 16-bit floats are computed in float32. Sums over tokens are those of integers:
        alone, in a batch, under vmap and on shards, also of the vocabulary, the tokens are the same. Those of a tree that is
        a chain are those of `speculative_sampling`.

    Source: Miao et al., SpecInfer: Accelerating Large Language Model Serving with Tree-based Speculative Inference and
        Verification (2023); Chen et al., Sequoia: Scalable, Robust, and Hardware-aware Speculative Decoding (2024), for
        siblings without replacement.
    """
    op = "speculative_tree_sampling"
    tokens, draft, target, key = arguments(op, draft_tokens, draft_probabilities, target_probabilities, key)
    parents = checks.array(op, "parents", parents)
    checks.dtype(op, "parents", parents, checks.INTEGERS)
    if parents.shape != tokens.shape[-1:]:
        checks.shape(op, "parents", parents, tokens.shape, "that of draft_tokens, or of its last dimension")
    path, weights, key = _walked(tokens, parents, draft, target, key)
    drawn, valid = top_p_sampling(
        weights, key, 1.0, probabilities=True, return_valid=True, implementation=implementation
    )
    found, accepted = _joined(tokens, path, drawn, valid)
    return found, accepted, path


@compiled()
def _walked(tokens, parents, draft, target, key):
    """Of each row the accepted nodes, the weights of the token that is drawn then, and the key that draws it."""
    count = draft.shape[-1]
    is_token = (tokens >= 0) & (tokens <= min(count - 1, int(jnp.iinfo(tokens.dtype).max)))
    length = tokens.shape[-1]
    fits = (parents >= -1) & (parents <= min(length, int(jnp.iinfo(parents.dtype).max)))
    parents = jnp.broadcast_to(jnp.where(fits, parents.astype(jnp.int32), length), tokens.shape)
    tokens = jnp.where(is_token, tokens.astype(jnp.int32), 0)
    path, weights = explicit.mapped(_walk, key.ndim)(tokens, is_token, parents, draft, target, key)
    return path, weights, explicit.mapped(lambda key: jax.random.fold_in(key, 1), key.ndim)(key)


def _walk(tokens, is_token, parents, draft, target, key):
    """One row: all nodes in order, of which those whose parent was the last to be accepted are tried."""
    length, count = draft.shape
    u = jax.random.uniform(jax.random.fold_in(key, 0), (length,), jnp.float32)
    each = lax.iota(jnp.int32, count)

    def visit(state, node):
        index, token, is_token, parent, u, p, after = node
        last, weights, total = state
        at_token = lambda x: jnp.where(each == token, x, 0).sum()  # exact on any shards
        is_tried = is_token & (parent == last)
        p, q = p.astype(jnp.float32), weights / total
        is_accepted = is_tried & (u * at_token(p) < at_token(q))
        left = jnp.maximum(q - p, 0)
        # Nothing is left where rounding refused a token of equal probabilities.
        is_left = is_tried & ~is_accepted & ~(left == 0).all()
        weights = jnp.where(is_accepted, after.astype(jnp.float32), jnp.where(is_left, left, weights))
        total = jnp.where(is_accepted, 1, jnp.where(is_left, _sum(left), total))
        return (jnp.where(is_accepted, index, last), weights, total), is_accepted

    nodes = lax.iota(jnp.int32, length)
    start = jnp.int32(-1), target[0].astype(jnp.float32), jnp.float32(1)
    of_nodes = nodes, tokens, is_token, parents, u, draft, target[1:]
    state, accepted = lax.scan(visit, *explicit.together((start, of_nodes)))
    number = jnp.cumsum(accepted.astype(jnp.int32)) - 1
    is_at = accepted[None] & (number[None] == nodes[:, None])
    return jnp.where(is_at, nodes[None], -1).max(-1, initial=-1), state[1]


def _sum(x):
    """Of numbers in [0, 1] whose sum is about 1 at most: that of integers, which depends on no order. Each number is cut
    into parts of so many bits that sums of parts have 32."""
    width = min(16, 32 - max(x.shape[-1] - 1, 1).bit_length())
    total, rest = jnp.float32(0), jnp.minimum(x, 1)
    for i in range(-(-40 // width)):
        rest = rest * 2.0**width
        part = jnp.floor(rest)
        total = total + part.astype(jnp.uint32).sum(dtype=jnp.uint32).astype(jnp.float32) * 2.0 ** (-width * (i + 1))
        rest = rest - part
    return total


@compiled()
def _joined(tokens, path, drawn, valid):
    """(tokens, how many were accepted)"""
    nodes = lax.broadcasted_iota(jnp.int32, path.shape, path.ndim - 1)
    of_path = jnp.where(path[..., None] == nodes[..., None, :], tokens.astype(jnp.int32)[..., None, :], 0).sum(-1)
    accepted = (path >= 0).sum(-1, dtype=jnp.int32)
    padded = jnp.concatenate([of_path.astype(jnp.int32), jnp.zeros_like(drawn)[..., None]], -1)
    position = lax.broadcasted_iota(jnp.int32, padded.shape, padded.ndim - 1)
    last, drawn = accepted[..., None], jnp.where(valid, drawn, -1)[..., None]
    return jnp.where(position < last, padded, jnp.where(position == last, drawn, -1)), accepted


def _case(name, rows, parents, count, keys_of=(), of_rows=False):
    def draw(rng):
        length = len(parents)
        logits = rng.standard_normal((*rows, length + 1, count))
        other = logits + 0.5 * rng.standard_normal(logits.shape)
        chances = lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        target = chances(other)
        draft = chances(logits)[..., np.array(parents) + 1, :]  # siblings have one row
        tokens = (draft.cumsum(-1) < rng.random((*rows, length, 1))).sum(-1)
        key = rng.integers(0, 2**32, (*keys_of, 2), dtype="uint32") if keys_of else keys.draw(rng)
        tree = np.array(parents, np.int32)
        return tokens, np.broadcast_to(tree, tokens.shape) if of_rows else tree, draft, target, key

    return Case(name, draw)


compose(
    "speculative_tree_sampling",
    family="random",
    category=OpCategory.RANDOM,
    public=speculative_tree_sampling,
    cases=(
        _case("one tree", (4,), (-1, -1, 0, 0, 1, 2), 9),
        _case("a tree for each row", (2, 3), (-1, 0, 0, -1, 3), 7, keys_of=(2, 3), of_rows=True),
        _case("one row", (), (-1, -1, -1, 0, 1, 2), 17),
    ),
    dtypes=checks.FLOATS,
    operands=("draft_tokens", "parents", "draft_probabilities", "target_probabilities", "key"),
    made_of=("top_p_sampling",),
    outputs=("tokens",),
    constant=dict.fromkeys(
        ("draft_tokens", "parents", "draft_probabilities", "target_probabilities"), "tokens have no derivative"
    )
    | keys.CONSTANT,
)
