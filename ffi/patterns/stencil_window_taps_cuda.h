// Windows as parts of those that kernels have: of 3, 5 or 7 along the last two axes, around the middle. Even sizes and
// dilation are such windows with weights of 0, and any padding is a distance between x and y.
#pragma once

#include <algorithm>

#include "../kernels/depthwise.h"

namespace baracuda {
namespace internal {

__device__ inline bool is_index(int index, int count) { return unsigned(index) < unsigned(count); }

// How many elements a window reaches over along an axis.
inline int64_t span_of(const DepthwiseShape& shape, int axis) {
  return (shape.window[axis] - 1) * shape.dilation[axis] + 1;
}

// The kernel's window for it: one size along the last two axes, or one row.
inline int64_t kernel_window(const DepthwiseShape& shape) {
  int64_t span = std::max(span_of(shape, 1), span_of(shape, 2));
  return span <= 3 ? 3 : span <= 5 ? 5 : 7;
}

// Where the first of a window's weights is in the kernel's, of `size`: if it can be, so that x and y begin at once.
inline int64_t first_tap(const DepthwiseShape& shape, int axis, int64_t size) {
  return std::clamp<int64_t>(size / 2 - shape.before[axis], 0, size - span_of(shape, axis));
}
// Where y begins then, x beginning at 0.
inline int64_t window_begin(const DepthwiseShape& shape, int axis, int64_t size) {
  return size / 2 - shape.before[axis] - first_tap(shape, axis, size);
}

// Which weights of a kernel's window are those of the one that it serves as.
struct WindowTaps {
  int64_t count;  // of these
  int window[3];
  int numbers[3][8];     // along each axis, or -1
  bool is_whole = true;  // all are

  WindowTaps() = default;
  // Along the axes from `axis` on; along those before, there is one.
  WindowTaps(const DepthwiseShape& shape, const int64_t (&sizes)[3], int axis = 0) : count(shape.taps()) {
    for (int a = 0; a < 3; ++a) {
      window[a] = int(shape.window[a]);
      std::fill(numbers[a], numbers[a] + 8, -1);
      int64_t first = a < axis ? 0 : first_tap(shape, a, sizes[a]), most = a < axis ? 1 : shape.window[a];
      for (int64_t k = 0; k < most; ++k) numbers[a][first + k * shape.dilation[a]] = int(k);
      is_whole = is_whole && (a < axis || shape.window[a] == sizes[a]);
    }
  }
  // Among those that there are, or -1.
  __device__ int number(int a, int j, int k) const {
    int i = numbers[0][a], h = numbers[1][j], w = numbers[2][k];
    return (i | h | w) < 0 ? -1 : (i * window[1] + h) * window[2] + w;
  }
};

// Whether that is the window itself.
inline bool has_own_window(const DepthwiseShape& shape) {
  int64_t size = kernel_window(shape);
  return shape.window[2] == size && (shape.window[1] == size || shape.window[1] == 1);
}

}  // namespace internal
}  // namespace baracuda
