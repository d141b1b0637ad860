// The grouped pattern on a CUDA grid, of floats that tensor cores do not multiply without loss.
//
// A block has a tile of rows and columns, of which a thread has up to 8 x 8, and walks the axis that is summed over in
// steps. Panels of the next step are read into registers while those in shared memory are multiplied.
#pragma once

#include "grouped_tile_cuda.h"
#include "store_shared_cuda.h"

namespace baracuda {
namespace internal {

// The rows and columns of a thread, of which a block has 16 x 16.
template <class T, int rows_>
struct GroupedThreads {
  static constexpr int side = 16, threads = side * side, step = 64 / int(sizeof(T)), vector = 16 / int(sizeof(T));
  static constexpr int m = rows_ / side, n = 32 / int(sizeof(T)), rows = rows_, columns = n * side, bytes = 0;
};

// Elements of `lines` lines and a step, on their way to shared memory, where those of neighboring lines are neighbors.
// In memory a line goes on along the steps, or is an element of each step. `list` names the lines, or the steps.
template <class T, int lines, int step, bool is_along, bool is_listed>
struct GroupedPanel {
  static constexpr int threads = 256, V = 16 / int(sizeof(T)), pitch = lines + V;
  static constexpr int across = (is_along ? step : lines) / V, total = lines * step / V;
  static constexpr int count = (total + threads - 1) / threads;
  const T* from;
  const uint32_t* list;
  int64_t stride;
  int lines_left, steps_left;
  bool is_aligned;
  Vector<T, V> value[count];

  __device__ GroupedPanel(const T* from, int64_t stride, int lines_left, int steps_left, const uint32_t* list = nullptr)
      : from(from), list(list), stride(stride), lines_left(lines_left), steps_left(steps_left) {
    is_aligned = stride % V == 0 && (is_along ? steps_left : lines_left) % V == 0 &&
                 reinterpret_cast<uintptr_t>(from) % (V * sizeof(T)) == 0;
  }
  static __device__ int far(int i) { return (int(threadIdx.x) + i * threads) / across; }
  static __device__ int near(int i) { return (int(threadIdx.x) + i * threads) % across * V; }
  static __device__ bool is_one(int i) { return total % threads == 0 || int(threadIdx.x) + i * threads < total; }

  __device__ void read() {
    const int fars = is_along ? lines_left : steps_left, nears = is_along ? steps_left : lines_left;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      value[i] = {};
      if (!is_one(i) || far(i) >= fars || near(i) >= nears) continue;
      const T* at = from + (is_listed ? int64_t(list[far(i)]) : far(i)) * stride + near(i);
      if (is_aligned) {
        value[i] = load<V>(at);
      } else {
#pragma unroll
        for (int e = 0; e < V; ++e)
          if (near(i) + e < nears) value[i].lane[e] = at[e];
      }
    }
    steps_left -= step;
    if constexpr (is_along)
      from += step;
    else if constexpr (is_listed)
      list += step;
    else
      from += step * stride;
  }
  __device__ void write(T* to) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (!is_one(i)) continue;
      if constexpr (is_along) {
#pragma unroll
        for (int e = 0; e < V; ++e) to[(near(i) + e) * pitch + far(i)] = value[i].lane[e];
      } else {
        store_shared<V>(to + far(i) * pitch + near(i), value[i]);
      }
    }
  }
};

template <class T, class Threads>
struct GroupedSumOfThread {
  static constexpr int m = Threads::m, n = Threads::n, V = Threads::vector, groups = n / V;
  T part[m][n] = {};

  static __device__ int row(int i) { return threadIdx.x / Threads::side * m + i; }
  static __device__ int column(int j) { return j / V * (V * Threads::side) + threadIdx.x % Threads::side * V + j % V; }
  template <class Left, class Right>
  __device__ void add(Left& left, Right& right, int steps) {
    __shared__ alignas(16) T lefts[2][Threads::step * Left::pitch], rights[2][Threads::step * Right::pitch];
    left.read(), right.read();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      // What the other buffer has was read before the last barrier.
      T *a = lefts[step % 2], *b = rights[step % 2];
      left.write(a), right.write(b);
      __syncthreads();
      if (step + 1 < steps) left.read(), right.read();
#pragma unroll 4
      for (int k = 0; k < Threads::step; ++k) {
        T of_a[m];
        Vector<T, V> of_b[groups];
#pragma unroll
        for (int i = 0; i < m; i += m < V ? m : V) {
          constexpr int W = m < V ? m : V;
          auto some = load<W>(a + k * Left::pitch + row(i));
#pragma unroll
          for (int e = 0; e < W; ++e) of_a[i + e] = some.lane[e];
        }
#pragma unroll
        for (int j = 0; j < groups; ++j) of_b[j] = load<V>(b + k * Right::pitch + column(j * V));
#pragma unroll
        for (int i = 0; i < m; ++i)
#pragma unroll
          for (int j = 0; j < n; ++j) part[i][j] += of_a[i] * of_b[j / V].lane[j % V];
      }
    }
  }
  // `to(row)` is where a row begins.
  template <class To>
  __device__ void write(int rows, int columns, const To& to) const {
#pragma unroll
    for (int i = 0; i < m; ++i) {
      if (row(i) >= rows) continue;
      T* y = to(row(i));
#pragma unroll
      for (int j = 0; j < n; ++j)
        if (column(j) < columns) y[column(j)] = part[i][j];
    }
  }
};

template <class T, class Threads, bool transposed>
__global__ void __launch_bounds__(Threads::threads)
    grouped_any_products(const __grid_constant__ GroupedProducts<T> all, int tiles, int across) {
  const GroupedRowTile<T, Threads> tile(all, tiles, across);
  if (tile.rows <= 0) return;
  const GroupedProducts<T>& work = tile.work;
  GroupedSumOfThread<T, Threads> sum;
  if (tile.group < work.by.groups) {
    const int inner = int(work.inner);
    const T* b = work.b + tile.group * work.inner * work.columns + tile.first_column * (transposed ? work.inner : 1);
    GroupedPanel<T, Threads::rows, Threads::step, true, true> left(work.a, inner, tile.rows, inner, tile.order);
    GroupedPanel<T, Threads::columns, Threads::step, transposed, false> right(b, transposed ? inner : work.columns,
                                                                              tile.columns, inner);
    sum.add(left, right, (inner + Threads::step - 1) / Threads::step);
  }
  sum.write(tile.rows, tile.columns, [&](int row) { return tile.row(row); });
}

template <class T, class Threads>
__global__ void __launch_bounds__(Threads::threads, 2)
    grouped_any_sums(const __grid_constant__ GroupedSums<T> all, int tiles, int across) {
  const GroupedSumTile<T, Threads> tile(all, tiles, across);
  const GroupedSums<T>& work = tile.work;
  GroupedPanel<T, Threads::rows, Threads::step, false, true> left(work.a + tile.first_row, work.left, tile.rows,
                                                                  tile.count, tile.order);
  GroupedPanel<T, Threads::columns, Threads::step, false, true> right(work.b + tile.first_column, work.right,
                                                                      tile.columns, tile.count, tile.order);
  GroupedSumOfThread<T, Threads> sum;
  sum.add(left, right, (tile.count + Threads::step - 1) / Threads::step);
  sum.write(tile.rows, tile.columns, [&](int row) { return tile.row(row); });
}

}  // namespace internal
}  // namespace baracuda
