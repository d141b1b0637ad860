// The sample pattern where the planes of an image fit shared memory: a block goes through some channels of an image,
// the next of which are copied meanwhile, and each thread knows the elements and weights of its positions, which are
// the same in all channels. Positions may be anywhere.
#pragma once

#include <algorithm>

#include "copy_async_cuda.h"
#include "divisor.h"
#include "sample.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int plane_threads = 896, most_plane_stages = 6;
inline constexpr int64_t plane_memory = 224 * 1024;

// Bilinear sampling of a grid, whose second element along an axis is the one after the first, and of which a thread has
// room for many positions.
template <class Functor, class Sum>
inline constexpr bool has_planes = Functor::taps == 4 && Functor::axes == 2 && !Functor::has_fill && sizeof(Sum) == 4;

// Which blocks have which channels and positions of an image, and how planes are in shared memory: a row there takes an
// odd number of vectors of 16 bytes, so that a column has elements in many banks.
struct SamplePlanes {
  int64_t spans, each;       // of positions; positions of a span
  int64_t chunks, chunk;     // of channels; channels of a chunk
  Divisor<int32_t> vectors;  // of a row in memory
  int rows, pitch;           // of a plane; bytes of a row in shared memory
  int stages, positions;     // planes in shared memory; positions of a thread

  // Of rows of so many bytes.
  SamplePlanes(const SampleShape& shape, int64_t row_bytes, int64_t rows)
      : vectors(std::clamp<int64_t>(row_bytes / 16, 1, plane_memory)), rows(int(std::min(rows, plane_memory))) {
    constexpr int64_t multiprocessors = 132, most = 14;
    pitch = (vectors.value | 1) * 16;
    spans = std::max<int64_t>(1, ceil_div(shape.points, most * plane_threads));
    each = ceil_div(shape.points, spans);
    positions = int(ceil_div(each, plane_threads));
    int64_t bytes = std::max<int64_t>(int64_t(pitch) * rows, 1);
    stages = row_bytes % 16 == 0 ? int(std::min<int64_t>(most_plane_stages, plane_memory / bytes)) : 0;
    // The chunks that take the least time, in planes; finding elements takes about as long as two.
    int64_t best = -1;
    chunks = 1;
    for (int64_t n = 1; n <= shape.channels; ++n) {
      int64_t time = ceil_div(shape.batches * spans * n, multiprocessors) * (ceil_div(shape.channels, n) + 2);
      if (best < 0 || time < best) best = time, chunks = n;
    }
    chunk = std::max<int64_t>(ceil_div(shape.channels, chunks), 1), chunks = ceil_div(shape.channels, chunk);
  }
  __host__ __device__ int bytes() const { return pitch * rows; }
  int64_t blocks(const SampleShape& shape) const { return shape.batches * spans * chunks; }
  // Whether planes can be copied, most of what is copied is read, and there are enough blocks of enough channels.
  bool serve(const SampleShape& shape, const void* x) const {
    int64_t all = blocks(shape);
    return stages >= 2 && reinterpret_cast<uintptr_t>(x) % 16 == 0 && 2 * shape.points >= shape.elements &&
           positions >= 2 && chunk >= 4 && all >= 66 && all < int64_t(1) << 31;
  }
};

