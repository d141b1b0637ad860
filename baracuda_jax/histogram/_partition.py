"""Searches and counts on shards. Values are looked up each by itself, in sequences that are whole. Elements are counted on
each shard, and the counts added."""

from .._core.partition import Partition


def _batches(count):
    return tuple(f"batch{i}" for i in range(count))


def _search_labels(names, types, params):
    """Sequences [*batch, n], values and positions [*batch, ...]."""
    batch = _batches(types[0].ndim - 1)
    values = (*batch, *(f"value{i}" for i in range(types[1].ndim - len(batch))))
    return [(*batch, "n"), values, values]


def _count_labels(names, types, params):
    """Elements [*batch, n], edges and counts with batches and what the name says."""
    last = {"x": "n", "bins": "edges", "y": "bins"}
    return [(*_batches(x.ndim - 1), last[name]) for name, x in zip(names, types, strict=True)]


each_value = Partition(_search_labels, whole=frozenset("n"), plain=True)
counts_are_added = Partition(_count_labels, whole=frozenset({"edges", "bins"}), plain=True)
