// The tiny pattern: many matrices of at most 64 x 64, each computed at once by a functor on memory of its own.
#pragma once

#include "../kernels/tiny/matrix.h"
#include "executor.h"

namespace baracuda {

inline constexpr int tiny_largest = 64, tiny_static = 4;  // up to which a matrix is one lane's

// One array of a call: [batches, rows, columns], which is read before the functor runs, or written after it, or both.
// What is read or written may be integers, which the functor has as numbers.
template <class T>
struct TinyArray {
  int rows, columns;
  const T* from = nullptr;
  T* to = nullptr;
  int32_t* integers = nullptr;
  const int32_t* from_integers = nullptr;
  BARACUDA_HD int size() const { return rows * columns; }
};

// A functor has `arrays`, so many matrices; and operator()(team, n, k, views), where k is the number of columns of
// those that are not square.
template <class T, class Functor>
struct Tiny {
  int64_t batches;
  int n, k;
  TinyArray<T> array[Functor::arrays];
  Functor functor;
};

// body(size): n as a static size up to 4, otherwise as an int.
template <class Body>
auto for_tiny_size(int n, const Body& body) {
  switch (n) {
    case 1:
      return body(std::integral_constant<int, 1>{});
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 3:
      return body(std::integral_constant<int, 3>{});
    case 4:
      return body(std::integral_constant<int, 4>{});
    default:
      return body(n);
  }
}

}  // namespace baracuda
