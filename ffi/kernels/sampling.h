// A token drawn from the most probable ones of a row (top-k, top-p, min-p).
//
// Tokens are in the order of their probability, descending, and of equal ones in the order of their index. Each has a
// mass, an integer that is proportional to its probability: 2^36 for the largest logit. Sums of integers have no
// rounding and no order, so CPU, CUDA and plain JAX find the same tokens. What is kept is a prefix of the order; the
// token drawn is the first at which the sum of masses exceeds a random number below the sum of the prefix.
//
// Masses are made of single float32 operations without contraction, in the order in which
// baracuda_jax/random/_mass.py has them.
#pragma once

#include "rounded.h"
#include "sort_key.h"

namespace baracuda {

inline constexpr int mass_bits = 36;
// Levels are steps of probability, the most probable first, so many that few tokens share one. What is in the last has
// no mass.
inline constexpr int mass_levels = 2048;

// The masses of a row of logits: a logit x has probability 2^t / sum, t = (x - largest) * scale. Tokens with
// t < smallest have none. `finite` is whether the largest one is known to be.
template <bool finite>
struct MassOfLogits {
  using Finite = MassOfLogits<true>;
  static constexpr float lowest = -37.2f, none = -37.23f;  // below which there is no mass

  float largest, scale, smallest;

  BARACUDA_HD MassOfLogits(float largest, float scale, float smallest)
      : largest(largest), scale(scale), smallest(smallest > lowest ? smallest : lowest) {}

  // t, or what is lower where there is no mass.
  BARACUDA_HD float exponent(float x) const {
    float t = rounded_product(rounded_sum(x, -largest), scale);
    t = t >= smallest ? t : none;
    return !finite && x == largest ? 0.f : t;  // also where both are infinite
  }
  // In the last one is what has no mass.
  BARACUDA_HD uint32_t level(float x) const {
    constexpr float to_a_factor_of_2 = -55;
    static_assert(int32_t(lowest * to_a_factor_of_2) < mass_levels - 1);
    static_assert(int32_t(none * to_a_factor_of_2) == mass_levels - 1);
    return uint32_t(int32_t(exponent(x) * to_a_factor_of_2));
  }
  BARACUDA_HD uint64_t mass(float x) const { return mass_of(exponent(x)); }
  // Of a token with 2^t of the largest one's probability.
  static BARACUDA_HD uint64_t mass_of(float t) {
    Power of = power_of(t);
#ifdef __CUDA_ARCH__
    return __float2ull_rz(of.product());
#else
    // In steps that vectorize.
    uint64_t all = uint64_t(uint32_t(int32_t(of.power * 0x1p-12f))) << 12;
    return all >> -of.whole;
#endif
  }
#ifdef __CUDACC__
  // What mass() rounds down, and whether there is any mass.
  __device__ bool unrounded(float x, float& mass) const {
    float t = rounded_product(rounded_sum(largest, -x), -scale);
    mass = power_of(t).product();
    return t >= smallest;
  }
#endif
  // The logarithm of what mass() rounds, in units of the largest one.
  BARACUDA_HD float log(float x) const { return exponent(x) * 0x1.62e43p-1f; }
  // Halfway between two logits, the larger one first.
  static BARACUDA_HD float middle(float a, float b) { return 0.5f * a + 0.5f * b; }

