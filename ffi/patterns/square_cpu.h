// Squares of cells that are transposed in vector registers, on a CPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace baracuda {
namespace internal {

// A square matrix of at most V rows, which are vectors. It is transposed by interleaving rows, in each 16 bytes of the
// vectors, and by exchanging these.
template <class T, int V>
struct Square {
#ifdef __AVX512F__
  static constexpr int widest = 64;
#else
  static constexpr int widest = 32;
#endif
  static constexpr int size = sizeof(T), N = V * size < widest ? V : widest / size;
  static constexpr int part = 16 / size < N ? 16 / size : N;
  using Bits =
      std::conditional_t<size == 8, uint64_t,
                         std::conditional_t<size == 4, uint32_t, std::conditional_t<size == 2, uint16_t, uint8_t>>>;
  typedef Bits Pack __attribute__((vector_size(N * size)));
  Pack row[N];

  void transpose() {
    Pack low, high;
    for (int k = 0; k < N; ++k) {
      int in_part = k % part;
      low[k] = Bits(k - in_part + in_part / 2 + in_part % 2 * N), high[k] = Bits(low[k] + part / 2);
    }
#pragma GCC unroll 4
    for (int width = 1; width < part; width *= 2) {
      Pack other[N];
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) other[i] = row[i];
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) {
        int from = i - i % part + i % part / 2;
        row[i] = __builtin_shuffle(other[from], other[from + part / 2], i % 2 ? high : low);
      }
    }
#pragma GCC unroll 2
    for (int distance = part; distance < N; distance *= 2) {
      for (int k = 0; k < N; ++k) {
        bool moves = k & distance;
        low[k] = Bits(moves ? N + k - distance : k), high[k] = Bits(moves ? N + k : k + distance);
      }
#pragma GCC unroll 8
      for (int pair = 0; pair < N / 2; ++pair) {
        int i = pair / distance * 2 * distance + pair % distance;
        Pack a = row[i], b = row[i + distance];
        row[i] = __builtin_shuffle(a, b, low), row[i + distance] = __builtin_shuffle(a, b, high);
      }
    }
  }
};

}  // namespace internal

// y[j * step + i] = rows[i][j] for i < count and j in [first, columns), by squares of V rows, of less, and by cells.
template <int V = 16, class Cell>
void turn(const Cell* const* rows, int64_t count, int64_t first, int64_t columns, Cell* y, int64_t step) {
  if constexpr (V == 1 || sizeof(Cell) > 8) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = first; j < columns; ++j) y[j * step + i] = rows[i][j];
  } else {
    using Square = internal::Square<Cell, V>;
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
