// The cotangent of positions where the planes of an image fit shared memory: a block has some positions of an image and
// goes through all channels. Of each plane it copies to shared memory the rows that its positions are in. Some warps
// copy planes in advance, the others sum: they wait for each other by barriers in shared memory. Positions may be
// anywhere.
#pragma once

#include <algorithm>

#include "copy_async_cuda.h"
#include "copy_bulk_cuda.h"
#include "sample_planes_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int rows_threads = 896, rows_fewest_copying = 64, rows_most_copying = 128;
inline constexpr int rows_positions = 4, rows_ahead = 2;  // positions of a thread; channels of which it has read dy
inline constexpr int most_row_planes = 8;

// How an image's positions are shared by blocks, and the rows that these read.
struct SampleRows {
  int64_t spans, each;   // of positions; positions of a span
  int vectors, pitch;    // of a row in memory; bytes of a row in shared memory
  int summing, copying;  // threads

  // Of an image of `rows` rows of so many bytes.
  SampleRows(const SampleShape& shape, int64_t row_bytes, int64_t rows) : rows_(rows) {
    constexpr int64_t multiprocessors = 132, most = (rows_threads - rows_fewest_copying) * rows_positions;
    // The spans that take the least time, in positions; what all blocks of a plane read takes about as long as some.
    int64_t best = -1, fewest = ceil_div(shape.points, most), other = shape.elements / 16;
    spans = fewest;
    for (int64_t n = fewest; n <= fewest + multiprocessors; ++n) {
      int64_t time = ceil_div(shape.batches * n, multiprocessors) * (ceil_div(shape.points, n) + other);
      if (best < 0 || time < best) best = time, spans = n;
    }
    each = ceil_div(shape.points, spans), spans = ceil_div(shape.points, each);
    vectors = row_bytes % 16 == 0 ? int(std::min(row_bytes / 16, plane_memory)) : 0, pitch = plane_pitch(vectors);
    summing = int(ceil_div(ceil_div(each, rows_positions), 32) * 32);
    copying = std::min(rows_threads - summing, rows_most_copying);
  }
  // Whether rows can be copied, two planes have room, and there are enough blocks of enough positions and channels.
  bool serve(const SampleShape& shape, const void* x) const {
    int64_t blocks = shape.batches * spans;
    return vectors > 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0 && 2 * pitch * (rows_ + zero_rows) <= plane_memory &&
           each >= 1024 && shape.channels >= 8 && blocks >= 66 && blocks < int64_t(1) << 31 &&
           shape.channels < int64_t(1) << 31;
  }

 private:
  int64_t rows_;
};

