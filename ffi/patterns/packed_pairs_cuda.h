// Values of packed weights as pairs of 16-bit floats, which tensor cores multiply. They are exact: integers of at most
// 8 bits are in the last bits of a power of two, which is then subtracted, or left where shifts can make up for it, and
// entries of tables are selected byte by byte, or read from shared memory.
#pragma once

#include "../kernels/packed/bytes.h"
#include "mma_cuda.h"

namespace baracuda {
namespace internal {

// Entries of the table of a format times its multiple: 16-bit floats, and in the upper bits those of what is left.
struct EntryWords {
  uint32_t word[16];
};

// The bytes of the 16-bit floats, the lower byte first. Word k of a byte has that of the entries 4 k ... 4 k + 3.
struct EntryBytes {
  uint32_t word[2][4];
};

template <class T>
constexpr uint32_t float_bits(double value, double& rounded) {
  constexpr int mantissa = std::is_same_v<T, BFloat16> ? 7 : 10, bias = std::is_same_v<T, BFloat16> ? 127 : 15;
  rounded = 0;
  if (value == 0) return 0;
  double size = value < 0 ? -value : value, unit = 1;
  int exponent = bias;
  while (size >= 2 * unit) unit *= 2, ++exponent;
  while (size < unit) unit /= 2, --exponent;
  int steps = int(size / unit * (1 << mantissa) + 0.5);
  rounded = steps * (value < 0 ? -unit : unit) / (1 << mantissa);
  return uint32_t((exponent << mantissa) + steps - (1 << mantissa)) | (value < 0 ? 0x8000u : 0);
}

template <class T, class Format>
constexpr EntryWords entry_words() {
  EntryWords words{};
  for (int i = 0; i < 16; ++i) {
    double entry = double(Format::entry(i)) * Format::entry_multiple, high = 0, low = 0;
    words.word[i] = float_bits<T>(entry, high);
    if (Format::long_entries) words.word[i] |= float_bits<T>(entry - high, low) << 16;
  }
  return words;
}

template <class T, class Format>
constexpr EntryBytes entry_bytes() {
  EntryBytes bytes{};
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 2; ++k)
      bytes.word[k][i / 4] |= (entry_words<T, Format>().word[i] >> (8 * k) & 255u) << (i % 4 * 8);
  return bytes;
}

// How many floats a value is the sum of.
template <class Format>
inline constexpr int value_parts = Format::long_entries ? 2 : 1;

// Whether pairs are left as they are selected, integers of less than 128 more than the values. In bfloat16 that is
// little enough for sums in float32, and in float16 it would be seen in results.
template <class T, class Format>
inline constexpr bool pairs_exceed = std::is_same_v<T, BFloat16> && !Format::has_table && Format::offset < 128;

// What pairs have more than the values, which shifts make up for.
template <class T, class Format>
inline constexpr float pairs_excess = pairs_exceed<T, Format> ? 128 + Format::offset : 0;

// Whether products have the sums of x too, which shifts are multiplied by.
template <class T, class Format>
inline constexpr bool sums_of_x = Format::has_shift || Format::has_zero || pairs_exceed<T, Format>;

// Four bytes in the last bits of a power of two, in which a byte counts in ones.
template <class T>
__device__ inline void byte_pairs(packed::Bytes bytes, uint32_t& first, uint32_t& second) {
  constexpr uint32_t power = std::is_same_v<T, BFloat16> ? 0x43434343 : 0x64646464;
  first = __byte_perm(bytes, power, 0x4140), second = __byte_perm(bytes, power, 0x4342);
}

// The values of four bytes of a format of integers, the first two of them and the others.
template <class T, class Format>
__device__ inline void exact_pairs(packed::Bytes bytes, uint32_t& first, uint32_t& second) {
  constexpr bool is_bf16 = std::is_same_v<T, BFloat16>;
  byte_pairs<T>(bytes, first, second);
  if constexpr (is_bf16 && Format::offset == 128) {
    // The last bit of eight makes 256 of the power 128, and is to count -128, or with a byte less 128, none.
    auto value = [](uint32_t pair) { return pair_difference<T>(pair & 0xff7fff7f, (pair & 0xff80ff80) ^ 0x00800080); };
    first = value(first), second = value(second);
  } else {
    constexpr uint32_t less = ((is_bf16 ? 0x4300 : 0x6400) + uint32_t(Format::offset)) * 0x10001;
    first = pair_difference<T>(first, less), second = pair_difference<T>(second, less);
  }
}

// The values of four bytes, the first two of them and the others. `of` has the bytes of entries, in registers: as
// constants of the program each would be moved to one before it is used.
template <class T, class Format>
__device__ inline void value_pairs(packed::Bytes bytes, uint32_t (&first)[value_parts<Format>],
                                   uint32_t (&second)[value_parts<Format>], const EntryBytes& of) {
  if constexpr (Format::has_table) {
    // The four indices in 16 bits, of which three select an entry of each half, and the last one a half.
    uint32_t indices = __byte_perm(bytes | bytes >> 4, 0, 0x4420);
    uint32_t entry = indices & 0x7777, half = (indices >> 1 & 0x4444) | 0x3210;
    uint32_t byte[2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
      byte[j] = __byte_perm(__byte_perm(of.word[j][0], of.word[j][1], entry),
                            __byte_perm(of.word[j][2], of.word[j][3], entry), half);
    first[0] = __byte_perm(byte[0], byte[1], 0x5140), second[0] = __byte_perm(byte[0], byte[1], 0x7362);
  } else if constexpr (pairs_excess<T, Format> > 0) {
    byte_pairs<T>(bytes, first[0], second[0]);  // what they exceed values by is left
  } else {
    exact_pairs<T, Format>(bytes, first[0], second[0]);
  }
}

// The entries of a part of four bytes. Entry i is at `entries` + 128 i, for each lane in a bank of its own: `at_lane`
// is four times the lane.
inline constexpr int entry_room = 128;

template <class Format>
__device__ inline void entry_pairs(uint32_t bytes, int part, const unsigned char* entries, int at_lane,
                                   uint32_t (&first)[value_parts<Format>], uint32_t (&second)[value_parts<Format>]) {
  uint32_t word[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    int bit = Format::bit(part, j);
    uint32_t at = bit > 7 ? bytes >> (bit - 7) : bytes << (7 - bit);
    word[j] = *reinterpret_cast<const uint32_t*>(entries + ((at & 15 * entry_room) | at_lane));
  }
  first[0] = __byte_perm(word[0], word[1], 0x5410), second[0] = __byte_perm(word[2], word[3], 0x5410);
  if constexpr (Format::long_entries)
    first[1] = __byte_perm(word[0], word[1], 0x7632), second[1] = __byte_perm(word[2], word[3], 0x7632);
}

template <class T, class Format>
__device__ inline void write_entries(unsigned char* entries, int lane, int warp) {
  constexpr EntryWords all = entry_words<T, Format>();
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (i / 2 == warp) reinterpret_cast<uint32_t*>(entries)[i * (entry_room / 4) + lane] = all.word[i];
}

// Of neighbors that share a byte, both at once: eight bytes for each of the 256 bytes, the pair and the pair of what is
// left. Half a warp reads 128 bytes at a time, so that the lanes i and i + 16 share banks: `at_lane` is eight times the
// lane % 16.
inline constexpr int pair_room = 128, pair_entries = 256 * pair_room;

template <class T, class Format>
__device__ inline void write_pair_entries(unsigned char* entries, int threads) {
  static constexpr EntryWords all = entry_words<T, Format>();
  for (int k = int(threadIdx.x); k < 256 * 16; k += threads) {
    uint32_t low = all.word[k / 16 % 16], high = all.word[k / 256];  // the first weight is in the high bits of a byte
    reinterpret_cast<uint2*>(entries)[k] = {__byte_perm(high, low, 0x5410), __byte_perm(high, low, 0x7632)};
  }
}

template <class Format>
__device__ inline void entry_pairs_of_bytes(uint32_t bytes, int part, const unsigned char* entries, int at_lane,
                                            uint32_t (&first)[2], uint32_t (&second)[2]) {
  uint2 both[2];
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    static_assert(Format::bit(0, 0) == 4 && Format::bit(0, 1) == 0 && Format::bit(1, 2) == 28);
    int bit = 8 * (2 * part + j);
    uint32_t at = bit > 7 ? bytes >> (bit - 7) : bytes << 7;
    both[j] = *reinterpret_cast<const uint2*>(entries + ((at & 255 * pair_room) | at_lane));
  }
  first[0] = both[0].x, first[1] = both[0].y, second[0] = both[1].x, second[1] = both[1].y;
}

}  // namespace internal
}  // namespace baracuda
