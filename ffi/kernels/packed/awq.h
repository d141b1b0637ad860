// Weights of four bits in AWQ's layout: W [depth, columns], a word of eight neighboring columns of a row, whose fields
// are these columns, from the lowest, in the order 0, 2, 4, 6, 1, 3, 5, 7. A group of neighboring rows has a factor and
// an integer to be subtracted for each column, the integers in words of the same layout.
#pragma once

#include "../number.h"

namespace baracuda::packed {

inline constexpr int word_columns = 8;

// The bits before the field of a column.
BARACUDA_HD constexpr int awq_shift(int column) { return 4 * (column / 2 + 4 * (column % 2)); }

BARACUDA_HD constexpr int awq_field(uint32_t word, int column) { return int(word >> awq_shift(column) & 15); }

}  // namespace baracuda::packed