template <class Functor, class Sum, class T>
__global__ void __launch_bounds__(rows_threads, 1)
    sample_cotangents_by_rows(Functor functor, SampleShape shape, SampleRows grid, const T* __restrict__ x,
                              const Sum* __restrict__ positions, const T* __restrict__ dy, Sum* __restrict__ moved) {
  constexpr int P = rows_positions, J = rows_ahead;
  extern __shared__ __align__(16) char memory[];
  __shared__ CopyBarrier full[most_row_planes], empty[most_row_planes];
  __shared__ int lowest, highest;
  unsigned batch = blockIdx.x / unsigned(grid.spans), span = blockIdx.x - batch * unsigned(grid.spans);
  int64_t first = span * grid.each;
  int points = int(min(grid.each, shape.points - first)), width = grid.pitch / int(sizeof(T));
  int channels = int(shape.channels), thread = threadIdx.x, step = grid.summing, height = functor.axis[0].n;
  bool is_copying = thread >= step;
  int left = is_copying ? 0 : points - thread;  // positions p of which p * step is less
  if (thread == 0) {
    lowest = height, highest = -1;
    for (int i = 0; i < most_row_planes; ++i) full[i].init(grid.copying), empty[i].init(step / 32);
  }
  const T* from_y = dy + batch * shape.channels * shape.points + first + thread;
  T next[J][P];
  auto read = [&](T(&to)[P]) {
#pragma unroll
    for (int p = 0; p < P; ++p)
      if (p * step < left) to[p] = from_y[p * step];
    from_y += shape.points;
  };
#pragma unroll
  for (int j = 0; j < J; ++j) {
#pragma unroll
    for (int p = 0; p < P; ++p) next[j][p] = T(0.f);
    if (j < channels) read(next[j]);
  }
  __syncthreads();
  constexpr int outside = plane_lead<T> - 1;
  int base[P], low_row = height, high_row = -1;  // the first element of a position, among the rows
#pragma unroll
  for (int p = 0; p < P; ++p) {
    base[p] = outside;
    if (p * step >= left) continue;
    auto position = functor.read(positions, batch, first + p * step + thread, shape.points);
    AxisSample<Sum, 2> found[2];
    functor.axes_at(position.of, found);
    base[p] = plane_base<T>(found, width);
    if (base[p] == outside) continue;
    int row = found[0].index[0];
    low_row = min(low_row, max(row, 0)), high_row = max(high_row, row < 0 ? 0 : min(row + 1, height - 1));
  }
  low_row = __reduce_min_sync(~0u, low_row), high_row = __reduce_max_sync(~0u, high_row);
  if (thread % 32 == 0) atomicMin(&lowest, low_row), atomicMax(&highest, high_row);
  __syncthreads();
  // At least one row, where no position is in the image.
  int first_row = min(lowest, height - 1), rows = max(highest - first_row + 1, 1);
  int bytes = (rows + zero_rows) * grid.pitch, slots = min(most_row_planes, int(plane_memory) / bytes);
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (base[p] != outside) base[p] -= first_row * width;
  clear_planes(memory, slots, rows, grid.vectors, grid.pitch);
  __syncthreads();
  if (is_copying) {
    // The rows follow each other in memory: a thread has every so many vectors of them.
    int all = rows * grid.vectors, vector = thread - step, row = vector / grid.vectors;
    int begin = vector - row * grid.vectors, rows_step = grid.copying / grid.vectors;
    int vectors_step = grid.copying - rows_step * grid.vectors;
    const char* from = reinterpret_cast<const char*>(x + batch * shape.channels * shape.elements) +
                       (int64_t(first_row) * grid.vectors + vector) * 16;
    uint32_t to = uint32_t(__cvta_generic_to_shared(memory)) + (row + 2) * grid.pitch + (begin + 1) * 16;
    for (int c = 0, slot = 0, parity = 1; c < channels; ++c, from += shape.elements * int64_t(sizeof(T))) {
      if (c >= slots) empty[slot].wait(parity);
      uint32_t at = to + slot * bytes;
      const char* next = from;
#pragma unroll 4
      for (int i = vector, v = begin; i < all; i += grid.copying, next += grid.copying * 16) {
        copy_async(at, next, 16);
        v += vectors_step, at += rows_step * grid.pitch + vectors_step * 16;
        if (v >= grid.vectors) v -= grid.vectors, at += grid.pitch - grid.vectors * 16;
      }
      full[slot].arrive_after_copies();
      if (++slot == slots) slot = 0, parity ^= 1;
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    return;
  }
  Sum weight[P][4] = {};
  int slot = 0, parity = 0;
  const char* plane = memory;
  for (int c = 0; c < channels; c += J) {
#pragma unroll
    for (int j = 0; j < J; ++j) {
      if (c + j >= channels) break;
      full[slot].wait(parity);
      T value[P][4];
#pragma unroll
      for (int p = 0; p < P; ++p) {
        const T *upper = reinterpret_cast<const T*>(plane) + base[p], *lower = upper + width;
        value[p][0] = upper[0], value[p][1] = upper[1], value[p][2] = lower[0], value[p][3] = lower[1];
      }
      __syncwarp();
      if (thread % 32 == 0) empty[slot].arrive();
      plane += bytes;
      if (++slot == slots) slot = 0, parity ^= 1, plane = memory;
#pragma unroll
      for (int p = 0; p < P; ++p)
#pragma unroll
        for (int t = 0; t < 4; ++t) weight[p][t] += Sum(next[j][p]) * Sum(value[p][t]);
      if (c + j + J < channels) read(next[j]);
    }
  }
#pragma unroll
  for (int p = 0; p < P; ++p) {
    if (p * step >= left) continue;
    int64_t point = first + p * step + thread;
    auto position = functor.read(positions, batch, point, shape.points);
    typename Functor::Position of_position;
    functor.backward(position.of, weight[p], of_position.of);
    functor.write(moved, batch, point, shape.points, of_position);
  }
}

template <class Functor, class Sum, class T>
Status sample_cotangents_in_rows(const Executor& executor, const Functor& functor, const SampleShape& shape,
                                 const SampleRows& grid, const T* x, const Sum* positions, const T* dy, Sum* moved) {
  auto kernel = sample_cotangents_by_rows<Functor, Sum, T>;
  constexpr int bytes = int(plane_memory) + 16;  // and the zeros after the last row
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<unsigned(shape.batches * grid.spans), grid.summing + grid.copying, bytes, executor.stream>>>(
      functor, shape, grid, x, positions, dy, moved);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
