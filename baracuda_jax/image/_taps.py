"""The taps of a resampled axis: which elements of the input each element of the output is a weighted sum of.

They depend on sizes alone, and so are tables that NumPy computes, in float64. What is said of positions is PyTorch's rule:
an element is at the center of its interval, or, with align_corners, the first and the last are at the ends."""

import dataclasses
import functools

import numpy as np

A = -0.75  # of Keys' kernel
SMOOTH = -0.5  # where it is as wide as a step


@dataclasses.dataclass(frozen=True)
class Taps:
    """index    [out, taps] of int32
    weight   [out, taps] of float64; one of 0 reads nothing
    size     of the input's axis

    Hashable, by its contents: a parameter of a compiled program."""

    index: np.ndarray
    weight: np.ndarray
    size: int

    def __hash__(self):
        return hash(self._key)

    def __eq__(self, other):
        return isinstance(other, Taps) and self._key == other._key

    def __repr__(self):
        return f"Taps({self.size} -> {len(self.index)}, {self.index.shape[1]} each)"

    @functools.cached_property
    def _key(self):
        return self.index.shape, self.size, self.index.tobytes(), self.weight.tobytes()

    @functools.cached_property
    def transposed(self):
        """The taps of the gradient: for each element of the input, the elements of the output that read it."""
        out, tap = np.nonzero(self.weight)
        read = self.index[out, tap]
        order = np.argsort(read, kind="stable")
        read, out, weight = read[order], out[order], self.weight[out, tap][order]
        # Elements at the border are read by several taps of one output: those are one tap of the gradient.
        is_first = np.diff(read * len(self.index) + out, prepend=-1) != 0
        weight = np.add.reduceat(weight, np.flatnonzero(is_first)) if len(weight) else weight
        read, out = read[is_first], out[is_first]
        counts = np.bincount(read, minlength=self.size)
        begin = np.cumsum(counts) - counts
        index = np.zeros((self.size, max(counts.max(), 1)), np.int32)
        weights = np.zeros(index.shape)
        at = read, np.arange(len(read)) - begin[read]
        index[at], weights[at] = out, weight
        return Taps(index, weights, len(self.index))

    @functools.cached_property
    def band(self):
        """The same as a kernel reads them: the first tap of each element, int32 [out], and the weights of as many neighbors
        as the element with the most taps needs, [taps, out]. Taps of one element of the input are one."""
        out, rows = len(self.index), np.arange(len(self.index))
        is_read = self.weight != 0
        low = np.where(is_read, self.index, self.size).min(1)
        high = np.where(is_read, self.index, -1).max(1)
        count = max(int((high - low).max()) + 1, 1)
        begin = np.minimum(low, self.size - count).astype(np.int32)
        weight = np.zeros((count, out))
        row, tap = np.nonzero(is_read)
        np.add.at(weight, (self.index[row, tap] - begin[row], rows[row]), self.weight[row, tap])
        return begin, weight

    @property
    def is_identity(self):
        n = len(self.index)
        return n == self.size and self.index.shape[1] == 1 and np.array_equal(self.index[:, 0], np.arange(n)) and bool(
            (self.weight == 1).all()
        )  # fmt: skip


def _taps(index, weight, size):
    """Indices outside are those of the nearest element; columns that weigh nothing are left out."""
    kept = (weight != 0).any(0)
    kept[0] |= not kept.any()
    return Taps(np.clip(index[:, kept], 0, size - 1).astype(np.int32), weight[:, kept], size)


def _step(size, out, scale, align_corners):
    """How far apart the output's elements are in the input. A given scale counts, also where out is not size scale."""
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return size / out if scale is None else 1 / scale


def _positions(size, out, scale, align_corners):
    step = _step(size, out, scale, align_corners)
    return np.arange(out) * step if align_corners else (np.arange(out) + 0.5) * step - 0.5


