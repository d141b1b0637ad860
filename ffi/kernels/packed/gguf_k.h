// GGUF's formats of 256 weights a block, with factors of 16 or 32 weights each that are packed too. A unit is 16 bytes
// of weights, of which a part takes one field of bits.
#pragma once

#include "gguf.h"

namespace baracuda::packed {

struct Block256 : Shared {
  static constexpr int block = 256;
  static constexpr float offset = 0;
  static constexpr bool has_table = false, has_shift = false, has_zero = false, has_arrays = false, interleaved = false;
};

// Units of Q2_K and Q3_K: of each 32 bytes of a half block, 16 at a time, two of the four fields of two bits.
struct TwoBits : Block256 {
  static BARACUDA_HD int half(int unit) { return unit / 4; }
  static BARACUDA_HD int side(int unit) { return 16 * (unit % 2); }
  static BARACUDA_HD int pair(int unit) { return unit / 2 % 2 * 2; }  // the first of the two fields
  static BARACUDA_HD int first(int unit, int part) { return 128 * half(unit) + 32 * (pair(unit) + part) + side(unit); }
};

struct Q2_K : TwoBits {
  static constexpr const char* name = "Q2_K";
  static constexpr int bytes = 84;
  static constexpr bool has_shift = true;
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    Bytes all = bytes_at<4>(from + 16 + 32 * half(unit) + side(unit) + i * width);
    first = field<3>(all, 2 * pair(unit)), second = field<3>(all, 2 * pair(unit) + 2);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int unit, int part) {
    int packed = from[first(unit, part) / 16];
    return {half_at(from + 80) * float(packed & 15), -(half_at(from + 82) * float(packed >> 4)), 0};
  }
};

struct Q3_K : TwoBits {
  static constexpr const char* name = "Q3_K";
  static constexpr int bytes = 110;
  static constexpr float offset = 4;
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    Bytes low = bytes_at<2>(from + 32 + 32 * half(unit) + side(unit) + i * width);
    Bytes high = bytes_at<2>(from + side(unit) + i * width);
    int at = pair(unit), bit = 4 * half(unit) + at;
    first = field<3>(low, 2 * at) | raised<2>(field<1>(high, bit));
    second = field<3>(low, 2 * at + 2) | raised<2>(field<1>(high, bit + 1));
  }
  // Six bits: four of bytes 0 ... 7, two of bytes 8 ... 11.
  static BARACUDA_HD Factors factors(const uint8_t* from, int unit, int part) {
    int k = first(unit, part) / 16;
    int low = from[96 + k % 8] >> (k / 8 * 4) & 15, high = from[104 + k % 4] >> (k / 4 * 2) & 3;
    return {half_at(from + 108) * float((low | high << 4) - 32), 0, 0};
  }
};

// Units of Q4_K and Q5_K: of each 32 bytes, 16 at a time, both halves of the bytes, which are of different factors.
struct FourBits : Block256 {
  static constexpr bool has_shift = true, units_share = true;
  static BARACUDA_HD int first(int unit, int part) { return unit / 2 * 64 + 32 * part + unit % 2 * 16; }
  // Twelve bytes have eight scales and eight minima of six bits: four of each in the low bits of eight bytes, the
  // others in four bytes more and the high bits of the eight.
  static BARACUDA_HD Factors factors(const uint8_t* from, int unit, int part) {
    const uint8_t* packed = from + 4;
    int k = first(unit, part) / 32, j = k % 4;
    int scale = packed[j], least = packed[4 + j];
    if (k < 4) {
      scale &= 63, least &= 63;
    } else {
      int more = packed[8 + j];
      scale = (more & 15) | (scale >> 2 & 48), least = more >> 4 | (least >> 2 & 48);
    }
    return {half_at(from) * float(scale), -(half_at(from + 2) * float(least)), 0};
  }
#ifdef __CUDACC__
  // Those of both parts of the units 2 k and 2 k + 1, from four words at a multiple of 16.
  static __device__ void two_factors(const uint8_t* from, int k, Factors (&by)[2]) {
    uint4 word = *reinterpret_cast<const uint4*>(from);
    constexpr uint32_t four = 0x0f0f0f0f, two = 0x30303030, six = 0x3f3f3f3f;
    uint32_t scales = k < 2 ? word.y & six : (word.w & four) | (word.y >> 2 & two);
    uint32_t least = k < 2 ? word.z & six : (word.w >> 4 & four) | (word.z >> 2 & two);
    Half d, d_least;
    d.bits = uint16_t(word.x), d_least.bits = uint16_t(word.x >> 16);
    for (int e = 0; e < 2; ++e) {
      // As the last byte of 2^23, and less that.
      uint32_t of = 0x7540u | uint32_t(k % 2 * 2 + e);
      auto number = [&](uint32_t bytes) { return __uint_as_float(__byte_perm(bytes, 0x4B000000u, of)) - 8388608.0f; };
      by[e] = {float(d) * number(scales), -(float(d_least) * number(least)), 0};
    }
  }
#endif
};

