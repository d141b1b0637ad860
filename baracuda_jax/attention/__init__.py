"""What attention keeps: the keys and values of the positions so far."""

from ._append import kv_cache_append, kv_cache_append_backward

__all__ = ["kv_cache_append", "kv_cache_append_backward"]
