// Philox4x32-10 of Salmon, Moraes, Dror and Shaw (2011): ten rounds of two products map a counter of four words, under
// a key of two, to four random words.
//
// The bits of a key of four words are a stream of bytes. Its block i, 16 bytes, is what Philox makes of the counter
// (i, the key's last two words) under the key's first two. So any part of the stream is computed alone.
#pragma once

#include "number.h"
#include "unroll.h"

namespace baracuda {

struct PhiloxWords {
  uint32_t word[4];
};

BARACUDA_HD uint64_t philox_product0(uint32_t a) { return uint64_t(a) * 0xD2511F53u; }
BARACUDA_HD uint64_t philox_product1(uint32_t c) { return uint64_t(c) * 0xCD9E8D57u; }
// One round of one counter. Lanes of a vector unit are loops over this.
BARACUDA_HD void philox_round(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t key0, uint32_t key1) {
  uint64_t first = philox_product0(a), second = philox_product1(c);
  a = uint32_t(second >> 32) ^ b ^ key0, b = uint32_t(second);
  c = uint32_t(first >> 32) ^ d ^ key1, d = uint32_t(first);
}
BARACUDA_HD uint32_t philox_key0(uint32_t key, int round) { return key + uint32_t(round) * 0x9E3779B9u; }
BARACUDA_HD uint32_t philox_key1(uint32_t key, int round) { return key + uint32_t(round) * 0xBB67AE85u; }
inline constexpr int philox_rounds = 10;

// Element i of words, the lowest bytes of a word first.
template <class T>
BARACUDA_HD T philox_element(const uint32_t* words, int i) {
  constexpr int per_word = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
  if constexpr (sizeof(T) == 8) return T(uint64_t(words[2 * i + 1]) << 32 | words[2 * i]);
  return T(words[i / per_word] >> (8 * sizeof(T) * (i % per_word)));
}

// A key's stream, from a byte on.
struct PhiloxStream {
  uint32_t key0, key1, upper0, upper1;
  uint64_t start;

  // Six words: the key, and the first byte, low word first.
  explicit BARACUDA_HD PhiloxStream(const uint32_t* words)
      : key0(words[0]),
        key1(words[1]),
        upper0(words[2]),
        upper1(words[3]),
        start(uint64_t(words[5]) << 32 | words[4]) {}

  BARACUDA_HD PhiloxWords block(uint64_t index) const {
    uint32_t a = uint32_t(index), b = uint32_t(index >> 32), c = upper0, d = upper1;
    BARACUDA_UNROLL
    for (int round = 0; round < philox_rounds; ++round)
      philox_round(a, b, c, d, philox_key0(key0, round), philox_key1(key1, round));
    return {{a, b, c, d}};
  }

  // 16 * blocks bytes of the stream, from any byte on: they are in as many blocks, or in one more.
  template <int blocks>
  BARACUDA_HD void bytes(uint64_t first, uint32_t* to) const {
    constexpr int words = 4 * blocks;
    first += start;
    uint32_t shift = uint32_t(first % 16), w[words + 4];
    BARACUDA_UNROLL
    for (int i = 0; i < blocks; ++i) memcpy(w + 4 * i, block(first / 16 + i).word, 16);
    if (shift != 0) {
      memcpy(w + words, block(first / 16 + blocks).word, 16);
      uint32_t bits = 8 * (shift % 4);
      // Indices are known to the compiler, so that all are registers.
      BARACUDA_UNROLL
      for (int i = 0; i < words + 3; ++i) w[i] = shift & 4 ? w[i + 1] : w[i];
      BARACUDA_UNROLL
      for (int i = 0; i < words + 2; ++i) w[i] = shift & 8 ? w[i + 2] : w[i];
      BARACUDA_UNROLL
      for (int i = 0; i < words; ++i) w[i] = uint32_t((uint64_t(w[i + 1]) << 32 | w[i]) >> bits);
    }
    memcpy(to, w, 4 * words);
  }

  // The element whose first byte this is, a multiple of its size.
  template <class T>
  BARACUDA_HD T element(uint64_t first) const {
    uint32_t w[4];
    bytes<1>(first, w);
    return philox_element<T>(w, 0);
  }
};

// Blocks of a stream whose indices have the same upper word: half of the products of the first two rounds are the same
// for all of them.
struct PhiloxRun {
  uint32_t key0, key1;
  uint32_t third;         // after a round, without the product
  uint32_t after_two[3];  // the first, third and fourth word after two, without products

  BARACUDA_HD PhiloxRun(const PhiloxStream& stream, uint32_t upper) : key0(stream.key0), key1(stream.key1) {
    uint64_t second = philox_product1(stream.upper0);
    uint64_t first = philox_product0(uint32_t(second >> 32) ^ upper ^ philox_key0(key0, 0));
    third = stream.upper1 ^ philox_key1(key1, 0);
    after_two[0] = uint32_t(second) ^ philox_key0(key0, 1);
    after_two[1] = uint32_t(first >> 32) ^ philox_key1(key1, 1);
    after_two[2] = uint32_t(first);
  }
  // The first two rounds, of the index's lower word.
  BARACUDA_HD void begin(uint32_t index, uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) const {
    uint64_t first = philox_product0(index), second = philox_product1(uint32_t(first >> 32) ^ third);
    a = uint32_t(second >> 32) ^ after_two[0], b = uint32_t(second);
    c = uint32_t(first) ^ after_two[1], d = after_two[2];
  }
  static constexpr int rounds = 2;
};

// Rows of y, each from a stream of its own, of which an element has so many bits as Draw::Bits: y = draw(bits), or
// draw(bits, x). `streams` has six words a row, and then the words of the numbers that its Draw is made of, an even
// number in all.
template <class Draw>
struct DrawnRows {
  using Bits = typename Draw::Bits;
  using Number = typename Draw::Number;
  static constexpr int numbers = Draw::numbers;
  static constexpr int words = 6 + (numbers * int(sizeof(Number)) + 7) / 8 * 2;

  const uint32_t* streams;
  const typename Draw::Operand* x;
  typename Draw::Result* y;
  int64_t rows, length;
};

// The Draw of a row, of its words.
template <class Draw>
BARACUDA_HD Draw draw_of(const uint32_t* words) {
  typename Draw::Number numbers[Draw::numbers > 0 ? Draw::numbers : 1];
  if constexpr (Draw::numbers > 0) memcpy(numbers, words + 6, sizeof(numbers));
  return Draw(numbers);
}

}  // namespace baracuda

#undef BARACUDA_UNROLL