struct Q4_K : FourBits {
  static constexpr const char* name = "Q4_K";
  static constexpr int bytes = 144;
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    Bytes both = bytes_at<4>(from + 16 + 16 * unit + i * width);
    first = field<15>(both, 0), second = field<15>(both, 4);
  }
};

struct Q5_K : FourBits {
  static constexpr const char* name = "Q5_K";
  static constexpr int bytes = 176;
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    Bytes both = bytes_at<4>(from + 48 + 16 * unit + i * width);
    Bytes high = bytes_at<4>(from + 16 + unit % 2 * 16 + i * width);
    int bit = unit / 2 * 2;
    first = field<15>(both, 0) | raised<4>(field<1>(high, bit));
    second = field<15>(both, 4) | raised<4>(field<1>(high, bit + 1));
  }
};

struct Q6_K : Block256 {
  static constexpr const char* name = "Q6_K";
  static constexpr int bytes = 210;
  static constexpr float offset = 32;
  static BARACUDA_HD int first(int unit, int part) {
    return unit / 4 * 128 + 64 * part + unit / 2 % 2 * 32 + unit % 2 * 16;
  }
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    int side = unit % 2 * 16 + i * width, quarter = unit / 2 % 2;
    Bytes low = bytes_at<2>(from + unit / 4 * 64 + quarter * 32 + side);
    Bytes high = bytes_at<2>(from + 128 + unit / 4 * 32 + side);
    first = field<15>(low, 0) | raised<4>(field<3>(high, 2 * quarter));
    second = field<15>(low, 4) | raised<4>(field<3>(high, 2 * quarter + 4));
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int unit, int part) {
    return {half_at(from + 208) * float(int8_t(from[192 + first(unit, part) / 16])), 0, 0};
  }
};

// Signed bytes, as of Q8_0, and a factor of 32 bits. The sums of neighbors, which follow, are for products of integers.
struct Q8_K : Block256 {
  static constexpr const char* name = "Q8_K";
  static constexpr int bytes = 292;
  static constexpr bool parts_share = true;
  static constexpr float offset = 128;
  static BARACUDA_HD int first(int unit, int part) { return 32 * unit + 16 * part; }
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    first = flipped(bytes_at<4>(from + 4 + 32 * unit + i * width), 128);
    second = flipped(bytes_at<4>(from + 20 + 32 * unit + i * width), 128);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int, int) {
    return {bit_cast<float>(short_at(from) | short_at(from + 2) << 16), 0, 0};
  }
};

struct IQ4_XS : Block256 {
  static constexpr const char* name = "IQ4_XS";
  static constexpr int bytes = 136;
  static constexpr bool has_table = true, parts_share = true;
  static constexpr BARACUDA_HD float entry(int i) { return Iq4Table::entry(i); }
  static BARACUDA_HD int first(int unit, int part) { return 32 * unit + 16 * part; }
  static BARACUDA_HD Bytes packed(const uint8_t* from, int unit, int i) {
    return bytes_at<4>(from + 8 + 16 * unit + i * width);
  }
  static constexpr BARACUDA_HD int bit(int part, int j) { return bit_of_half(part, j); }
  static BARACUDA_HD void unpack(const uint8_t* from, int unit, int i, Bytes& first, Bytes& second) {
    Bytes both = packed(from, unit, i);
    first = field<15>(both, 0), second = field<15>(both, 4);
  }
  static BARACUDA_HD Factors factors(const uint8_t* from, int unit, int) {
    int low = from[4 + unit / 2] >> (unit % 2 * 4) & 15, high = int(short_at(from + 2)) >> (2 * unit) & 3;
    return {half_at(from) * float((low | high << 4) - 32), 0, 0};
  }
};

}  // namespace baracuda::packed
