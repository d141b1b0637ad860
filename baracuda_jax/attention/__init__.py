"""Attention: what it computes, positions, and the keys and values that it keeps."""

from ._alibi import alibi
from ._append import kv_cache_append, kv_cache_append_backward
from ._block_sparse import sdpa_block_sparse
from ._cascade import cascade_attention, cascade_merge_states
from ._decode import batch_paged_decode, batch_paged_decode_backward
from ._decode_float8 import batch_paged_decode_fp8
from ._flash_decoding import flash_decoding
from ._hyper import hyper_connection
from ._paged import paged_kv_append
from ._paged_attention import batch_paged_prefill, paged_attention
from ._ring import ring_attention
from ._rope import rope, rope_apply_table, rope_scaled_table
from ._sdpa import flash_sdpa, flash_sdpa_sm89, sdpa
from ._varlen import batch_ragged_prefill, flash_sdpa_varlen, flash_sdpa_varlen_backward

__all__ = [
    "alibi",
    "batch_paged_decode",
    "batch_paged_decode_backward",
    "batch_paged_decode_fp8",
    "batch_paged_prefill",
    "batch_ragged_prefill",
    "cascade_attention",
    "cascade_merge_states",
    "flash_decoding",
    "flash_sdpa",
    "flash_sdpa_sm89",
    "flash_sdpa_varlen",
    "flash_sdpa_varlen_backward",
    "hyper_connection",
    "kv_cache_append",
    "kv_cache_append_backward",
    "paged_attention",
    "paged_kv_append",
    "ring_attention",
    "rope",
    "rope_apply_table",
    "rope_scaled_table",
    "sdpa",
    "sdpa_block_sparse",
]
