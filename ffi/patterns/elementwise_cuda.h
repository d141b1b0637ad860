// The elementwise pattern on a CUDA grid: a thread for V neighboring elements of the results, 16 bytes of the widest
// array. There are three kinds of kernels, each for any shape of its kind: arrays as they lie, operands that broadcast,
// rows. A functor has those that its ops need.
#pragma once

#include "divisor.h"
#include "elementwise.h"

namespace baracuda {

struct ElementwiseKernel {
  int operands, results, lanes;
  const void *flat, *broadcast, *rows;  // the addresses of kernels, as cudaLaunchKernel takes them
};

namespace internal {

inline constexpr int elementwise_block = 256;

// V elements of each operand, in the type that a functor takes.
template <class Sequence, int V, class... T>
struct ElementwiseLanes;
template <int i, int V, class T>
struct ElementwiseLane {
  Comparable<T> value[V];
};
template <int... i, int V, class... T>
struct ElementwiseLanes<std::integer_sequence<int, i...>, V, T...> : ElementwiseLane<i, V, T>... {};

template <int V, class Functor, class In = typename Functor::Operands, class Out = typename Functor::Results>
struct ElementwiseThread;

// `count` of V elements are read and written; where `vector` is true that is all, at an address that 16 divides.
template <int V, class Functor, class... In, class... Out>
struct ElementwiseThread<V, Functor, Types<In...>, Types<Out...>> {
  using InSequence = std::make_integer_sequence<int, int(sizeof...(In))>;
  using OutSequence = std::make_integer_sequence<int, int(sizeof...(Out))>;
  ElementwiseLanes<InSequence, V, In...> lanes;

  // `offset(i, k)` is where operand i's element for lane k is; `same(i)` whether all lanes have one.
  template <class Offset, class Same>
  __device__ void read(const ElementwiseArrays& arrays, int count, bool vector, const Offset& offset,
                       const Same& same) {
    read_each(arrays, count, vector, offset, same, InSequence());
  }
  __device__ void write(const Functor& functor, const ElementwiseArrays& arrays, int count, bool vector,
                        const int64_t (&to)[sizeof...(Out)]) {
    write_each(functor, arrays, count, vector, to, InSequence(), OutSequence());
  }

 private:
  template <class Offset, class Same, int... i>
  __device__ void read_each(const ElementwiseArrays& arrays, int count, bool vector, const Offset& offset,
                            const Same& same, std::integer_sequence<int, i...>) {
    (read_one<i, In>(arrays, count, vector, offset, same), ...);
  }
  template <int i, class T, class Offset, class Same>
  __device__ void read_one(const ElementwiseArrays& arrays, int count, bool vector, const Offset& offset,
                           const Same& same) {
    auto& value = static_cast<ElementwiseLane<i, V, T>&>(lanes).value;
    const T* array = static_cast<const T*>(arrays.in[i]);
    if (same(i)) {
      Comparable<T> all = Comparable<T>(array[offset(i, 0)]);
#pragma unroll
      for (int k = 0; k < V; ++k) value[k] = all;
    } else if (vector) {
      Vector<T, V> loaded = load<V>(array + offset(i, 0));
#pragma unroll
      for (int k = 0; k < V; ++k) value[k] = Comparable<T>(loaded.lane[k]);
    } else {
#pragma unroll
      for (int k = 0; k < V; ++k) value[k] = k < count ? Comparable<T>(array[offset(i, k)]) : Comparable<T>(T());
    }
  }
  template <int... i, int... j>
  __device__ void write_each(const Functor& functor, const ElementwiseArrays& arrays, int count, bool vector,
                             const int64_t (&to)[sizeof...(Out)], std::integer_sequence<int, i...>,
                             std::integer_sequence<int, j...>) {
    using Value = decltype(functor(static_cast<ElementwiseLane<i, V, In>&>(lanes).value[0]...));
    Value value[V];
#pragma unroll
    for (int k = 0; k < V; ++k) value[k] = functor(static_cast<ElementwiseLane<i, V, In>&>(lanes).value[k]...);
    (write_one<j, Out>(value, static_cast<Out*>(arrays.out[j]) + to[j], count, vector), ...);
  }
  template <int j, class T, class Value>
  __device__ void write_one(const Value (&value)[V], T* to, int count, bool vector) {
    Vector<T, V> result;
#pragma unroll
    for (int k = 0; k < V; ++k) result.lane[k] = T(result_of<j>(value[k]));
    if (vector) return store<V>(to, result);
#pragma unroll
    for (int k = 0; k < V; ++k)
      if (k < count) to[k] = result.lane[k];
  }
};

// `scalars` has a bit for each operand of one element.
template <int V, class Functor>
__global__ void __launch_bounds__(elementwise_block)
    elementwise_flat(Functor functor, ElementwiseArrays arrays, int64_t elements, unsigned scalars, bool aligned) {
  int64_t first = (int64_t(blockIdx.x) * elementwise_block + threadIdx.x) * V;
  if (first >= elements) return;
  int count = elements - first < V ? int(elements - first) : V;
  bool vector = aligned && count == V;
  ElementwiseThread<V, Functor> thread;
  auto same = [&](int i) { return (scalars >> i & 1) != 0; };
  thread.read(arrays, count, vector, [&](int i, int k) { return same(i) ? 0 : first + k; }, same);
  int64_t to[ElementwiseTypes<Functor>::results];
  for (int64_t& position : to) position = first;
  thread.write(functor, arrays, count, vector, to);
}

// Division of positions below 2^31 is a multiplication.
struct ElementwiseDivisor {
  Divisor<int32_t> narrow;
  int64_t value;
  ElementwiseDivisor() = default;
  explicit ElementwiseDivisor(int64_t d) : narrow(d < (int64_t(1) << 31) ? d : 1), value(d) {}
};

struct ElementwiseGrid {
  int rank;
  int64_t elements;
  bool is_narrow, aligned;  // aligned: vectors do not cross the ends of rows
  ElementwiseDivisor extent[elementwise_rank];
  int64_t step[elementwise_operands][elementwise_rank];