 private:
  // power 2^whole, for a power from 2^35 to 2^37 and whole from -37 to 0.
  struct Power {
    float power;
    int32_t whole;
#ifdef __CUDACC__
    __device__ float product() const { return __int_as_float(__float_as_int(power) + (whole << 23)); }
#endif
  };
  static BARACUDA_HD Power power_of(float t) {
    constexpr float shift = 0x1.8p23f;  // leaves no bits for a fraction
    float shifted = rounded_sum(t, shift), r = rounded_sum(t, -rounded_sum(shifted, -shift));
    // 2^(36 + r), within 2^-22 of itself.
    float power = rounded_sum(rounded_product(0x1.5bba14p26f, r), 0x1.3cea88p29f);
    power = rounded_sum(rounded_product(power, r), 0x1.c6b752p31f);
    power = rounded_sum(rounded_product(power, r), 0x1.ebf9bcp33f);
    power = rounded_sum(rounded_product(power, r), 0x1.62e42ap35f);
    power = rounded_sum(rounded_product(power, r), 0x1p36f);
    static_assert(mass_bits == 36);
    return {power, bit_cast<int32_t>(shifted) - bit_cast<int32_t>(shift)};
  }
};

using LogitMass = MassOfLogits<false>;

// The masses of a row of probabilities, or of any weights: their bits from the exponent of the largest down. Weights
// below smallest * largest have none, nor have subnormal and negative ones.
struct ProbabilityMass {
  using Finite = ProbabilityMass;

  float largest, smallest;
  uint32_t top;  // the exponent of the largest
  bool is_infinite;

  BARACUDA_HD ProbabilityMass(float largest, float, float smallest)
      : largest(largest),
        smallest(rounded_product(largest, smallest)),
        top(bit_cast<uint32_t>(largest) >> 23),
        is_infinite(largest == std::numeric_limits<float>::infinity()) {}

