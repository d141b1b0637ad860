// The rows pattern for few long rows: a row is divided among many blocks, whatever its length.
//
// The first kernel reduces the parts of rows and writes their states to the workspace. The blocks of the second begin
// before the first is through, and load what they can of their part meanwhile; then each merges the states of its row,
// always in the same order, and writes its part, the last elements first, since these are in the second-level cache.
//
// Parts depend on the shape alone. A lane reduces the same elements of a part wherever the row begins, so that equal
// rows have equal results.
#pragma once

#include <algorithm>

#include "early_cuda.h"
#include "executor.h"
#include "row_team_cuda.h"
#include "rows.h"

namespace baracuda {
namespace internal {

inline constexpr int parts_threads = 256, parts_least = 1024;  // elements of a part
// The most blocks of a multiprocessor.
template <class T>
inline constexpr int parts_blocks = sizeof(T) == 8 ? 2 : 4;

// How rows are divided.
struct RowParts {
  int parts;
  int64_t columns, length;  // of a row, and of all parts but the last

  // So many that blocks of `at_once` are not exceeded, and each has `least` elements or more; all but the last have
  // whole lines of memory.
  RowParts(int64_t rows, int64_t row_columns, int64_t at_once, int64_t least, int64_t line) : columns(row_columns) {
    int64_t most = std::min(at_once / rows, columns / least);
    length = most > 1 ? ceil_div(ceil_div(columns, most), line) * line : columns;
    parts = int(ceil_div(columns, length));
  }
  // Positions in the array of what a block has.
  __device__ int64_t begin() const { return blockIdx.y * columns + blockIdx.x * length; }
  __device__ int64_t end() const { return blockIdx.y * columns + min(columns, (blockIdx.x + 1) * length); }
};

// The arrays that a functor reads, as bytes of its elements.
template <class Functor>
constexpr int parts_arrays() {
  return int(sizeof(decltype(std::declval<const Functor&>().template read<1>(0))) / sizeof(typename Functor::Element));
}
// Vectors of a part that a thread loads before it uses any: 64 bytes, or 16 vectors of fewer.
template <class Functor, int V>
constexpr int parts_ahead() {
  constexpr int bytes = V * int(sizeof(typename Functor::Element));
  return std::min(64 / bytes, 16) / parts_arrays<Functor>();
}

// The state of all threads of a block, in each of them.
template <class Functor, class State>
__device__ State of_block_of_parts(const Functor& functor, State state, State* shared) {
  constexpr int warps = parts_threads / 32;
  state = of_lanes(functor, state, 32);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = state;
  __syncthreads();
  return of_lanes(functor, shared[threadIdx.x % warps], warps);
}

// What a thread has of a block's elements: vectors `step` apart, from `first` on.
template <int V>
struct ThreadOfPart {
  static constexpr int step = parts_threads * V;
  int64_t first, left;

