"""Public names: each is found again by pickle, as another process needs. Nothing is compiled here."""

import builtins
import inspect
import pathlib
import pickle

import pytest

import baracuda_jax as bj
from baracuda_jax._core import traced
from baracuda_jax._core.op import OPS


@pytest.mark.parametrize("name", traced.names())
def test_public_names_pickle(name):
    value = getattr(bj, name)
    if callable(value):
        assert pickle.loads(pickle.dumps(value)) is value
    else:
        assert pickle.loads(pickle.dumps(value)) == value


def test_an_op_that_is_not_a_function_of_its_name_is_explained():
    """An op of the tables is public under its name, or the page that has the table says which function calls it."""
    page = (pathlib.Path(__file__).parent.parent / "docs" / "ops.md").read_text()
    for op in OPS.values():
        if op.name not in traced.names():
            assert f"`{op.name}`" in page, op.name
        assert getattr(bj, op.public.__name__) is op.public


def test_names_that_other_libraries_have_too():
    for alias, name in (
        ("batched_ormqr", "ormqr"),
        ("batched_ormqr_wy", "ormqr"),
        ("batched_qr", "geqrf"),
        ("batched_qr_materialize", "householder_product"),
        ("batched_svd", "svd"),
        ("affine_grid_2d", "affine_grid"),
        ("grid_sample_2d", "grid_sample"),
        ("concatenate", "concat"),
        ("ctc_loss_cudnn", "ctc_loss"),
        ("norm_strided", "layer_norm"),
        ("batch_ragged_prefill", "flash_sdpa_varlen"),
        ("flash_sdpa_sm89", "flash_sdpa"),
        ("powi", "integer_pow"),
        ("reduce_to", "unbroadcast"),
        ("remainder", "mod"),
        ("softmax_strided", "softmax"),
        ("top_k", "topk"),
        ("transpose", "permute"),
        ("write_slice", "dynamic_update_slice"),
    ):
        assert getattr(bj, alias) is getattr(bj, name)
    for name in ("clamp_between", "norm", "spread", "associative_linear_scan"):
        assert not hasattr(bj, name), name


def test_segments_alone_call_their_first_operand_otherwise():
    """One name for the first operand: x, except where it is no plain array of elements or has a partner."""
    others = {
        "segment_index": "segment_ids", "segment_": "data", "dequantize_": "q", "lerp": "start", "linear_scan": "a", "solve": "a", "triangular_solve": "a", "lstsq": "a", "where": "condition",
        "gguf_dequantize": "data", "int4_awq_dequantize": "qweight", "nf4_dequantize": "data", "int4_dequantize": "data",
        "searchsorted": "sorted_sequence", "sort_key_val": "keys", "kv_cache_append": "cache", "fill": "value", "full": "shape",
        "histogramdd": "sample", "concat": "xs", "meshgrid": "xs", "paged_kv_append": "pages", "rope_scaled_table": "positions",
        "sdpa": "query", "batch_paged_": "query", "paged_attention": "query", "flash_decoding": "query", "flash_sdpa": "query", "cascade_attention": "query", "ring_attention": "query",
        "triplet_margin_loss": "anchor",
        "selective_scan": "u", "selective_state_update": "state", "affine_grid": "theta", "box_iou": "boxes1", "nms": "boxes", "soft_nms": "boxes",
        "gemm_sparse24": "values",
        **dict.fromkeys(("gemm", "gemv", "batched_gemm", "dense_gemm", "grouped_gemm", "int8_gemm", "fp8_gemm", "int4_gemm", "bin_gemm"), "a"),
        "fp8_dequant": "q", "fp8_recipe_update": "history",
        "random_": "key", "token_penalty": "logits", "top_": "logits", "min_p_": "logits", "speculative_": "draft_tokens", "moe_gating_topk": "logits",
        "embedding_sgd": "weight", "embedding_adagrad": "weight",
        **dict.fromkeys(("adam", "distributed_adam", "lamb", "sgd"), "params"),
    }  # fmt: skip
    for op in OPS.values():
        name, first = op.public.__name__, next(iter(inspect.signature(op.public).parameters))
        known = [other for start, other in others.items() if name.startswith(start)]
        assert first in ("x", "x1", *known), name


def test_a_star_import_shadows_no_builtin():
    names = {}
    exec("from baracuda_jax import *", names)
    found = {name for name in names if not name.startswith("__")}
    assert found == set(bj.__all__) and not found & set(dir(builtins))
    assert {"sum", "max", "min", "abs", "round", "pow", "all", "any"} <= traced.public().keys()


def test_forward_and_backward_functions_are_listed_apart():
    backward = [name for name in traced.public() if name.endswith("_backward")]
    assert set(backward) == set(bj.backward.__all__) and not set(backward) & set(bj.__all__)
    assert set(traced.names()) - set(bj.__all__) - set(backward) == traced.public().keys() & set(dir(builtins))
    for name in backward:
        assert getattr(bj.backward, name) is getattr(bj, name)


def test_a_plan_has_the_own_name_of_a_function_of_several_names():
    assert bj.plan(bj.remainder, 1.0, 2.0).name == "mod" and bj.plan("remainder", 1.0, 2.0).name == "remainder"
