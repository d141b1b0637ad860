// The elementwise pattern: each element of the results, all of one shape, is computed from one element of each operand.
// Operands broadcast to that shape.
//
// A functor says what one element is. It names the types in memory, `Operands` and `Results`, lists made with Types,
// and maps a value of each operand to the results, in `Wide`; it reads no memory.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {

inline constexpr int elementwise_rank = 8;

// The extents of the results, and the step of each operand along each: 0 where it broadcasts. Dimensions of size 1 are
// dropped, and neighbours that all operands treat alike are one. So the steps of the last dimension are 0 or 1.
template <int operands>
struct ElementwiseShape {
  int rank = 1;
  int64_t extent[elementwise_rank] = {1};
  int64_t step[operands][elementwise_rank] = {};

  int64_t elements() const {
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= extent[d];
    return count;
  }
  int64_t columns() const { return extent[rank - 1]; }

  // Puts one more dimension behind the others; false if there are too many.
  bool push(int64_t size, const bool (&broadcast)[operands]) {
    if (size == 1) return true;
    if (elements() == 1) {
      extent[0] = size;
      for (int i = 0; i < operands; ++i) step[i][0] = !broadcast[i];
      return true;
    }
    bool alike = true;
    for (int i = 0; i < operands; ++i) alike = alike && (step[i][rank - 1] == 0) == broadcast[i];
    if (!alike && rank == elementwise_rank) return false;
    for (int i = 0; i < operands; ++i) {
      if (!broadcast[i])
        for (int d = 0; d < rank; ++d) step[i][d] *= size;
      int last = alike ? rank - 1 : rank;
      step[i][last] = !broadcast[i];
    }
    if (!alike) extent[rank++] = 1;
    extent[rank - 1] *= size;
    return true;
  }
};

namespace internal {

template <class List>
struct Unlist;
template <class... T>
struct Unlist<Types<T...>> {
  static constexpr int count = sizeof...(T);
  template <int i>
  using at = std::tuple_element_t<i, std::tuple<T...>>;
  static constexpr int widest() {
    int size = 0;
    ((size = int(sizeof(T)) > size ? int(sizeof(T)) : size), ...);
    return size;
  }
};

// body(Constant<0>{}) ... body(Constant<count - 1>{}), for a body in a function of host and device.
template <int count, class Body, int... i>
BARACUDA_HD void unrolled(const Body& body, std::integer_sequence<int, i...>) {
  (body(std::integral_constant<int, i>{}), ...);
}
template <int count, class Body>
BARACUDA_HD void unrolled(const Body& body) {
  unrolled<count>(body, std::make_integer_sequence<int, count>{});
}

}  // namespace internal

// A functor with the arrays that it runs on.
template <class Functor>
struct Elementwise {
  using In = internal::Unlist<typename Functor::Operands>;
  using Out = internal::Unlist<typename Functor::Results>;
  using Wide = typename Functor::Wide;
  static constexpr int operands = In::count, results = Out::count;
  // The bytes of the largest element.
  static constexpr int bytes = In::widest() > Out::widest() ? In::widest() : Out::widest();

  Functor functor;
  const void* in[operands];
  void* out[results];

  // The V elements of the results from `to` on, from those of the operands: from[i] + k, or all from[i] where step[i]
  // is 0.
  template <int V, class Index>
  BARACUDA_HD void run(Index to, const Index (&from)[operands], const bool (&step)[operands]) const {
    Wide value[operands][V], result[results][V];
    internal::unrolled<operands>([&](auto i) {
      using T = typename In::template at<i()>;
      const T* array = static_cast<const T*>(in[i()]) + from[i()];
      if (step[i()]) {
        Vector<T, V> lanes = load<V>(array);
        for (int k = 0; k < V; ++k) value[i()][k] = Wide(lanes.lane[k]);
      } else {
        Wide all = Wide(*array);
        for (int k = 0; k < V; ++k) value[i()][k] = all;
      }
    });
    for (int k = 0; k < V; ++k) compute(k, value, result, std::make_integer_sequence<int, operands>{});
    internal::unrolled<results>([&](auto j) {
      using T = typename Out::template at<j()>;
      Vector<T, V> lanes;
      for (int k = 0; k < V; ++k) lanes.lane[k] = T(result[j()][k]);
      store<V>(static_cast<T*>(out[j()]) + to, lanes);
    });
  }

 private:
  template <int V, int... i>
  BARACUDA_HD void compute(int k, const Wide (&value)[operands][V], Wide (&result)[results][V],
                           std::integer_sequence<int, i...>) const {
    if constexpr (results == 1) {
      result[0][k] = functor(value[i][k]...);
    } else {
      auto values = functor(value[i][k]...);
      for (int j = 0; j < results; ++j) result[j][k] = values.value[j];
    }
  }
};

}  // namespace baracuda