  __device__ ThreadOfPart(int64_t begin, int64_t end) : first(begin + threadIdx.x * V), left(end - first) {}
  __device__ bool has(int64_t i) const { return i < left; }
  template <class Functor, class Values, int n>
  __device__ void read(const Functor& functor, Values (&values)[n], int64_t i) const {
#pragma unroll
    for (int k = 0; k < n; ++k)
      if (has(i + k * step)) values[k] = functor.template read<V>(first + i + k * step);
  }
};

// A functor may push several vectors at once.
template <class Functor, class State, class Values, int n>
__device__ void push_parts(const Functor& functor, State& state, const Values (&values)[n]) {
  if constexpr (requires { functor.push_all(state, values); }) {
    functor.push_all(state, values);
  } else {
#pragma unroll
    for (int k = 0; k < n; ++k) functor.push(state, values[k]);
  }
}

// `states` are [rows, parts].
template <int V, class Functor, class State>
__global__ void __launch_bounds__(parts_threads, parts_blocks<typename Functor::Element>)
    reduce_parts_of_rows(const __grid_constant__ Functor every, const RowParts of, State* states) {
  constexpr int ahead = parts_ahead<Functor, V>();
  __shared__ State shared[parts_threads / 32];
  next_may_begin();
  Functor functor = at_row(every, blockIdx.y);
  ThreadOfPart<V> thread(of.begin(), of.end());
  State state = functor.start();
  decltype(functor.template read<V>(0)) values[ahead];
  int64_t i = 0;
#pragma unroll 1
  for (; thread.has(i + (ahead - 1) * thread.step); i += ahead * thread.step) {
#pragma unroll
    for (int k = 0; k < ahead; ++k) values[k] = functor.template read<V>(thread.first + i + k * thread.step);
    push_parts(functor, state, values);
  }
  if constexpr (requires { functor.template absent<V>(); }) {
    if (thread.has(i)) {
#pragma unroll
      for (int k = 0; k < ahead; ++k) values[k] = functor.template absent<V>();
      thread.read(functor, values, i);
      push_parts(functor, state, values);
    }
  } else {
    thread.read(functor, values, i);
#pragma unroll
    for (int k = 0; k < ahead - 1; ++k)
      if (thread.has(i + k * thread.step)) functor.push(state, values[k]);
  }
  state = of_block_of_parts(functor, state, shared);
  if (threadIdx.x == 0) states[blockIdx.y * of.parts + blockIdx.x] = state;
}

// Where rows are not aligned, the elements before and after the vectors of a part are written one by one.
template <int V, class Functor, class State>
__global__ void __launch_bounds__(parts_threads, parts_blocks<typename Functor::Element>)
    write_parts_of_rows(const __grid_constant__ Functor every, const RowParts of, const State* states) {
  constexpr int ahead = parts_ahead<Functor, V>(), group = ahead * ThreadOfPart<V>::step;
  __shared__ State shared[parts_threads / 32];
  Functor functor = at_row(every, blockIdx.y);
  int64_t begin = of.begin(), end = of.end(), low = min((begin + V - 1) / V * V, end), high = max(low, end / V * V);
  ThreadOfPart<V> thread(low, high);
  decltype(functor.template read<V>(0)) values[ahead];
  int64_t i = thread.left > 0 ? (thread.left - 1) / group * group : -group;
  if (i >= 0) thread.read(functor, values, i);
  wait_for_kernel_before();
  states += blockIdx.y * of.parts;
  State state = functor.start();
  if (threadIdx.x < of.parts) state = states[threadIdx.x];
  for (int part = threadIdx.x + parts_threads; part < of.parts; part += parts_threads)
    functor.merge(state, states[part]);
  auto block = functor.block(of_block_of_parts(functor, state, shared));
  if (blockIdx.x == 0 && threadIdx.x == 0) functor.finish(blockIdx.y, block);
  if (threadIdx.x < 2 * V) {
    bool is_before = threadIdx.x < V;
    int64_t element = is_before ? begin + threadIdx.x : high + threadIdx.x - V;
    if (element < (is_before ? low : end)) functor.write(element, functor.template read<1>(element), block);
  }
  while (i >= 0) {
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (thread.has(i + k * thread.step)) functor.write(thread.first + i + k * thread.step, values[k], block);
    i -= group;
    if (i >= 0) thread.read(functor, values, i);
  }
}

template <int V, int V_written, class Functor>
Status run_parts_by(const Executor& executor, const Functor& functor, int64_t rows, const RowParts& of) {
  using State = decltype(functor.start());
  State* states = reinterpret_cast<State*>(executor.workspace);
  dim3 blocks(unsigned(of.parts), unsigned(rows));
  reduce_parts_of_rows<V><<<blocks, parts_threads, 0, executor.stream>>>(functor, of, states);
  if (Status status = launched(); !status.ok()) return status;
  return launch_early(executor, write_parts_of_rows<V_written, Functor, State>, blocks, parts_threads, 0, functor, of,
                      states);
}

// Elements are reduced by vectors that all rows have alike, and written by whole ones where all of the functor's arrays
// are aligned.
template <class Functor>
Status run_parts_of(const Executor& executor, const Functor& functor, int64_t rows, const RowParts& of) {
  constexpr int V = 16 / sizeof(typename Functor::Element);
  constexpr bool whole = requires { functor.is_aligned(); };
  if (of.columns % V == 0) return run_parts_by<V, V>(executor, functor, rows, of);
  if constexpr (V > 2)
    if (of.columns % 2 == 0) return run_parts_by<2, whole ? V : 2>(executor, functor, rows, of);
  return run_parts_by<1, whole ? V : 1>(executor, functor, rows, of);
}

// Whether rows are so few and long that parts are faster. Of many bytes it is better to read them once, where a ring
// holds a row.
template <class Functor>
bool parts_pay(const Functor& functor, int64_t rows, int64_t columns) {
  constexpr int64_t size = sizeof(typename Functor::Element), arrays = parts_arrays<Functor>();
  constexpr int64_t ring_bytes = 1280 << 10, cached_bytes = 48 << 20;
  int64_t row_bytes = columns * arrays * size;
  return columns >= functor.divided_from(columns) && columns >= (size == 2 ? 512 : 384) * rows &&
         (row_bytes > ring_bytes || (rows <= 64 && rows * row_bytes <= cached_bytes));
}

// Whether the workspace has room for the states of parts, and these are faster; then it is done, with this status. The
// functor knows from how many elements on a single row is divided.
template <class Functor>
bool run_parts(const Executor& executor, const Functor& functor, int64_t rows, int64_t columns, Status& status) {
  using T = typename Functor::Element;
  constexpr int line = 128 / sizeof(T);
  // What all threads of a block load before they use any of it.
  constexpr int64_t group = parts_threads * 64 / sizeof(T) / parts_arrays<Functor>();
  int64_t room = int64_t(executor.workspace_bytes / sizeof(decltype(functor.start())));
  if (room < 2 * rows || !parts_pay(functor, rows, columns)) return false;
  if constexpr (requires { functor.is_aligned(); })
    if (!functor.is_aligned()) return false;
  int64_t multiprocessors = multiprocessors_of_device(), groups = ceil_div(rows * columns, multiprocessors * group);
  int64_t blocks = groups >= 4 ? parts_blocks<T> : groups > 1 ? 2 : 1;
  RowParts of(rows, columns, std::min(room, multiprocessors * blocks), parts_least, line);
  if (of.parts == 1) return false;
  status = run_parts_of(executor, functor, rows, of);
  return true;
}

}  // namespace internal
}  // namespace baracuda
