"""Cases by their number of elements: an op for each pattern of data flow, on arrays from tiny ones to those beyond 2^31."""

import dataclasses
from collections.abc import Callable

from . import elementwise, image, pool, quantize, reduce, scan, segment, shape, sort


@dataclasses.dataclass(frozen=True)
class Series:
    """One op at every size, and how its arrays are cut into parts that the op computes each by itself.

    of              (elements of the largest array, dtype) -> Benchmark
    operand_axes    the axis along which each operand is cut; None of what every part reads whole
    result_axis     that of the result
    """

    op: str
    of: Callable
    operand_axes: tuple[int | None, ...]
    result_axis: int
    variant: str = ""

    def __str__(self):
        return " ".join(filter(None, (self.op, self.variant)))


def matrix(elements, columns=4096):
    """Long rows, fewer columns where there are few elements."""
    columns = min(columns, elements // 16)
    return elements // columns, columns


def rows_into_segments(elements):
    """64 columns, 16 rows a segment."""
    return elements // 64, 64, elements // 1024


def images(elements):
    """64 x 64 elements in up to 32 channels, smaller where there are few elements."""
    side = 64 if elements >= 64 * 64 else 32
    channels = min(32, elements // side**2)
    return elements // (channels * side**2), channels, side, side


def quarters(elements):
    """Images that have as many elements when they are twice as large along both axes."""
    elements //= 4
    side = 64 if elements >= 64 * 64 else 8
    channels = min(8, elements // side**2)
    return elements // (channels * side**2), channels, side, side


def segments(op, is_sorted):
    of = lambda elements, dtype: segment.benchmark(op, rows_into_segments(elements), dtype, is_sorted)
    return Series(op, of, (1, None), 1, "sorted" if is_sorted else "unsorted")


SERIES = (
    segments("segment_sum", True),
    segments("segment_sum", False),
    segments("segment_max", True),
    Series("lp_pool2d", lambda elements, dtype: pool.images(images(elements), dtype), (0,), 0),
    Series(
        "interpolate",
        lambda elements, dtype: image.resized(quarters(elements), dtype, "bilinear", 2, "bilinear"),
        (0,),
        0,
    ),
    Series("repeat", lambda elements, dtype: shape.repeat(matrix(elements // 4, 1024), dtype), (0,), 0),
    Series("cumsum", lambda elements, dtype: scan.cumulative("cumsum", matrix(elements), 1, dtype), (0,), 0),
    Series("sum", lambda elements, dtype: reduce.reduction("sum", matrix(elements), 1, dtype), (0,), 0),
    Series("sort", lambda elements, dtype: sort.sort(matrix(elements), dtype), (0,), 0),
    Series("hardtanh", lambda elements, dtype: elementwise.unary("hardtanh", matrix(elements), dtype), (0,), 0),
    Series(
        "quantize_per_tensor",
        lambda elements, dtype: quantize.quantize("tensor", matrix(elements), dtype),
        (0, None),
        0,
    ),
    Series(
        "dequantize_per_channel",
        lambda elements, dtype: quantize.dequantize("channel", matrix(elements), dtype),
        (0, 1),
        1,
    ),
    Series(
        "dynamic_quantize",
        lambda elements, dtype: quantize.dynamic_quantize("int8", None, matrix(elements), dtype),
        (0,),
        0,
    ),
)
OPS = tuple(dict.fromkeys(series.op for series in SERIES))
