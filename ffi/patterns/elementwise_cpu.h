// The elementwise pattern on CPU threads: equal ranges of the results.
#pragma once

#include <algorithm>

#include "elementwise.h"
#include "vectorize_cpu.h"

namespace baracuda {

// How an array lies in memory: 16-bit floats are floats to a functor.
enum class Storage { as_it_is, half, bfloat16 };

// Of an array of `Stored` that a functor takes as one of T.
template <class T, class Stored>
constexpr Storage storage() {
  if (!std::is_same_v<T, float>) return Storage::as_it_is;
  return std::is_same_v<Stored, Half>       ? Storage::half
         : std::is_same_v<Stored, BFloat16> ? Storage::bfloat16
                                            : Storage::as_it_is;
}

struct ElementwiseKernel {
  int operands, results;
  Storage in_storage[elementwise_operands], out_storage[elementwise_results];
  int in_bytes[elementwise_operands], out_bytes[elementwise_results];  // of an element in memory
  // The elements [0, count) of arrays that do not broadcast.
  void (*loop)(const void* functor, const ElementwiseArrays& arrays, int64_t count);
};

namespace internal {

// The compiler vectorizes this loop. The functor is a copy, which no store may change.
template <class Functor, int... i, int... j>
void elementwise_loop(const Functor functor, const ElementwiseArrays& arrays, int64_t count,
                      std::integer_sequence<int, i...>, std::integer_sequence<int, j...>) {
  using F = ElementwiseTypes<Functor>;
  auto loop = [&](const typename F::In::template at<i>*... in, typename F::Out::template at<j>*... out) {
    BARACUDA_INDEPENDENT
    for (int64_t k = 0; k < count; ++k) {
      auto value = functor(Comparable<typename F::In::template at<i>>(in[k])...);
      ((out[k] = typename F::Out::template at<j>(result_of<j>(value))), ...);
    }
  };
  loop(static_cast<const typename F::In::template at<i>*>(arrays.in[i])...,
       static_cast<typename F::Out::template at<j>*>(arrays.out[j])...);
}

template <class Functor>
void elementwise_loop_of(const void* functor, const ElementwiseArrays& arrays, int64_t count) {
  using F = ElementwiseTypes<Functor>;
  elementwise_loop(*static_cast<const Functor*>(functor), arrays, count, std::make_integer_sequence<int, F::operands>(),
                   std::make_integer_sequence<int, F::results>());
}

// The elements [to, to + count) of an operand that broadcasts, written out.
template <class T>
void repeat_elements(const T* array, int rank, const int64_t* extent, const int64_t* step, int64_t to, int64_t count,
                     T* out) {
  int64_t position[elementwise_rank], last = rank - 1;
  for (int64_t d = last; d >= 0; to /= extent[d], --d) array += (position[d] = to % extent[d]) * step[d];
  while (count > 0) {
    int64_t length = std::min(count, extent[last] - position[last]);
    if (step[last]) {
      std::copy_n(array, length, out);
    } else {
      T value = *array;
      for (int64_t k = 0; k < length; ++k) out[k] = value;
    }
    out += length, count -= length;
    array += length * step[last], position[last] += length;
    for (int64_t d = last; d > 0 && position[d] == extent[d]; --d) {
      array += step[d - 1] - extent[d] * step[d];
      position[d] = 0, ++position[d - 1];
    }
  }
}

inline void repeat_elements_of(int bytes, const void* array, const ElementwiseShape& shape, int operand, int64_t to,
                               int64_t count, void* out) {
  auto repeat = [&](auto element) {
    using Element = decltype(element);
    repeat_elements(static_cast<const Element*>(array), shape.rank, shape.extent, shape.step[operand], to, count,
                    static_cast<Element*>(out));
  };
  if (bytes == 1) return repeat(uint8_t{});
  if (bytes == 2) return repeat(uint16_t{});
  if (bytes == 4) return repeat(uint32_t{});
  if (bytes == 8) return repeat(uint64_t{});
  repeat(Vector<uint64_t, 2>{});
}

inline void widen_elements(Storage storage, const void* from, int64_t count, float* to) {
  if (storage == Storage::half)
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<const Half*>(from)[k];
  else
    for (int64_t k = 0; k < count; ++k) to[k] = static_cast<const BFloat16*>(from)[k];
}
inline void narrow_elements(Storage storage, const float* from, int64_t count, void* to) {
  if (storage == Storage::half)
    for (int64_t k = 0; k < count; ++k) static_cast<Half*>(to)[k] = Half(from[k]);
  else
    for (int64_t k = 0; k < count; ++k) static_cast<BFloat16*>(to)[k] = BFloat16(from[k]);
}

inline constexpr int64_t elementwise_chunk = 1 << 10;

// `count` elements of arrays that do not broadcast, as they are in memory: 16-bit floats chunk by chunk.
inline void elementwise_dense(const ElementwiseKernel& kernel, const void* functor, const ElementwiseArrays& arrays,
                              int64_t count) {
  bool is_wide = true;
  for (int i = 0; i < kernel.operands; ++i) is_wide = is_wide && kernel.in_storage[i] == Storage::as_it_is;
  for (int j = 0; j < kernel.results; ++j) is_wide = is_wide && kernel.out_storage[j] == Storage::as_it_is;
  if (is_wide) return kernel.loop(functor, arrays, count);
  alignas(64) float in[elementwise_operands][elementwise_chunk], out[elementwise_results][elementwise_chunk];
  for (int64_t first = 0; first < count; first += elementwise_chunk) {
    int64_t length = std::min(elementwise_chunk, count - first);
    ElementwiseArrays part;
    for (int i = 0; i < kernel.operands; ++i) {
      part.in[i] = static_cast<const char*>(arrays.in[i]) + first * kernel.in_bytes[i];
      if (kernel.in_storage[i] == Storage::as_it_is) continue;
      widen_elements(kernel.in_storage[i], part.in[i], length, in[i]);
      part.in[i] = in[i];
    }
    auto at = [&](int j) { return static_cast<char*>(arrays.out[j]) + first * kernel.out_bytes[j]; };
    for (int j = 0; j < kernel.results; ++j)
      part.out[j] = kernel.out_storage[j] == Storage::as_it_is ? static_cast<void*>(at(j)) : out[j];
    kernel.loop(functor, part, length);
    for (int j = 0; j < kernel.results; ++j)
      if (kernel.out_storage[j] != Storage::as_it_is) narrow_elements(kernel.out_storage[j], out[j], length, at(j));
  }
}

}  // namespace internal

// `Functor` is what computes: that of floats, where arrays in memory are of 16-bit floats, which `Stored` says.
template <class Functor, class Stored, bool is_flat, bool has_rows>
ElementwiseKernel elementwise_kernel() {
  using F = internal::ElementwiseTypes<Stored>;
  using C = internal::ElementwiseTypes<Functor>;
  ElementwiseKernel kernel{F::operands, F::results, {}, {}, {}, {}, internal::elementwise_loop_of<Functor>};
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((kernel.in_storage[i] = storage<typename C::In::template at<i>, typename F::In::template at<i>>(),
      kernel.in_bytes[i] = F::In::bytes[i]),
     ...);
  }(std::make_integer_sequence<int, F::operands>());
  [&]<int... j>(std::integer_sequence<int, j...>) {
    ((kernel.out_storage[j] = storage<typename C::Out::template at<j>, typename F::Out::template at<j>>(),
      kernel.out_bytes[j] = F::Out::bytes[j]),
     ...);
  }(std::make_integer_sequence<int, F::results>());
  return kernel;
}