// P positions of a thread.
template <int P, class Functor, class Sum, class T>
__global__ void __launch_bounds__(plane_threads, 1)
    sample_planes_of(Functor functor, SampleShape shape, SamplePlanes planes, const T* __restrict__ x,
                     const Sum* __restrict__ positions, T* __restrict__ y) {
  extern __shared__ __align__(16) char memory[];
  unsigned rest = blockIdx.x / unsigned(planes.chunks), chunk = blockIdx.x - rest * unsigned(planes.chunks);
  unsigned batch = rest / unsigned(planes.spans), span = rest - batch * unsigned(planes.spans);
  int64_t first_channel = chunk * planes.chunk;
  int channels = int(min(planes.chunk, shape.channels - first_channel));
  int bytes = planes.bytes(), vectors = planes.vectors.value * planes.rows, width = planes.pitch / int(sizeof(T));
  int64_t first = span * planes.each;
  int points = int(min(planes.each, shape.points - first));
  const char* from = reinterpret_cast<const char*>(x + (batch * shape.channels + first_channel) * shape.elements);
  auto copy_plane = [&](int channel, int stage) {
    if (channel < channels)
      for (int at = threadIdx.x; at < vectors; at += plane_threads) {
        int row = planes.vectors.quotient(at);
        copy_async(memory + stage * bytes + row * planes.pitch + (at - row * planes.vectors.value) * 16,
                   from + int64_t(channel) * vectors * 16 + at * 16, 16);
      }
    __pipeline_commit();
  };
  int ahead = planes.stages - 1;
  for (int channel = 0; channel < ahead; ++channel) copy_plane(channel, channel);
  int32_t base[P];
  Sum after_x[P], after_y[P];
  uint32_t there[(P + 7) / 8] = {};  // four bits of a position: which of its elements are in the image
#pragma unroll
  for (int p = 0; p < P; ++p) {
    int point = min(p * plane_threads + int(threadIdx.x), points - 1);
    auto position = functor.read(positions, batch, first + point, shape.points);
    AxisSample<Sum, 2> found[2];
    functor.axes_at(position.of, found);
    int32_t low[2];
#pragma unroll
    for (int a = 0; a < 2; ++a)
      low[a] = found[a].index[0] >= 0 ? found[a].index[0] : found[a].index[1] >= 0 ? found[a].index[1] - 1 : 0;
    base[p] = low[0] * width + low[1];
    after_y[p] = found[0].weight[1], after_x[p] = found[1].weight[1];
#pragma unroll
    for (int t = 0; t < 4; ++t)
      there[p / 8] |= uint32_t(found[0].index[t / 2] >= 0 && found[1].index[t % 2] >= 0) << (4 * (p % 8) + t);
  }
  T* to = y + (batch * shape.channels + first_channel) * shape.points + first + threadIdx.x;
  int left = points - int(threadIdx.x);
  for (int channel = 0, stage = 0, free = ahead; channel < channels; ++channel, to += shape.points) {
    __pipeline_wait_prior(ahead - 1);
    __syncthreads();  // the plane is here, and the one before has been read
    copy_plane(channel + ahead, free);
    const T* plane = reinterpret_cast<const T*>(memory + stage * bytes);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      // Not in registers for all channels: what is computed of these.
      asm volatile("" : "+r"(base[p]), "+f"(after_x[p]), "+f"(after_y[p]), "+r"(there[p / 8]));
      const T *upper = plane + base[p], *lower = upper + width;
      auto is_there = [&](int t) { return (there[p / 8] >> (4 * (p % 8) + t) & 1) != 0; };
      Sum value[4];
      value[0] = is_there(0) ? Sum(upper[0]) : Sum(0);
      value[1] = is_there(1) ? Sum(upper[1]) : Sum(0);
      value[2] = is_there(2) ? Sum(lower[0]) : Sum(0);
      value[3] = is_there(3) ? Sum(lower[1]) : Sum(0);
      Sum before_x = 1 - after_x[p], before_y = 1 - after_y[p];
      Sum sum = value[0] * (before_y * before_x);
      sum += value[1] * (before_y * after_x[p]);
      sum += value[2] * (after_y[p] * before_x);
      sum += value[3] * (after_y[p] * after_x[p]);
      if (p * plane_threads < left) to[p * plane_threads] = T(sum);
    }
    free = stage;
    stage = stage + 1 == planes.stages ? 0 : stage + 1;
  }
}

template <class Functor, class Sum, class T>
Status sample_planes(const Executor& executor, const Functor& functor, const SampleShape& shape,
                     const SamplePlanes& planes, const T* x, const Sum* positions, T* y) {
  auto launch = [&](auto kernel) -> Status {
    int bytes = planes.stages * planes.bytes();
    if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
    kernel<<<unsigned(planes.blocks(shape)), plane_threads, size_t(bytes), executor.stream>>>(functor, shape, planes, x,
                                                                                              positions, y);
    return launched();
  };
  if (planes.positions <= 6) return launch(sample_planes_of<6, Functor, Sum, T>);
  if (planes.positions <= 10) return launch(sample_planes_of<10, Functor, Sum, T>);
  return launch(sample_planes_of<14, Functor, Sum, T>);
}

}  // namespace internal
}  // namespace baracuda
