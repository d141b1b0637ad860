// Squares of elements that are transposed in vector registers, on a CPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../kernels/shuffle.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// A square matrix of at most V rows, which are vectors. It is transposed by interleaving rows, in each 16 bytes of the
// vectors, and by exchanging these.
template <class T, int V>
struct Square {
  static constexpr int size = sizeof(T), N = V * size < vector_bytes ? V : vector_bytes / size;
  static constexpr int part = 16 / size < N ? 16 / size : N;
  using Bits =
      std::conditional_t<size == 8, uint64_t,
                         std::conditional_t<size == 4, uint32_t, std::conditional_t<size == 2, uint16_t, uint8_t>>>;
  typedef Bits Pack __attribute__((vector_size(N * size)));
  Pack row[N];

  static constexpr int interleaved(int k) { return k - k % part + k % part / 2 + k % part % 2 * N; }
  static constexpr int exchanged(int k, int distance) { return k & distance ? N + k - distance : k; }

  inline __attribute__((always_inline)) void transpose() {
#pragma GCC unroll 4
    for (int width = 1; width < part; width *= 2) {
      Pack other[N];
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) other[i] = row[i];
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) {
        int from = i - i % part + i % part / 2;
        if (i % 2)
          shuffle<N>(other[from], other[from + part / 2], row[i], [](int k) { return interleaved(k) + part / 2; });
        else
          shuffle<N>(other[from], other[from + part / 2], row[i], [](int k) { return interleaved(k); });
      }
    }
    exchange<part>();
  }

  template <int distance>
  inline __attribute__((always_inline)) void exchange() {
    if constexpr (distance < N) {
#pragma GCC unroll 8
      for (int pair = 0; pair < N / 2; ++pair) {
        int i = pair / distance * 2 * distance + pair % distance;
        Pack a = row[i], b = row[i + distance];
        shuffle<N>(a, b, row[i], [](int k) { return exchanged(k, distance); });
        shuffle<N>(a, b, row[i + distance], [](int k) { return exchanged(k, distance) + distance; });
      }
      exchange<2 * distance>();
    }
  }
};

}  // namespace internal

// y[j * step + i] = rows[i][j] for i < count and j in [first, columns), by squares of V rows, of less, and by elements.
template <int V = 16, class Element>
void turn(const Element* const* rows, int64_t count, int64_t first, int64_t columns, Element* y, int64_t step) {
  if constexpr (V == 1 || sizeof(Element) > 8) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = first; j < columns; ++j) y[j * step + i] = rows[i][j];
  } else {
    using Square = internal::Square<Element, V>;
    constexpr int N = Square::N;
    int64_t past_rows = count - count % N, past = columns - (columns - first) % N;
    for (int64_t i = 0; i < past_rows; i += N)
      for (int64_t j = first; j < past; j += N) {
        Square square;
#pragma GCC unroll 16
        for (int k = 0; k < N; ++k) memcpy(&square.row[k], rows[i + k] + j, sizeof(square.row[k]));
        square.transpose();
#pragma GCC unroll 16
        for (int k = 0; k < N; ++k) memcpy(y + (j + k) * step + i, &square.row[k], sizeof(square.row[k]));
      }
    if (past < columns) turn<V / 4>(rows, past_rows, past, columns, y, step);
    if (past_rows < count) turn<V / 4>(rows + past_rows, count - past_rows, first, columns, y + past_rows, step);
  }
}

}  // namespace baracuda