def nearest(size, out, scale, dtype, shift):
    """The element at floor((o + shift) step), rounded on the way as in PyTorch, which decides where that is an integer: the
    step to x's dtype, the position that is `shift` less too, and the sum to float32."""
    number = np.dtype(dtype).type
    step = number(size) / number(out) if scale is None else number(1 / scale)
    position = ((np.arange(out) + shift) * np.float64(step) - shift).astype(number)
    index = np.floor((position + number(shift)).astype(np.float32))
    return _taps(np.minimum(index, size - 1)[:, None], np.ones((out, 1)), size)


def _same(size):
    return _taps(np.arange(size)[:, None], np.ones((size, 1)), size)


def linear(size, out, scale, align_corners):
    """The two elements around a position. An axis that keeps its size is as it is."""
    if out == size:
        return _same(size)
    position = np.maximum(_positions(size, out, scale, align_corners), 0)
    index = np.minimum(np.floor(position), size - 1)
    after = np.clip(position - index, 0, 1)
    after[index == size - 1] = 0
    return _taps(np.stack([index, index + 1], 1), np.stack([1 - after, after], 1), size)


def cubic(size, out, scale, align_corners):
    """The four elements around a position; those outside are the nearest ones."""
    position = _positions(size, out, scale, align_corners)
    index = np.minimum(np.floor(position), size - 1)
    distance = np.clip(position - index, 0, 1)[:, None] - np.arange(-1, 3)
    return _taps(index[:, None] + np.arange(-1, 3), cubic_weight(np.abs(distance), A), size)


def cubic_weight(distance, a):
    """Keys' kernel of distances in [0, 2]."""
    return np.where(distance < 1, cubic_near(distance, a), np.where(distance < 2, cubic_far(distance, a), 0))


def cubic_near(distance, a):
    """The kernel up to distance 1."""
    return ((a + 2) * distance - (a + 3)) * distance * distance + 1


def cubic_far(distance, a):
    """From there to 2."""
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a


def antialiased(size, out, scale, align_corners, is_cubic):
    """All elements under the kernel, which is as wide as the step; their weights sum to 1."""
    if out == size:
        return _same(size)
    step = _step(size, out, scale, align_corners)
    wide = max(step, 1.0)
    reach = (2 if is_cubic else 1) * wide
    center = (np.arange(out) + 0.5) * step
    begin = np.maximum(np.trunc(center - reach + 0.5), 0).astype(int)
    end = np.minimum(np.trunc(center + reach + 0.5), size).astype(int)
    index = begin[:, None] + np.arange(max((end - begin).max(), 1))
    distance = np.abs(index + 0.5 - center[:, None]) / wide
    weight = cubic_weight(distance, SMOOTH) if is_cubic else np.maximum(1 - distance, 0)
    weight = np.where(index < end[:, None], weight, 0)
    total = weight.sum(1, keepdims=True)
    return _taps(index, np.divide(weight, total, out=np.zeros_like(weight), where=total != 0), size)


def area(size, out):
    """The mean of the elements that an interval of the output reaches, as in adaptive pooling."""
    begin = np.arange(out) * size // out
    end = -(-(np.arange(out) + 1) * size // out)
    index = begin[:, None] + np.arange((end - begin).max())
    return _taps(index, np.where(index < end[:, None], 1 / (end - begin)[:, None], 0), size)


LINEAR = ("linear", "bilinear", "trilinear")


@functools.cache
def taps(mode, size, out, scale, align_corners, antialias, dtype):
    """Those of an axis: of its size in the input and in the output, and of the scale where one is given and counts."""
    if mode == "area":
        return area(size, out)
    if mode in ("nearest", "nearest-exact"):
        return nearest(size, out, scale, dtype, 0.5 if mode == "nearest-exact" else 0)
    if antialias:
        return antialiased(size, out, scale, align_corners, mode == "bicubic")
    return (linear if mode in LINEAR else cubic)(size, out, scale, align_corners)