  // from[i]: where operand i's element for the result at `position` is.
  template <int operands>
  __device__ void find(int64_t position, int64_t (&from)[operands]) const {
#pragma unroll
    for (int i = 0; i < operands; ++i) from[i] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      int64_t rest = position, quotient = 0;
      if (d > 0) {
        quotient = is_narrow ? extent[d].narrow.quotient(int32_t(position)) : position / extent[d].value;
        rest -= quotient * extent[d].value;
      }
      position = quotient;
#pragma unroll
      for (int i = 0; i < operands; ++i) from[i] += rest * step[i][d];
    }
  }
};

// A thread has V results, or one where vectors would cross the ends of rows.
template <int V, class Functor>
__global__ void __launch_bounds__(elementwise_block)
    elementwise_broadcast(Functor functor, ElementwiseArrays arrays, const __grid_constant__ ElementwiseGrid grid) {
  int64_t first = (int64_t(blockIdx.x) * elementwise_block + threadIdx.x) * (grid.aligned ? V : 1);
  if (first >= grid.elements) return;
  int64_t from[ElementwiseTypes<Functor>::operands];
  grid.find(first, from);
  ElementwiseThread<V, Functor> thread;
  thread.read(
      arrays, 1, grid.aligned, [&](int i, int) { return from[i]; },
      [&](int i) { return grid.step[i][grid.rank - 1] == 0; });
  int64_t to[ElementwiseTypes<Functor>::results];
  for (int64_t& position : to) position = first;
  thread.write(functor, arrays, 1, grid.aligned, to);
}

// Threads of a row next to each other; `groups` of V elements in a row.
template <int V, class Functor>
__global__ void __launch_bounds__(elementwise_block)
    elementwise_rows(Functor functor, ElementwiseArrays arrays, const __grid_constant__ ElementwiseRows shape,
                     int64_t groups, bool aligned) {
  int64_t group = int64_t(blockIdx.x) * elementwise_block + threadIdx.x;
  if (group >= shape.rows * groups) return;
  int64_t row = shape.rows * groups < (int64_t(1) << 31) ? unsigned(group) / unsigned(groups) : group / groups;
  int64_t first = (group - row * groups) * V;
  int count = shape.columns - first < V ? int(shape.columns - first) : V;
  bool vector = aligned && count == V;
  ElementwiseThread<V, Functor> thread;
  thread.read(
      arrays, count, vector, [&](int i, int k) { return row * shape.in_pitch[i] + first + k; },
      [](int) { return false; });
  constexpr int results = ElementwiseTypes<Functor>::results;
  int64_t to[results];
#pragma unroll
  for (int j = 0; j < results; ++j) to[j] = row * shape.out_pitch[j] + first;
  thread.write(functor, arrays, count, vector, to);
}

inline bool elementwise_aligned(const ElementwiseKernel& kernel, const ElementwiseArrays& arrays) {
  uintptr_t bits = 0;
  for (int i = 0; i < kernel.operands; ++i) bits |= reinterpret_cast<uintptr_t>(arrays.in[i]);
  for (int j = 0; j < kernel.results; ++j) bits |= reinterpret_cast<uintptr_t>(arrays.out[j]);
  return bits % 16 == 0;
}

// `arguments` are those of the kernel after the functor and the arrays.
template <class... Argument>
Status launch_elementwise(const Executor& executor, const void* kernel, const void* functor,
                          const ElementwiseArrays& arrays, int64_t threads, Argument... arguments) {
  void* all[] = {const_cast<void*>(functor), const_cast<ElementwiseArrays*>(&arrays), &arguments...};
  unsigned blocks = unsigned(ceil_div(threads, elementwise_block));
  cudaError_t error = cudaLaunchKernel(kernel, dim3(blocks), dim3(elementwise_block), all, 0, executor.stream);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

}  // namespace internal

// A functor may compute of bits what another type is stored as. Functors whose arrays always have one shape, `is_flat`,
// have one kernel.
template <class Functor, class Stored, bool is_flat, bool has_rows>
ElementwiseKernel elementwise_kernel() {
  static_assert(internal::ElementwiseTypes<Functor>::In::widest() == internal::ElementwiseTypes<Stored>::In::widest());
  using F = internal::ElementwiseTypes<Functor>;
  constexpr int widest = F::In::widest() > F::Out::widest() ? F::In::widest() : F::Out::widest();
  constexpr int V = widest == 1 ? 8 : 16 / widest;  // 16 offsets of bytes would not fit in registers
  ElementwiseKernel kernel{F::operands, F::results, V, nullptr, nullptr, nullptr};
  if constexpr (has_rows) {
    kernel.rows = reinterpret_cast<const void*>(internal::elementwise_rows<V, Functor>);
  } else {
    kernel.flat = reinterpret_cast<const void*>(internal::elementwise_flat<V, Functor>);
    if constexpr (!is_flat)
      kernel.broadcast = reinterpret_cast<const void*>(internal::elementwise_broadcast<V, Functor>);
  }
  return kernel;
}

inline Status elementwise(const Executor& executor, const ElementwiseKernel& kernel, const void* functor,
                          const ElementwiseArrays& arrays, const ElementwiseShape& shape) {
  using namespace internal;
  int64_t elements = shape.elements(), threads = ceil_div(elements, kernel.lanes);
  if (elements == 0) return {};
  bool aligned = elementwise_aligned(kernel, arrays);
  if (shape.rank == 1) {
    unsigned scalars = 0;
    for (int i = 0; i < kernel.operands; ++i) scalars |= unsigned(shape.step[i][0] == 0) << i;
    return launch_elementwise(executor, kernel.flat, functor, arrays, threads, elements, scalars, aligned);
  }
  ElementwiseGrid grid{
      shape.rank, elements, elements < (int64_t(1) << 31) - 256, aligned && shape.columns() % kernel.lanes == 0,
      {},         {}};
  for (int d = 0; d < shape.rank; ++d) grid.extent[d] = ElementwiseDivisor(shape.extent[d]);
  memcpy(grid.step, shape.step, sizeof(grid.step));
  if (!grid.aligned) threads = elements;
  return launch_elementwise(executor, kernel.broadcast, functor, arrays, threads, grid);
}

inline Status elementwise(const Executor& executor, const ElementwiseKernel& kernel, const void* functor,
                          const ElementwiseArrays& arrays, const ElementwiseRows& shape) {
  using namespace internal;
  if (shape.rows * shape.columns == 0) return {};
  bool aligned = elementwise_aligned(kernel, arrays) && shape.columns % kernel.lanes == 0;
  int64_t groups = ceil_div(shape.columns, kernel.lanes);
  return launch_elementwise(executor, kernel.rows, functor, arrays, shape.rows * groups, shape, groups, aligned);
}

}  // namespace baracuda
