"""The sizes over which the choice of a backend is measured: a grid for ops that are measured alike, and random ones."""

import dataclasses
import itertools
import math
from collections.abc import Callable

from ..benchmark import DTYPES
from . import (
    attention,
    convolution,
    elementwise,
    embedding,
    gemm,
    graph,
    histogram,
    image,
    indexing,
    linalg,
    loss,
    moe,
    normalization,
    packed,
    pool,
    quantize,
    random,
    reduce,
    scan,
    segment,
    shape,
    softmax,
    sort,
    state_space,
    unique,
)

ELEMENTS = {"cpu": (2**12, 2**16, 2**20, 2**23), "cuda": (2**12, 2**15, 2**18, 2**21, 2**25)}
RANGE = {"cpu": (2**10, 2**23), "cuda": (2**10, 2**26)}
SLICE = {"cpu": 2**23, "cuda": 2**28}  # where one is all there is: a cache holds no part of it


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Elements of the largest array; the length of an axis along which an op reads, and the elements after it."""

    elements: int
    length: int = 1
    inner: int = 1

    @property
    def matrix(self):
        """(shape, axis)"""
        rows = self.elements // (self.length * self.inner)
        shape = [(rows, 0), (self.length, 1), (self.inner, 0)]
        kept = [pair for pair in shape if pair[1] or pair[0] > 1]
        return tuple(n for n, _ in kept), [is_axis for _, is_axis in kept].index(1)

    def between(self, other):
        """Half-way to others, as ratios go."""
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Sizes(*(math.isqrt(a * b) for a, b in pairs))


@dataclasses.dataclass(frozen=True)
class Space:
    """Ops that are measured at the same sizes.

    of          (Sizes, dtype) -> Benchmarks
    lengths     those of the grid; none where the time depends on the number of elements alone
    odd         more lengths, of rows that are not aligned for vector loads
    inner       the numbers of elements after the axis, the same
    dtypes      of the benchmarks
    is_batched  whether there are more slices than one
    """

    of: Callable
    lengths: tuple[int, ...] = ()
    odd: tuple[int, ...] = ()
    inner: tuple[int, ...] = (1,)
    dtypes: tuple[str, ...] = DTYPES
    is_batched: bool = True

    def grid(self, platform):
        """Sizes on all sides of each crossing that is known."""
        if not self.lengths:
            return [Sizes(elements) for elements in ELEMENTS[platform]]
        if not self.is_batched:
            slices = [Sizes(length * inner, length, inner) for length in self.lengths for inner in self.inner]
            return [sizes for sizes in slices if sizes.elements <= SLICE[platform]]
        every = [*itertools.product(ELEMENTS[platform], self.lengths, self.inner)]
        every += [(n // length * length, length, 1) for n in ELEMENTS[platform] for length in self.odd]
        return [Sizes(*sizes) for sizes in every if 0 < sizes[1] * sizes[2] <= sizes[0]]

    def random(self, rng, platform):
        """Sizes within those of the grid, uniform in their logarithms; odd ones too."""
        draw = lambda low, high: int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))
        elements = draw(*RANGE[platform])
        if not self.lengths:
            return Sizes(elements)
        length = draw(min(self.lengths), min(elements, max(self.lengths)))
        inner = draw(1, min(elements // length, max(self.inner))) if rng.random() < 0.5 else 1
        inner = inner if max(self.inner) > 1 else 1
        slices = max(1, elements // (length * inner)) if self.is_batched else 1
        return Sizes(length * inner * slices, length, inner)


def _reductions(sizes, dtype):
    matrix, axis = sizes.matrix
    return [reduce.reduction(op, matrix, axis, dtype) for op in reduce.OPS]


def _scans(sizes, dtype):
    matrix, axis = sizes.matrix
    return [*(scan.cumulative(op, matrix, axis, dtype) for op in scan.CUMULATIVE), scan.linear(matrix, axis, dtype)]


def _sorts(sizes, dtype):
    rows = sizes.matrix[0]
    made = [sort.sort(rows, dtype), sort.argsort(rows, dtype), sort.sort_key_val(rows, dtype)]
    made += [sort.topk(rows, min(16, rows[-1]), dtype), sort.kthvalue(rows, dtype)] if rows[-1] >= 4 else []
    made += [sort.median(op, rows, dtype) for op in ("median", "nanmedian")]
    made += [sort.quantile(op, rows, dtype) for op in ("quantile", "nanquantile")]
    return made + [sort.argextremum(op, rows, dtype) for op in ("argmax", "argmin")]


def _projections(sizes, dtype):
    return [softmax.projection(name, plain, sizes.matrix[0], dtype) for name, plain in softmax.PROJECTIONS.items()]


def _softmaxes(sizes, dtype):
    matrix, axis = sizes.matrix
    losses = [loss.classes(matrix, axis, dtype, softcap) for softcap in (None, 30.0)]
    return [*(softmax.slices(name, matrix, axis, dtype) for name in softmax.NAMES), *losses]


def _normalizations(sizes, dtype):
    rows = max(1, sizes.elements // sizes.length)
    return [of(rows, sizes.length, dtype) for of in normalization.ROWS]


def _groups(sizes, dtype):
    """Of `inner` channels of `length` elements."""
    rows = max(1, sizes.elements // (sizes.length * sizes.inner))
    count = min(8, rows)
    return [normalization.groups((rows // count, count * sizes.inner, sizes.length), count, dtype)]


def _channels(sizes, dtype):
    """Of a batch of `inner` elements, with a space of `length`."""
    channels = max(1, sizes.elements // (sizes.length * sizes.inner))
    return [normalization.channels((sizes.inner, channels, sizes.length), dtype)]


def _segments(sizes, dtype):
    rows = sizes.length, sizes.inner, max(1, sizes.length // 16)
    ops = (*segment.PLAIN, "segment_max_split", "segment_min_split")
    made = [segment.benchmark(op, rows, dtype, is_sorted) for op in ops for is_sorted in (False, True)]
    return made + [segment.take(rows, dtype, is_sorted) for is_sorted in (False, True)]


def _ids(sizes, dtype):
    shape = sizes.elements, 1, max(1, sizes.elements // 16)
    return [histogram.ids(sizes.elements), *(segment.index(shape, is_sorted) for is_sorted in (False, True))]


def _sequences(sizes, dtype):
    of = lambda count: max(1, sizes.elements // count)
    return [
        loss.sequences(of(128 * 32), 128, 32, 24, dtype),
        loss.transducers(of(64 * 16 * 32), 64, 15, 32, dtype),
        loss.series(of(64 * 64), 64, 64, dtype),
    ]


def _graphs(sizes, dtype):
    """The length is the number of edges."""
    shape = sizes.length, sizes.inner, max(1, sizes.length // 16)
    made = [graph.benchmark(op, shape, dtype, order) for op in graph.REDUCTIONS for order in ("unsorted", "sorted")]
    return [*made, graph.dots(shape, dtype)]


def _experts(sizes, dtype):
    """The length is the number of rows, 8 of each token."""
    k = min(8, sizes.length)
    shape = sizes.length // k, sizes.inner, 64, k
    return [moe.permute(shape, dtype), moe.combine(shape, dtype)]


def _grouped(sizes, dtype):
    """The length is the number of rows; `inner` are the columns of the matrices of all groups."""
    k, n = MATRIX
    shape = sizes.length, max(1, sizes.inner // n), k, n
    return [gemm.grouped(shape, dtype, is_even=False, by_ragged_dot=False)]


def _matrix(elements):
    columns = max(16, 2 ** (int(math.log2(elements)) // 2))
    return max(1, elements // columns), columns


def _image(elements):
    side = max(8, min(112, math.isqrt(elements // 8)))
    channels = max(8, min(64, elements // side**2 // 8 * 8))
    return max(1, elements // (channels * side**2)), channels, side, side


def _moves(sizes, dtype):
    """Images have even sides, which pixel_unshuffle halves."""
    batch, channels, *sides = _image(sizes.elements)
    image = batch, channels, *(side + side % 2 for side in sides)
    return [*shape.matrices(_matrix(sizes.elements), dtype), *shape.images(image, dtype)]


def _pools(sizes, dtype):
    image = _image(sizes.elements)
    return [
        pool.images(image, dtype),
        pool.lines_or_volumes(1, 4, image, dtype),
        pool.lines_or_volumes(3, 2, image, dtype),
        *pool.of(image, dtype),
    ]


def _images(sizes, dtype):
    """Results with four times as many elements are the largest arrays."""
    made = image.sizes(_image(sizes.elements // 4), dtype)
    whole, boxes = _image(sizes.elements), max(4, sizes.elements // 2**15)
    made += (
        image.regions(op, whole, boxes, dtype, more) for op, more in (("roi_align", image.ALIGN), ("roi_pool", {}))
    )
    made += (image.at_coordinates(whole[1:], dtype, order) for order in (1, 3))
    return [*made, *(image.grids(whole, dtype, mode) for mode in ("bilinear", "bicubic"))]


def _quantizations(sizes, dtype):
    rows, columns = _matrix(sizes.elements)
    matrix = rows, max(quantize.GROUP, columns // quantize.GROUP * quantize.GROUP)
    return quantize.of(matrix, dtype)


def _searches(sizes, dtype):
    return [histogram.values(sizes.elements, dtype), histogram.searches(sizes.elements, dtype)]


def _distinct(sizes, dtype):
    return [unique.distinct(sizes.elements, dtype), unique.runs(sizes.elements, dtype)]


def _traces(sizes, dtype):
    side = 2 ** (int(math.log2(sizes.elements)) // 3)
    return [reduce.trace((sizes.elements // side**2, side, side), dtype)]


def _drawn(sizes, dtype):
    return [of(sizes.elements, dtype) for of in (random.uniform, random.normal, random.dropped)]


def _samplers(sizes, dtype):
    tokens = max(2, sizes.length)
    return [random.sampler(op, max(1, sizes.elements // tokens), tokens, dtype) for op in random.SAMPLERS]


def _caches(sizes, dtype):
    length = 2 ** (int(math.log2(sizes.elements)) // 2)
    return [attention.append(max(1, sizes.elements // (length * 128)), 2, max(1, length), 64, dtype)]


def _decodings(sizes, dtype):
    """Of eight heads of keys, with four queries each."""
    batch = max(1, sizes.elements // (sizes.length * 8 * 64))
    return [attention.paged_decoding(batch, sizes.length, 32, 8, 64, dtype)]


def _packed_attention(sizes, dtype):
    """Of eight heads: sequences of one length, and of several."""
    batch = max(1, sizes.elements // (sizes.length * 8 * 64))
    return [attention.varlen(batch, sizes.length, 8, 8, 64, dtype), attention.mixed(4, sizes.length, 8, 8, 64, dtype)]


def _wide_attention(sizes, dtype):
    """Of 16 heads with 128 columns: 16, 4 and one sequences in the largest arrays on a GPU."""
    rows = max(1, sizes.elements // (16 * 128))
    length = min(sizes.length, rows)
    return [attention.varlen(rows // length, length, 16, 16, 128, dtype)]


def _of_weights(elements):
    """About square matrices, of whole blocks."""
    weights = 256 * 2 ** max(0, (int(math.log2(elements)) - 16) // 2)
    return max(8, elements // weights), weights


def _packed(sizes, dtype):
    """`length` rows of x."""
    return [
        packed.product(format, sizes.length, _of_weights(sizes.elements), dtype) for format in ("Q4_K", "nf4", "int4")
    ]


def _packed_columns(sizes, dtype):
    rows, weights = _of_weights(sizes.elements)
    return [packed.awq("int4_awq_gemm", sizes.length, (max(8, rows // 8 * 8), max(128, weights // 128 * 128)), dtype)]


def _unpacked(sizes, dtype):
    shape = _of_weights(sizes.elements)
    scaled = [packed.scaled_dequantize(format, shape, dtype) for format in packed.GROUPS]
    return [packed.gguf_dequantize("Q4_K", shape, dtype), *scaled, packed.by_expert(shape, dtype)]


def _causal(sizes, dtype):
    shape = 1, max(1, sizes.elements // sizes.length), sizes.length
    return [state_space.convolution(shape, dtype, data_format) for data_format in ("NCL", "NLC")]


def _depthwise(sizes, dtype):
    """Windows of `length` elements along each axis."""
    n, channels, side, _ = _image(sizes.elements)
    shapes = (1, (n, channels, side**2)), (2, (n, channels, side)), (3, (n, channels, max(1, round(side ** (2 / 3)))))
    return [
        convolution.depthwise(rank, shape, sizes.length, dtype, last)
        for rank, shape in shapes
        for last in (False, True)
    ]


def _recurrences(sizes, dtype):
    channels = max(1, sizes.elements // (4 * sizes.length))
    return [state_space.scan((min(4, channels), max(1, channels // 4), sizes.length, 16), dtype)]


def _chunks(sizes, dtype):
    """Of heads with 64 rows and columns."""
    heads = max(1, sizes.elements // (64 * sizes.length))
    return [state_space.chunk_scan((max(1, heads // 16), sizes.length, min(16, heads), 64, 64), dtype)]


def _indexed(sizes, dtype):
    return [indexing.gathered(*sizes.matrix, dtype), *indexing.combined(*sizes.matrix, dtype)]


def _tables(sizes, dtype):
    """Two ids for each three rows of 64 features."""
    rows = max(1, sizes.elements // 64)
    shape = max(1, 2 * rows // 3), rows, 64
    return [embedding.sgd(*shape), embedding.adagrad(*shape)]


def _small_matrices(sizes, dtype):
    """So many matrices (`inner`) of `length` rows, but no more than fit."""
    n = sizes.length
    return linalg.small((max(1, min(sizes.inner, MATRICES // n**2)), n, n))


def _functions(sizes, dtype):
    return elementwise.of(_matrix(sizes.elements), dtype)


ROWS = (16, 256, 4096, 2**16, 2**25)
MATRICES = 2**21  # elements of small matrices
MATRIX = 1024, 256  # of a group of rows
ODD = (35, 357, 1867)  # rows that are not aligned
SPACES = {
    "normalization": Space(_normalizations, (*ROWS, 2**14), ODD),
    "groups": Space(_groups, (49, 256, 4096, 2**16), (357, 1867), (1, 16)),
    "channels": Space(_channels, (1, 49, 784, 2**14), (357, 1867), (8, 64)),
    "segment": Space(_segments, (256, 4096, 2**15, 2**16, 2**19, 2**22), inner=(1, 64), is_batched=False),
    "graph": Space(_graphs, (256, 4096, 2**15, 2**16, 2**19, 2**22), inner=(1, 64), is_batched=False),
    "moe": Space(_experts, (256, 4096, 2**16, 2**19, 2**22), inner=(1, 64), is_batched=False),
    "grouped": Space(_grouped, (16, 256, 4096, 2**14), inner=(256, 2**11, 2**14), is_batched=False),
    "reduce": Space(_reductions, ROWS, (3, *ODD), (1, 64)),
    "shape": Space(_moves),
    "scan": Space(_scans, ROWS, ODD, (1, 64)),
    "sort": Space(_sorts, ROWS, ODD),
    "projection": Space(_projections, ROWS, ODD),
    "softmax": Space(_softmaxes, ROWS, ODD, (1, 64)),
    "pool": Space(_pools),
    "image": Space(_images),
    "boxes": Space(
        lambda sizes, dtype: [image.suppression(sizes.length, dtype)],
        (64, 1024, 4096),
        is_batched=False,
        dtypes=("float32",),
    ),
    "quantize": Space(_quantizations),
    "search": Space(_searches),
    "ids": Space(_ids, dtypes=("int32",)),
    "index": Space(_indexed, (64, 1024, 2**15, 2**20), (357,), (1, 64)),
    "tables": Space(_tables, dtypes=("float32",)),
    "lattice": Space(_sequences),
    "nonzero": Space(lambda sizes, dtype: [unique.positions(sizes.elements)], dtypes=("float32",)),
    "unique": Space(_distinct, dtypes=("float32", "int32")),
    "trace": Space(_traces),
    "cache": Space(_caches),
    "decode": Space(_decodings, (64, 1024, 8192)),
    "packed attention": Space(_packed_attention, (128, 1024, 4096), is_batched=False),
    "wide attention": Space(_wide_attention, (1024, 4096, 16384)),
    "packed": Space(_packed, (1, 4, 16, 64)),
    "packed columns": Space(_packed_columns, (1, 4, 16, 64)),
    "unpacked": Space(_unpacked),
    "causal convolution": Space(_causal, (16, 256, 4096)),
    "depthwise convolution": Space(_depthwise, (3, 4, 7)),
    "recurrence": Space(_recurrences, (16, 256, 4096)),
    "chunks": Space(_chunks, (64, 512, 4096)),
    "bits": Space(lambda sizes, dtype: [random.bits(sizes.elements)], dtypes=("uint32",)),
    "bools": Space(lambda sizes, dtype: [random.bools(sizes.elements)], dtypes=("bool",)),
    "draws": Space(_drawn),
    "sampling": Space(_samplers, (64, 4096, 2**17), (357,)),
    "small matrices": Space(
        _small_matrices, (2, 3, 4, 8, 16, 32, 64), inner=(1, 64, 4096), is_batched=False, dtypes=("float32",)
    ),
    "elementwise": Space(_functions, dtypes=(*DTYPES, "int32", "bool")),
}