  // The bits that count, 0 where there is no mass.
  BARACUDA_HD uint32_t bits(float x) const {
    constexpr uint32_t normal = 0x800000u, infinity = 0x7f800000u;
    uint32_t all = bit_cast<uint32_t>(x);
    return (all >= normal) & (all <= infinity) & (!is_infinite | (all == infinity)) ? all : 0;
  }
  BARACUDA_HD uint32_t level(float x) const {
    constexpr int mantissa_bits = 5;
    uint32_t below = (((top + 1) << 23) - 1 - bits(x)) >> (23 - mantissa_bits);
    return below < mass_levels - 1 ? below : mass_levels - 1;
  }
  BARACUDA_HD uint64_t mass(float x) const {
    uint32_t all = bits(x), below = top - (all >> 23);
    uint64_t mass = (uint64_t((all & 0x7fffffu) | 0x800000u) << (mass_bits - 23)) >> (below < 63 ? below : 63);
    return (all != 0) & (is_infinite | (x >= smallest)) ? mass : 0;
  }
#ifdef __CUDACC__
  __device__ bool unrounded(float x, float& mass) const {
    uint32_t all = bits(x), below = top - (all >> 23);
    mass = __uint_as_float((all & 0x7fffffu) + ((127 + mass_bits - below) << 23));
    return (all != 0) & (below <= uint32_t(mass_bits)) & (is_infinite | (x >= smallest));
  }
#endif
  BARACUDA_HD float log(float x) const {
    uint32_t all = bits(x);
    return std::log(bit_cast<float>((all & 0x7fffffu) | 0x3f800000u)) - float(top - (all >> 23)) * 0x1.62e43p-1f;
  }
  // Halfway between two probabilities, of their logarithms.
  static BARACUDA_HD float middle(float a, float b) {
    return bit_cast<float>((bit_cast<uint32_t>(a) >> 1) + (bit_cast<uint32_t>(b) >> 1));
  }
};

// floor(a b / 2^64)
BARACUDA_HD uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  return uint64_t(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

struct MassRange {
  uint64_t low, high;

  BARACUDA_HD MassRange at_most(const MassRange& other) const {
    return {low < other.low ? low : other.low, high < other.high ? high : other.high};
  }
};

// What is asked of a row.
struct TokenDraw {
  uint64_t random;
  int64_t k;          // how many tokens are kept; 0 for all
  uint32_t fraction;  // of the mass, in units of 2^-32
  bool has_fraction, joint;

  BARACUDA_HD TokenDraw(const uint32_t* bits, int32_t k, float p, int64_t count, bool joint)
      : random(uint64_t(bits[0]) << 32 | bits[1]),
        k(k > 0 && k < count ? k : 0),
        fraction(p > 0 && p < 1 ? uint32_t(p * 0x1p32f) : 0),
        has_fraction(p < 1),
        joint(joint) {}

  // The smallest mass, at least 1, that is at least the fraction of `all`.
  BARACUDA_HD uint64_t part(uint64_t all) const {
    uint64_t low = ((all & 0xffffffffu) * fraction + 0xffffffffu) >> 32, part = (all >> 32) * fraction + low;
    return part > 0 ? part : 1;
  }
  BARACUDA_HD MassRange part(MassRange all) const { return {part(all.low), part(all.high)}; }

  // The mass of what is kept of `total`. prefixes.of_count(k) has the mass of the first k tokens, and
  // prefixes.reaching(mass) that of the fewest which have at least so much. These may know only ranges.
  template <class Prefixes>
  BARACUDA_HD MassRange kept(uint64_t total, Prefixes& prefixes) const {
    MassRange all{total, total}, kept = all;
    if (k) kept = prefixes.of_count(k);
    if (has_fraction) kept = kept.at_most(prefixes.reaching(part(joint ? all : kept)));
    return kept;
  }
  // The mass that the prefix reaches of which the drawn token is the last.
  BARACUDA_HD uint64_t point(uint64_t kept) const { return high_product(random, kept) + 1; }
  BARACUDA_HD MassRange point(MassRange kept) const { return {point(kept.low), point(kept.high)}; }
};

// The first index at which something holds that holds from some index on.
template <class Holds>
BARACUDA_HD int64_t first_index(int64_t count, const Holds& holds) {
  int64_t begin = 0;
  while (count > 0) {
    int64_t half = count / 2;
    if (holds(begin + half))
      count = half;
    else
      begin += half + 1, count -= half + 1;
  }
  return begin;
}
template <class Sum>
BARACUDA_HD int64_t first_reaching(const Sum* sums, int64_t count, Sum value) {
  return first_index(count, [&](int64_t i) { return sums[i] >= value; });
}

// Levels, in three ranges at most.
struct LevelRanges {
  int32_t first[3] = {}, last[3] = {-1, -1, -1};

  BARACUDA_HD bool has(uint32_t level) const {
    bool has = false;
    for (int i = 0; i < 3; ++i) has |= (int32_t(level) >= first[i]) & (int32_t(level) <= last[i]);
    return has;
  }
};

// The prefixes as the sums up to and with each level have them, of masses and of counts. Notes the levels in which they
// end.
struct LevelPrefixes {
  const uint64_t* masses;
  const uint32_t* counts;
  LevelRanges noted;
  int ranges = 0;

  BARACUDA_HD LevelPrefixes(const uint64_t* masses, const uint32_t* counts) : masses(masses), counts(counts) {}

  BARACUDA_HD uint64_t total() const { return masses[mass_levels - 1]; }
  BARACUDA_HD uint64_t mass_before(int64_t level) const { return level ? masses[level - 1] : 0; }
  BARACUDA_HD int64_t level_of(int64_t k) const {
    return first_index(mass_levels - 1, [&](int64_t i) { return counts[i] >= k; });
  }
  // The k-th token's position in its level.
  BARACUDA_HD int64_t position(int64_t k, int64_t level) const { return k - 1 - (level ? counts[level - 1] : 0); }

  BARACUDA_HD void note(int64_t from, int64_t to) {
    noted.first[ranges] = int32_t(from), noted.last[ranges] = int32_t(to);
    ++ranges;
  }
  BARACUDA_HD MassRange of_count(int64_t k) {
    int64_t level = level_of(k);
    if (level == mass_levels - 1) return {total(), total()};  // it has no mass
    note(level, level);
    return {mass_before(level), masses[level]};
  }
  BARACUDA_HD MassRange reaching(MassRange mass) {
    int64_t from = first_reaching(masses, mass_levels, mass.low), to = first_reaching(masses, mass_levels, mass.high);
    note(from, to);
    return {mass.low, masses[to]};
  }
};

// The prefixes that end among listed tokens, with the sums of masses up to and with each. `kth` is where the k-th of
// all tokens is in the list; where it has no mass, it is not there.
struct ListPrefixes {
  const uint64_t* masses;
  int64_t count, kth;
  uint64_t total;

  BARACUDA_HD MassRange of_count(int64_t) const {
    uint64_t sum = kth < count ? masses[kth] : total;
    return {sum, sum};
  }
  BARACUDA_HD int64_t index(uint64_t mass) const { return first_reaching(masses, count, mass); }
  BARACUDA_HD MassRange reaching(MassRange mass) const {
    uint64_t sum = masses[index(mass.low)];
    return {sum, sum};
  }
};

// Rows of tokens, and what is asked of each. A row of a parameter serves neighboring rows.
template <class T>
struct SamplingRows {
  const T* x;
  const uint32_t* bits;
  const int32_t* k;
  const float *p, *smallest, *scale;
  int32_t* tokens;
  float* logs;
  int64_t rows, count, bits_rows, k_rows, p_rows, smallest_rows, scale_rows;
  bool joint;

  static BARACUDA_HD int64_t serves(int64_t row, int64_t rows, int64_t of) {
    if (of == rows || of == 1) return of == 1 ? 0 : row;  // without divisions
    return row / (rows / of);
  }

  BARACUDA_HD TokenDraw draw(int64_t row) const {
    return TokenDraw(bits + 2 * serves(row, rows, bits_rows), k[serves(row, rows, k_rows)],
                     p[serves(row, rows, p_rows)], count, joint);
  }
  template <class Mass>
  BARACUDA_HD Mass mass(int64_t row, float largest) const {
    return Mass(largest, scale[serves(row, rows, scale_rows)], smallest[serves(row, rows, smallest_rows)]);
  }
  // The token, and the logarithm of the probability that it had among those that were kept.
  template <class Mass>
  BARACUDA_HD void write(int64_t row, const Mass& mass, int32_t token, uint64_t kept) const {
    tokens[row] = token;
    logs[row] = mass.log(float(x[row * count + token])) - std::log(float(kept) * (1.f / (uint64_t(1) << mass_bits)));
  }
  // A row without any probability.
  BARACUDA_HD void write_none(int64_t row) const {
    tokens[row] = -1, logs[row] = std::numeric_limits<float>::quiet_NaN();
  }
};

// Rows of tokens of which one finds a prefix by the digits of float32 keys, eight bits at a time, as shards of rows do
// together: of each row the masses and the counts of tokens, by the digit above `shift`, among those whose keys have
// the higher digits of a prefix. `keys` has the key of the largest token and the prefix, for each row. The result
// [rows, 3, 256] has the masses' low words, high words, and the counts.
template <class T>
struct MassDigits {
  static constexpr int digits = 256;

  const T* x;
  const uint32_t* keys;
  const float *smallest, *scale;
  uint32_t* sums;
  int64_t rows, count, keys_rows, smallest_rows, scale_rows;
  int shift;

  BARACUDA_HD const uint32_t* keys_of(int64_t row) const {
    return keys + 2 * SamplingRows<T>::serves(row, rows, keys_rows);
  }
  template <class Mass>
  BARACUDA_HD Mass mass(int64_t row) const {
    return Mass(SortKey<float>::number(keys_of(row)[0], true), scale[SamplingRows<T>::serves(row, rows, scale_rows)],
                smallest[SamplingRows<T>::serves(row, rows, smallest_rows)]);
  }
  // The digit, or -1 where the higher ones differ from the prefix.
  static BARACUDA_HD int32_t digit(float x, uint32_t prefix, int shift) {
    uint32_t key = SortKey<float>::of(x, true) >> shift;
    return key >> 8 == prefix >> shift >> 8 ? int32_t(key & 0xffu) : -1;
  }
};

// Whether something may be drawn, by the largest element.
template <class Mass>
BARACUDA_HD bool has_mass(float largest) {
  if constexpr (std::is_same_v<Mass, LogitMass>) return largest > -std::numeric_limits<float>::infinity();
  return largest >= std::numeric_limits<float>::min();
}

}  // namespace baracuda
