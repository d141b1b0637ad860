// The elementwise pattern: each element of the results, all of one shape, is computed from one element of each operand.
// Operands broadcast to that shape.
//
// A functor says what one element is. It names the types in memory, `Operands` and `Results`, lists made with Types,
// and maps a Comparable of each operand to the result, or to Values of several; it reads no memory.
//
// There are hundreds of functors. So all that does not depend on one is compiled once: a driver sees a functor as an
// ElementwiseKernel, sizes and addresses of its loops.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

inline constexpr int elementwise_rank = 8, elementwise_operands = 6, elementwise_results = 3;

// Several results of a functor.
template <class W, int count>
struct Values {
  W value[count];
};

struct ElementwiseArrays {
  const void* in[elementwise_operands];
  void* out[elementwise_results];
};

// The extents of the results, and the step of each operand along each: 0 where it broadcasts. Dimensions of size 1 are
// dropped, and neighbors that all operands treat alike are one. So the steps of the last dimension are 0 or 1.
struct ElementwiseShape {
  int operands;
  int rank = 1;
  int64_t extent[elementwise_rank] = {1};
  int64_t step[elementwise_operands][elementwise_rank] = {};

  explicit ElementwiseShape(int operands) : operands(operands) {}

  int64_t elements() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= extent[d];
    return count;
  }
  int64_t columns() const { return extent[rank - 1]; }

  // Puts one more dimension after the others; false if there are too many. `broadcast(i)` is of operand i.
  template <class Broadcast>
  bool push(int64_t size, const Broadcast& broadcast) {
    if (size == 1) return true;
    if (elements() == 1) {
      extent[0] = size;
      for (int i = 0; i < operands; ++i) step[i][0] = !broadcast(i);
      return true;
    }
    bool alike = true;
    for (int i = 0; i < operands; ++i) alike = alike && (step[i][rank - 1] == 0) == broadcast(i);
    if (!alike && rank == elementwise_rank) return false;
    int last = alike ? rank - 1 : rank;
    for (int i = 0; i < operands; ++i) {
      if (!broadcast(i))
        for (int d = 0; d < rank; ++d) step[i][d] *= size;
      step[i][last] = !broadcast(i);
    }
    if (!alike) extent[rank++] = 1;
    extent[rank - 1] *= size;
    return true;
  }
};

// Rows of arrays that do not broadcast: row r of operand i begins at in[i] + r * in_pitch[i].
struct ElementwiseRows {
  int64_t rows, columns;
  int64_t in_pitch[elementwise_operands], out_pitch[elementwise_results];
};

namespace internal {

template <class List>
struct Unlist;
template <class... T>
struct Unlist<Types<T...>> {
  static constexpr int count = sizeof...(T);
  template <int i>
  using at = std::tuple_element_t<i, std::tuple<T...>>;
  static constexpr int bytes[] = {int(sizeof(T))...};
  static constexpr int widest() {
    int size = 0;
    ((size = int(sizeof(T)) > size ? int(sizeof(T)) : size), ...);
    return size;
  }
};

template <class Functor>
struct ElementwiseTypes {
  using In = Unlist<typename Functor::Operands>;
  using Out = Unlist<typename Functor::Results>;
  static constexpr int operands = In::count, results = Out::count;
  static_assert(operands <= elementwise_operands && results <= elementwise_results);
};

// One of a functor's results.
template <int j, class W>
BARACUDA_HD W result_of(const W& value) {
  return value;
}
template <int j, class W, int count>
BARACUDA_HD W result_of(const Values<W, count>& values) {
  return values.value[j];
}

}  // namespace internal
}  // namespace baracuda
