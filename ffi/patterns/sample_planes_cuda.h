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

// How rows of elements are in shared memory: a row begins with 16 bytes of zeros, and takes 3 or 5 vectors of 16 bytes
// more than a multiple of 8, so that elements of a line in any direction are in many banks. Two rows of zeros come
// before the others, one after them: what is outside of the image is read there.
inline constexpr int zero_rows = 3;

constexpr int plane_pitch(int64_t vectors) {
  int64_t pitch = vectors + 1;
  while (pitch % 8 != 3 && pitch % 8 != 5) ++pitch;
  return int(pitch * 16);
}

// The first of the four elements around a position, in rows of `width` elements, of which the image's first one comes
// after two of zeros. Where none is in the image, it is the first of four zeros.
template <class T>
inline constexpr int plane_lead = 16 / int(sizeof(T));
template <class T, class Sum>
__device__ int plane_base(const AxisSample<Sum, 2> (&found)[2], int width) {
  int low[2];
  bool is_there = true;
#pragma unroll
  for (int a = 0; a < 2; ++a) {
    is_there = is_there && (found[a].index[0] >= 0 || found[a].index[1] >= 0);
    low[a] = found[a].index[0] >= 0 ? found[a].index[0] : -1;
  }
  return is_there ? (low[0] + 2) * width + plane_lead<T> + low[1] : plane_lead<T> - 1;
}

// Writes the zeros of so many planes, one after the other, and 16 bytes after the last.
__device__ inline void clear_planes(char* memory, int planes, int rows, int vectors, int pitch) {
  int of_row = pitch / 16, of_plane = of_row * (rows + zero_rows);
  uint4* to = reinterpret_cast<uint4*>(memory);
  for (int row = threadIdx.x; row <= planes * (rows + zero_rows); row += blockDim.x) {
    to[row * of_row] = uint4{};
    for (int v = vectors + 1; row > 0 && v < of_row; ++v) to[(row - 1) * of_row + v] = uint4{};
  }
  for (int v = threadIdx.x; v < of_row; v += blockDim.x)
    for (int plane = 0; plane < planes; ++plane) {
      uint4* first = to + plane * of_plane + v;
      first[0] = uint4{}, first[of_row] = uint4{}, first[of_row * (rows + 2)] = uint4{};
    }
}

// Which blocks have which channels and positions of an image.
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
    pitch = plane_pitch(vectors.value);
    spans = std::max<int64_t>(1, ceil_div(shape.points, most * plane_threads));
    each = ceil_div(shape.points, spans);
    positions = int(ceil_div(each, plane_threads));
    stages = row_bytes % 16 == 0
                 ? int(std::min<int64_t>(most_plane_stages, plane_memory / (int64_t(pitch) * (rows + zero_rows))))
                 : 0;
    // The chunks that take the least time, in planes; finding elements takes about as long as two.
    int64_t best = -1;
    chunks = 1;
    for (int64_t n = 1; n <= shape.channels; ++n) {
      int64_t time = ceil_div(shape.batches * spans * n, multiprocessors) * (ceil_div(shape.channels, n) + 2);
      if (best < 0 || time < best) best = time, chunks = n;
    }
    chunk = std::max<int64_t>(ceil_div(shape.channels, chunks), 1), chunks = ceil_div(shape.channels, chunk);
  }
  __host__ __device__ int bytes() const { return pitch * (rows + zero_rows); }
  int memory() const { return stages * bytes() + 16; }  // and the zeros after the last row
  int64_t blocks(const SampleShape& shape) const { return shape.batches * spans * chunks; }
  // Whether planes can be copied, most of what is copied is read, and there are enough blocks of enough channels.
  bool serve(const SampleShape& shape, const void* x) const {
    int64_t all = blocks(shape);
    return stages >= 2 && reinterpret_cast<uintptr_t>(x) % 16 == 0 && 2 * shape.points >= shape.elements &&
           positions >= 2 && chunk >= 4 && all >= 66 && all < int64_t(1) << 31;
  }
};

