// Rows that become columns, on a CPU: square blocks are turned in vector registers of 16 bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace baracuda {
namespace internal {

template <int bytes>
struct CellOfBytes;
template <>
struct CellOfBytes<1> {
  using type = uint8_t;
};
template <>
struct CellOfBytes<2> {
  using type = uint16_t;
};
template <>
struct CellOfBytes<4> {
  using type = uint32_t;
};
template <>
struct CellOfBytes<8> {
  using type = uint64_t;
};

template <int bytes>
struct CellRow {
  static constexpr int cells = 16 / bytes;
  typedef typename CellOfBytes<bytes>::type Row __attribute__((vector_size(16)));
  // Cells of a and of b in turn: those of the first halves, or of the second.
  template <int first, int... i>
  static Row in_turn(const Row& a, const Row& b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (first + i / 2 + (i % 2) * cells)...);
  }
};

// A square block at rows[0][0], rows[1][0], ... : y[j * step + i] = rows[i][j]. Each of the passes, as many as a row
// can be halved, lays the cells of the first half of the rows and of the second in turn.
template <int bytes, class Cell>
[[gnu::always_inline]] inline void turn_block(const Cell* const* rows, int64_t column, Cell* y, int64_t step) {
  using Of = CellRow<bytes>;
  constexpr int n = Of::cells;
  typename Of::Row a[n], b[n];
  for (int i = 0; i < n; ++i) memcpy(&a[i], rows[i] + column, 16);
#pragma GCC unroll 8
  for (int pass = 1; pass < n; pass *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i) {
      constexpr auto order = std::make_integer_sequence<int, n>{};
      b[2 * i] = Of::template in_turn<0>(a[i], a[i + n / 2], order);
      b[2 * i + 1] = Of::template in_turn<n / 2>(a[i], a[i + n / 2], order);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
  for (int i = 0; i < n; ++i) memcpy(y + i * step, &a[i], 16);
}

}  // namespace internal

// y[j * step + i] = rows[i][j] of `count` rows of `columns` cells.
template <class Cell>
void turn(const Cell* const* rows, int64_t count, int64_t columns, Cell* y, int64_t step) {
  int64_t row = 0;
  if constexpr (sizeof(Cell) <= 8) {
    constexpr int n = 16 / sizeof(Cell);
    for (; row + n <= count; row += n) {
      int64_t column = 0;
      for (; column + n <= columns; column += n)
        internal::turn_block<sizeof(Cell)>(rows + row, column, y + column * step + row, step);
      for (; column < columns; ++column)
        for (int i = 0; i < n; ++i) y[column * step + row + i] = rows[row + i][column];
    }
  }
  for (; row < count; ++row)
    for (int64_t column = 0; column < columns; ++column) y[column * step + row] = rows[row][column];
}

}  // namespace baracuda
