"""Layers of transformers in plain PyTorch: those of Mamba and Mamba-2, what its logits processors keep, and what its masks show."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import tensor, torch
from programs import normal

import baracuda_jax as bj

pytest.importorskip("transformers")
BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])


# ---------------------------------------------------------------------------------------------------------------------
# Layers of state-space models


def _layer(module, config, name):
    """One with parameters that are all of a size at which they matter; and these as arrays."""
    layer = getattr(module, name)(config, layer_idx=0).eval()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for of, p in layer.named_parameters():
            drawn = rng.standard_normal(p.shape) / (p.shape[-1] ** 0.5 if p.ndim > 1 else 1)
            p.copy_(torch.tensor(rng.uniform(-1, 1, p.shape) if of == "A_log" else drawn))
    return layer, {of: sent.asarray(p.detach().numpy()) for of, p in layer.named_parameters()}


def _agree(layer, fun, x, params):
    """Values, and the gradients of the operand and of all parameters."""
    with_gradient = tensor(x).requires_grad_()
    want, dy = layer(with_gradient), np.asarray(normal(x.shape, "float32", 1))
    want.backward(torch.tensor(dy))
    y, pull = jax.jit(lambda x, params: jax.vjp(fun, x, params))(x, params)
    dx, dparams = pull(dy)
    close = lambda a, b, of: np.testing.assert_allclose(
        a, b.detach().numpy(), rtol=1e-4, atol=1e-4 * max(1, float(abs(b.detach()).max())), err_msg=of
    )
    close(y, want, "y")
    close(dx, with_gradient.grad, "dx")
    for name, p in layer.named_parameters():
        close(dparams[name], p.grad, name)


@BOTH
def test_the_layer_of_mamba(implementation):
    """Which goes from position to position where there are no kernels."""
    from transformers import MambaConfig
    from transformers.models.mamba import modeling_mamba

    config = MambaConfig(hidden_size=12, state_size=5, num_hidden_layers=1, time_step_rank=3)
    layer, params = _layer(modeling_mamba, config, "MambaMixer")

    def fun(x, p):
        u, gate = jnp.split(jnp.swapaxes(x @ p["in_proj.weight"].T, 1, 2), 2, 1)
        u = bj.causal_conv1d(
            u, p["conv1d.weight"][:, 0], p["conv1d.bias"], activation="silu", implementation=implementation
        )
        step, b, c = jnp.split(p["x_proj.weight"] @ u, [3, 8], 1)
        rates = (p["dt_proj.weight"] @ step, -jnp.exp(p["A_log"]))
        y = bj.selective_scan(
            u, *rates, b, c, p["D"], gate, p["dt_proj.bias"], dt_softplus=True, implementation=implementation
        )
        return jnp.swapaxes(y, 1, 2) @ p["out_proj.weight"].T

    _agree(layer, fun, normal((2, 19, 12), "float32"), params)


@BOTH
@pytest.mark.parametrize("chunk_size", [4, 256])
def test_the_layer_of_mamba_2(chunk_size, implementation):
    """Of two groups, in chunks of several sizes."""
    from transformers import Mamba2Config
    from transformers.models.mamba2 import modeling_mamba2

    config = Mamba2Config(
        hidden_size=12, num_heads=6, head_dim=4, n_groups=2, state_size=5, num_hidden_layers=1, chunk_size=chunk_size
    )
    layer, params = _layer(modeling_mamba2, config, "Mamba2Mixer")

    def fun(x, p):
        gate, of_conv, step = jnp.split(x @ p["in_proj.weight"].T, [24, 68], -1)
        of_conv = bj.causal_conv1d(
            of_conv, p["conv1d.weight"][:, 0], p["conv1d.bias"], activation="silu", data_format="NLC",
            implementation=implementation,
        )  # fmt: skip
        u, b, c = jnp.split(of_conv, [24, 34], -1)
        heads = lambda v, n: v.reshape(*v.shape[:2], n, -1)
        arrays = heads(u, 6), step, -jnp.exp(p["A_log"]), heads(b, 2), heads(c, 2), p["D"], heads(gate, 6)
        y = bj.ssd_chunk_scan(*arrays, p["dt_bias"], dt_softplus=True, chunk_size=8, implementation=implementation)
        y = heads(y, 2)  # normalized by group
        y = (y * jax.lax.rsqrt((y**2).mean(-1, keepdims=True) + config.layer_norm_epsilon)).reshape(gate.shape)
        return (y * p["norm.weight"]) @ p["out_proj.weight"].T

    _agree(layer, fun, normal((2, 19, 12), "float32"), params)


# ---------------------------------------------------------------------------------------------------------------------
# Logits processors


def _kept(logits, temperature=1.0, k=None, p=None, min_p=None):
    """Which tokens they leave of rows, and their probabilities among these."""
    from transformers.generation import logits_process as theirs

    scores = theirs.TemperatureLogitsWarper(temperature)(None, torch.tensor(np.asarray(logits)))
    for warper, value in ((theirs.TopKLogitsWarper, k), (theirs.TopPLogitsWarper, p), (theirs.MinPLogitsWarper, min_p)):
        scores = scores if value is None else warper(value)(None, scores)
    return np.isfinite(scores.numpy()), scores.softmax(-1).numpy()


SAMPLERS = {
    "top_k_sampling": dict(k=5),
    "top_p_sampling": dict(p=0.8),
    "min_p_sampling": dict(min_p=0.1),
    "top_k_top_p_sampling": dict(k=9, p=0.6),
}


@BOTH
@pytest.mark.parametrize("name", SAMPLERS)
def test_tokens_are_what_logits_processors_leave(name, implementation):
    """All of them are drawn, with their probabilities, and no others, of rows without ties."""
    options = SAMPLERS[name]
    logits = np.float32(2 * np.random.default_rng(0).standard_normal((8, 30)))
    kept, chances = _kept(logits, 1.5, **options)
    rows = np.repeat(np.arange(8), 4000)
    tokens, logprobs = getattr(bj, name)(
        sent.asarray(logits[rows]), jax.random.key(0), **options, temperature=1.5, return_logprobs=True,
        implementation=implementation,
    )  # fmt: skip
    np.testing.assert_allclose(np.exp(logprobs), chances[rows, np.asarray(tokens)], rtol=1e-5)
    drawn = np.zeros_like(kept)
    drawn[rows, np.asarray(tokens)] = True
    assert not (drawn & ~kept).any()
    assert drawn[kept & (chances > 0.01)].all()


@BOTH
def test_logits_processors_differ_where_tokens_tie(implementation):
    """Theirs keep all tokens that are equal to the k-th, and of equal ones the last for p; here the first are kept, k in all."""
    logits = np.float32([[1, 0, 2, 1, 1]])
    draw = lambda name, **options: set(
        np.asarray(
            getattr(bj, name)(
                sent.asarray(np.repeat(logits, 2000, 0)), jax.random.key(0), **options, implementation=implementation
            )
        ).tolist()
    )
    assert set(np.flatnonzero(_kept(logits, k=2)[0])) == {0, 2, 3, 4}
    assert draw("top_k_sampling", k=2) == {0, 2}
    p = (math.exp(2) + math.e) / (1 + math.exp(2) + 3 * math.e) - 0.01  # of the first and one of those that tie
    theirs = set(np.flatnonzero(_kept(logits, p=p)[0]))
    assert 2 in theirs and len(theirs) == 2 and 0 not in theirs
    assert draw("top_p_sampling", p=p) == {0, 2}
    assert set(np.flatnonzero(_kept(logits, min_p=0.3)[0])) == draw("min_p_sampling", min_p=0.3) == {0, 2, 3, 4}


# ---------------------------------------------------------------------------------------------------------------------
# Masks


def _of_mask(arrays, mask):
    q, k, v = (torch.tensor(np.asarray(x)).transpose(-3, -2) for x in arrays)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return y.transpose(-3, -2).numpy()


def _masks():
    from transformers import masking_utils as of

    return {
        "causal": (of.causal_mask_function, dict(is_causal=True)),
        "all": (of.bidirectional_mask_function, {}),
        "a window": (of.sliding_window_causal_mask_function(4), dict(is_causal=True, window=(3, None))),
        "a window on both sides": (of.sliding_window_bidirectional_mask_function(3), dict(window=None)),
    }


@pytest.mark.parametrize("cached", [0, 6])
@pytest.mark.parametrize("name", ["causal", "all", "a window", "a window on both sides"])
def test_queries_see_what_masks_show(name, cached):
    """Those of new tokens after cached ones, with padding after the end of a sequence."""
    from transformers.masking_utils import sdpa_mask

    function, options = _masks()[name]
    at = np.arange(-8, 9)
    if name == "a window on both sides":  # how far it goes is what its function says
        shown = [int(j) for j in at if bool(function(0, 0, torch.tensor(20), torch.tensor(20 + int(j))))]
        options = dict(window=(-min(shown), max(shown)))
    keys, lengths = cached + 5, [cached + 5, cached + 3]
    padding = torch.tensor(np.arange(keys) < np.array(lengths)[:, None])
    mask = sdpa_mask(
        batch_size=2, q_length=5, kv_length=keys, q_offset=cached, mask_function=function, attention_mask=padding,
        allow_is_causal_skip=False,
    )  # fmt: skip
    arrays = normal((2, 5, 4, 3)), normal((2, keys, 2, 3), seed=1), normal((2, keys, 2, 3), seed=2)
    for op in (bj.sdpa, bj.flash_sdpa):
        y = op(*arrays, alignment=cached, key_value_seq_lengths=sent.asarray(lengths), **options)
        np.testing.assert_allclose(y, _of_mask(arrays, mask), rtol=1e-10, atol=1e-12)


@BOTH
@pytest.mark.parametrize("name", ["causal", "all", "a window"])
def test_packed_sequences_see_what_masks_show(name, implementation):
    from transformers.masking_utils import and_masks, packed_sequence_mask_function, sdpa_mask

    function, options = _masks()[name]
    starts = np.array([0, 4, 5, 12], np.int32)
    ids = torch.tensor(np.repeat(np.arange(3), np.diff(starts)))[None]
    mask = sdpa_mask(
        batch_size=1, q_length=12, kv_length=12, mask_function=and_masks(function, packed_sequence_mask_function(ids)),
        allow_is_causal_skip=False,
    )  # fmt: skip
    arrays = normal((12, 4, 3)), normal((12, 2, 3), seed=1), normal((12, 2, 3), seed=2)
    y = bj.flash_sdpa_varlen(
        *arrays, sent.asarray(starts), sent.asarray(starts), 7, 7, **options, implementation=implementation
    )
    np.testing.assert_allclose(y, _of_mask(arrays, mask[0]), rtol=1e-10, atol=1e-12)