// P positions of a thread, J planes at once.
template <int P, int J, class Functor, class Sum, class T>
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
  auto copy_planes = [&](int channel, int stage) {
    for (int j = 0; j < J && channel < channels; ++j, ++channel, ++stage)
      for (int at = threadIdx.x; at < vectors; at += plane_threads) {
        int row = planes.vectors.quotient(at);
        copy_async(memory + stage * bytes + (row + 2) * planes.pitch + (at - row * planes.vectors.value + 1) * 16,
                   from + int64_t(channel) * vectors * 16 + at * 16, 16);
      }
    __pipeline_commit();
  };
  int stages = planes.stages / J * J, ahead = stages - J;
  for (int channel = 0; channel < ahead; channel += J) copy_planes(channel, channel);
  clear_planes(memory, planes.stages, planes.rows, planes.vectors.value, planes.pitch);
  int32_t base[P];
  Sum after_x[P], after_y[P];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    int point = min(p * plane_threads + int(threadIdx.x), points - 1);
    auto position = functor.read(positions, batch, first + point, shape.points);
    AxisSample<Sum, 2> found[2];
    functor.axes_at(position.of, found);
    base[p] = plane_base<T>(found, width);
    after_y[p] = found[0].weight[1], after_x[p] = found[1].weight[1];
  }
  T* to = y + (batch * shape.channels + first_channel) * shape.points + first + threadIdx.x;
  int left = points - int(threadIdx.x);
  for (int channel = 0, stage = 0, free = ahead; channel < channels; channel += J, to += J * shape.points) {
    __pipeline_wait_prior(ahead / J - 1);
    __syncthreads();  // the planes are here, and the ones before have been read
    copy_planes(channel + ahead, free);
    const T* plane = reinterpret_cast<const T*>(memory + stage * bytes);
    T* results[J];
#pragma unroll
    for (int j = 0; j < J; ++j) results[j] = to + j * shape.points;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      // Not in registers for all channels: what is computed of these.
      asm volatile("" : "+r"(base[p]), "+f"(after_x[p]), "+f"(after_y[p]));
      Sum before_x = 1 - after_x[p], before_y = 1 - after_y[p];
      Sum weight[4] = {before_y * before_x, before_y * after_x[p], after_y[p] * before_x, after_y[p] * after_x[p]};
      bool is_written = p * plane_threads < left;
#pragma unroll
      for (int j = 0; j < J; ++j) {  // the last plane may be one of before
        const T *upper = plane + (base[p] + j * (bytes / int(sizeof(T)))), *lower = upper + width;
        Sum sum = Sum(upper[0]) * weight[0];
        sum += Sum(upper[1]) * weight[1];
        sum += Sum(lower[0]) * weight[2];
        sum += Sum(lower[1]) * weight[3];
        if (is_written && (j == 0 || channel + j < channels)) results[j][p * plane_threads] = T(sum);
      }
    }
    free = stage;
    stage = stage + J == stages ? 0 : stage + J;
  }
}

template <class Functor, class Sum, class T>
Status sample_planes(const Executor& executor, const Functor& functor, const SampleShape& shape,
                     const SamplePlanes& planes, const T* x, const Sum* positions, T* y) {
  auto launch = [&](auto kernel) -> Status {
    int bytes = planes.memory();
    if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
    kernel<<<unsigned(planes.blocks(shape)), plane_threads, size_t(bytes), executor.stream>>>(functor, shape, planes, x,
                                                                                              positions, y);
    return launched();
  };
  auto with_planes = [&](auto at_once) {
    constexpr int J = at_once.value;
    if (planes.positions <= 6) return launch(sample_planes_of<6, J, Functor, Sum, T>);
    if (planes.positions <= 10) return launch(sample_planes_of<10, J, Functor, Sum, T>);
    return launch(sample_planes_of<14, J, Functor, Sum, T>);
  };
  if (planes.stages >= 4) return with_planes(std::integral_constant<int, 2>());
  return with_planes(std::integral_constant<int, 1>());
}

}  // namespace internal
}  // namespace baracuda
