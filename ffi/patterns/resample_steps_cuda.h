// Strips of y whose both axes are of twice or half the size, a row, or a pair of rows, at a time. A lane of a warp
// reads its own columns of each row of x once, some rows in advance. Lanes give what they read or have summed to the
// lanes next to them; the first and the last of a warp only read.
#pragma once

#include "resample_vectors_cuda.h"

namespace baracuda {
namespace internal {

// The weight of tap k of element o of an axis, whose taps begin at `begin`. Those outside of x weigh nothing.
template <class Sum>
__device__ Sum scaled_weight(const Taps<Sum>& axis, int o, int k, int begin) {
  k += begin - axis.in_range(begin);
  return unsigned(k) < unsigned(axis.count) && unsigned(o) < unsigned(axis.out) ? axis.weight[k * int(axis.out) + o]
                                                                                : Sum(0);
}

// Weights of V neighbors from element o on, some of whose taps are outside of x.
template <int K, int V, class Sum, class Begin>
__device__ void move_taps(const Taps<Sum>& axis, int o, const Begin& begin, Sum (&weight)[V][K]) {
  int out = int(axis.out);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    int moved = begin(o + v) - axis.in_range(begin(o + v));
    if (moved == 0) continue;
    const Sum* from = axis.weight + (moved * out + o + v);
#pragma unroll
    for (int k = 0; k < K; ++k) weight[v][k] = unsigned(k + moved) < unsigned(K) ? from[k * out] : Sum(0);
  }
}

inline constexpr int scaled_block = 128, scaled_lanes = 30, scaled_each = scaled_block / 32 * scaled_lanes;

template <int ahead, int count>
inline constexpr int scaled_together = ahead > count ? ahead : count;  // steps that are unrolled

struct ScaledGrid {
  Divisor<int32_t> units, strips;  // vectors in a row of y, strips of a column of it
  int32_t threads;                 // of a strip
  int steps;                       // of a strip
};

// Which vector of y a lane has.
struct ScaledLane {
  int outer, unit, first;  // the first step of the strip
  bool is_written;

  __device__ explicit ScaledLane(const ScaledGrid& grid) {
    int block = grid.strips.quotient(blockIdx.x), lane = threadIdx.x % 32;
    int thread = block * scaled_each + int(threadIdx.x / 32) * scaled_lanes + lane - 1;
    first = (int(blockIdx.x) - block * grid.strips.value) * grid.steps;
    is_written = 0 < lane && lane <= scaled_lanes && thread < grid.threads;
    thread = max(0, min(thread, grid.threads - 1));
    outer = grid.units.quotient(thread), unit = thread - outer * grid.units.value;
  }
};

// The rows of x that a lane reads, one after the other: zeros outside of x.
template <class Read, class T>
struct ScaledRows {
  const T* from;
  int row, end, width;

  __device__ Read next() {
    Read found = unsigned(row) < unsigned(end) ? Read::read(from + row * width) : Read{};
    ++row;
    return found;
  }
};

// In strips of at least `least` and at most `most` of the steps that there are.
template <int V, class Kernel, class Sum, class T, class U>
Status resample_in_steps(const Executor& executor, Kernel kernel, const ResamplePlane<Sum>& shape, int64_t steps,
                         int64_t least, int64_t most, const T* x, U* y) {
  int64_t units = shape.columns.out / V, threads = shape.outer * units;
  int64_t strips = ceil_div(steps, std::clamp(threads * steps >> 15, least, most)), strip = ceil_div(steps, strips);
  ScaledGrid grid{Divisor<int32_t>(units), Divisor<int32_t>(strips), int32_t(threads), int(strip)};
  unsigned blocks = unsigned(ceil_div(threads, scaled_each) * strips);
  kernel<<<blocks, scaled_block, 0, executor.stream>>>(shape, grid, x, y);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