// Operands that broadcast are written out, chunk by chunk, so that one loop does for all.
inline Status elementwise(const Executor& executor, const ElementwiseKernel& kernel, const void* functor,
                          const ElementwiseArrays& arrays, const ElementwiseShape& shape) {
  using namespace internal;
  constexpr int64_t range = 1 << 14;
  int64_t elements = shape.elements();
  bool broadcasts[elementwise_operands], any = false;
  for (int i = 0; i < kernel.operands; ++i) {
    broadcasts[i] = false;
    for (int d = 0; d < shape.rank; ++d) broadcasts[i] = broadcasts[i] || shape.step[i][d] == 0;
    any = any || broadcasts[i];
  }
  parallel_for(executor, ceil_div(elements, range), range, [&](int64_t task) {
    alignas(64) char repeated[elementwise_operands][elementwise_chunk * 16];
    int64_t end = std::min(elements, (task + 1) * range);
    for (int64_t to = task * range, count; to < end; to += count) {
      count = std::min(end - to, any ? elementwise_chunk : range);
      ElementwiseArrays part;
      for (int i = 0; i < kernel.operands; ++i) {
        part.in[i] = static_cast<const char*>(arrays.in[i]) + to * kernel.in_bytes[i];
        if (!broadcasts[i]) continue;
        repeat_elements_of(kernel.in_bytes[i], arrays.in[i], shape, i, to, count, repeated[i]);
        part.in[i] = repeated[i];
      }
      for (int j = 0; j < kernel.results; ++j)
        part.out[j] = static_cast<char*>(arrays.out[j]) + to * kernel.out_bytes[j];
      elementwise_dense(kernel, functor, part, count);
    }
  });
  return {};
}

// The same of rows.
inline Status elementwise(const Executor& executor, const ElementwiseKernel& kernel, const void* functor,
                          const ElementwiseArrays& arrays, const ElementwiseRows& shape) {
  constexpr int64_t range = 1 << 14;
  if (shape.columns == 0) return {};
  int64_t length = std::min(shape.columns, range), chunks = ceil_div(shape.columns, length);
  int64_t together = range / length;
  parallel_for(executor, ceil_div(shape.rows * chunks, together), together * length, [&](int64_t task) {
    int64_t end = std::min(shape.rows * chunks, (task + 1) * together);
    for (int64_t job = task * together; job < end; ++job) {
      int64_t row = job / chunks, first = job % chunks * length;
      ElementwiseArrays part;
      for (int i = 0; i < kernel.operands; ++i)
        part.in[i] = static_cast<const char*>(arrays.in[i]) + (row * shape.in_pitch[i] + first) * kernel.in_bytes[i];
      for (int j = 0; j < kernel.results; ++j)
        part.out[j] = static_cast<char*>(arrays.out[j]) + (row * shape.out_pitch[j] + first) * kernel.out_bytes[j];
      internal::elementwise_dense(kernel, functor, part, std::min(length, shape.columns - first));
    }
  });
  return {};
}

}  // namespace baracuda
