// Formats whose factors are arrays next to the weights, one for each group of them: bitsandbytes' NF4 and FP4, and
// integers. Of four bits neighbors share a byte.
#pragma once

#include "gguf.h"

namespace baracuda::packed {

struct Neighbors : Block32 {
  static constexpr int bytes = 16;
  static constexpr bool has_arrays = true, interleaved = true;
};

// The high four bits are the first weight.
struct HighFirst : Neighbors {
  static constexpr bool has_table = true;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    Bytes both = packed(from, 0, i);
    interleave(field<15>(both, 4), field<15>(both, 0), first, second);
  }
  static BARACUDA_HD Bytes packed(const uint8_t* from, int, int i) { return bytes_at<4>(from + i * width); }
  static constexpr BARACUDA_HD int bit(int part, int j) { return 8 * (2 * part + j / 2) + (j % 2 ? 0 : 4); }
};

struct NF4 : HighFirst {
  static constexpr const char* name = "NF4";
  static constexpr int entry_multiple = 1 << 14;
  static constexpr bool long_entries = true;
  static constexpr BARACUDA_HD float entry(int i) {
    constexpr float table[16] = {
        -1.0f,
        -0.6961928009986877f,
        -0.5250730514526367f,
        -0.39491748809814453f,
        -0.28444138169288635f,
        -0.18477343022823334f,
        -0.09105003625154495f,
        0.0f,
        0.07958029955625534f,
        0.16093020141124725f,
        0.24611230194568634f,
        0.33791524171829224f,
        0.44070982933044434f,
        0.5626170039176941f,
        0.7229568362236023f,
        1.0f,
    };
    return table[i];
  }
};

struct FP4 : HighFirst {
  static constexpr const char* name = "FP4";
  static constexpr int entry_multiple = 12;
  static constexpr BARACUDA_HD float entry(int i) {
    constexpr float twelfth[8] = {0, 0.0625f, 8, 12, 4, 6, 2, 3};
    float value = twelfth[i % 8] / 12;
    return i < 8 ? value : 0 - value;
  }
};

// Unsigned integers, the low four bits first, as JAX packs int4. Without zero points these are 8.
struct Int4Centered : Neighbors {
  static constexpr const char* name = "Int4Centered";
  static constexpr float offset = 8;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    Bytes both = bytes_at<4>(from + i * width);
    interleave(field<15>(both, 0), field<15>(both, 4), first, second);
  }
};

struct Int4 : Int4Centered {
  static constexpr const char* name = "Int4";
  static constexpr float offset = 0;
  static constexpr bool has_zero = true;
};

// Signed bytes, as those of Q8_0.
struct Int8Centered : Block32 {
  static constexpr const char* name = "Int8Centered";
  static constexpr int bytes = 32;
  static constexpr float offset = 128;
  static constexpr bool has_arrays = true;
  static BARACUDA_HD void unpack(const uint8_t* from, int, int i, Bytes& first, Bytes& second) {
    first = flipped(bytes_at<4>(from + i * width), 128);
    second = flipped(bytes_at<4>(from + 16 + i * width), 128);
  }
};

struct Int8 : Int8Centered {
  static constexpr const char* name = "Int8";
  static constexpr bool has_zero = true;
};

}  // namespace baracuda::packed
