// GGUF's formats of 32 weights a block. In each byte the low four bits are a weight of the first half of the block, the
// high four one of the second half.
#pragma once

#include "bytes.h"

namespace baracuda::packed {

// Whose factors are the same: those of the parts of a unit, or those of the same part of a unit and the next one. And
// what products of integers multiply entries of tables by: then 8 bits have them, or 16 where `long_entries`.
struct Shared {
  static constexpr bool parts_share = false, units_share = false;
  static constexpr int entry_multiple = 1;
  static constexpr bool long_entries = false;
};

// Blocks of 32 weights are one unit, whose parts are its halves. Factors come from the block, or from arrays next to
// it.
struct Block32 : Shared {
  static constexpr int block = 32;
  static constexpr bool parts_share = true;
  static constexpr float offset = 0;
  static constexpr bool has_table = false, has_shift = false, has_zero = false, has_arrays = false, interleaved = false;
  static BARACUDA_HD int first(int, int part) { return 16 * part; }
};

template <int begin, int bytes>
BARACUDA_HD Bytes both_halves(const uint8_t* from, int i) {
  constexpr int all = begin | bytes | 4, aligned = all & -all;
  return bytes_at<aligned>(from + begin + i * width);
}

template <int begin, int bytes>
BARACUDA_HD void halves(const uint8_t* from, int i, Bytes& first, Bytes& second) {
  Bytes both = both_halves<begin, bytes>(from, i);
  first = field<15>(both, 0), second = field<15>(both, 4);
}

// Of formats with tables also: the bytes of both parts, `packed`, and where in four of them the weight j of a part is.
constexpr BARACUDA_HD int bit_of_half(int part, int j) { return 8 * j + 4 * part; }

struct Q4_0 : Block32 {
  static constexpr const char* name = "Q4_0";
  static constexpr int bytes = 18;
  static constexpr float offset = 8;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    halves<2, bytes>(from, i, first, second);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) { return {half_at(from), 0, 0}; }
};

struct Q4_1 : Block32 {
  static constexpr const char* name = "Q4_1";
  static constexpr int bytes = 20;
  static constexpr bool has_shift = true;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    halves<4, bytes>(from, i, first, second);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) { return {half_at(from), half_at(from + 2), 0}; }
};

// The fifth bits of all weights are in four bytes of their own.
template <int begin, int bytes>
BARACUDA_HD void fives(const uint8_t* from, int i, Bytes& first, Bytes& second) {
  halves<begin + 4, bytes>(from, i, first, second);
  first = first | fifth_bits(short_at(from + begin) >> (i * width));
  second = second | fifth_bits(short_at(from + begin + 2) >> (i * width));
}

struct Q5_0 : Block32 {
  static constexpr const char* name = "Q5_0";
  static constexpr int bytes = 22;
  static constexpr float offset = 16;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    fives<2, bytes>(from, i, first, second);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) { return {half_at(from), 0, 0}; }
};

struct Q5_1 : Block32 {
  static constexpr const char* name = "Q5_1";
  static constexpr int bytes = 24;
  static constexpr bool has_shift = true;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    fives<4, bytes>(from, i, first, second);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) { return {half_at(from), half_at(from + 2), 0}; }
};

// Signed bytes, which are unsigned ones less 128 when their first bit is flipped.
struct Q8_0 : Block32 {
  static constexpr const char* name = "Q8_0";
  static constexpr int bytes = 34;
  static constexpr float offset = 128;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    first = flipped(bytes_at<2>(from + 2 + i * width), 128);
    second = flipped(bytes_at<2>(from + 18 + i * width), 128);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) { return {half_at(from), 0, 0}; }
};

struct Iq4Table {
  static constexpr bool has_table = true;
  static constexpr BARACUDA_HD float entry(int i) {
    constexpr float table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    return table[i];
  }
};

struct IQ4_NL : Block32 {
  static constexpr const char* name = "IQ4_NL";
  static constexpr int bytes = 18;
  static constexpr bool has_table = true;
  static constexpr BARACUDA_HD float entry(int i) { return Iq4Table::entry(i); }
  static BARACUDA_HD Bytes packed(const uint8_t* from, int, int i) { return both_halves<2, bytes>(from, i); }
  static constexpr BARACUDA_HD int bit(int part, int j) { return bit_of_half(part, j); }
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    halves<2, bytes>(from, i, first, second);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) { return {half_at(from), 0, 0}; }
};

// Floats of four bits, doubled, times half a power of two.
struct MXFP4 : Block32 {
  static constexpr const char* name = "MXFP4";
  static constexpr int bytes = 17;
  static constexpr bool has_table = true;
  static constexpr BARACUDA_HD float entry(int i) {
    constexpr float table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    return table[i];
  }
  static BARACUDA_HD Bytes packed(const uint8_t* from, int, int i) { return both_halves<1, bytes>(from, i); }
  static constexpr BARACUDA_HD int bit(int part, int j) { return bit_of_half(part, j); }
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    halves<1, bytes>(from, i, first, second);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) {
    uint32_t exponent = from[0];
    return {bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23), 0, 0};
  }
};

}  // namespace baracuda::packed
