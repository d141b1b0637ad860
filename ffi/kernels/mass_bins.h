// Bins of tokens by steps of probability, from the most probable down, that are known before the largest of a row is: a
// reference, which is one of its elements, is enough. A count of tokens by bins gives a good estimate of masses.
#pragma once

#include "sampling.h"

namespace baracuda {

// Tokens in the first bin may be more probable than it says. What would be in the last one has no mass.
inline constexpr int mass_bins = 4096;
inline constexpr int bins_of_factor_2 = 64, bins_above = 24 * bins_of_factor_2;  // the reference
static_assert(mass_bins - 1 - bins_above >= (mass_bits + 2) * bins_of_factor_2);

// Of logits. A position is a float, whose low bits are the bin.
struct LogitBins {
  using Position = float;
  static constexpr float shift = 0x1.8p23f;
  static constexpr float deviation = 0.0032f;  // of a mass in a bin from its middle, in parts of it

  float reference, factor;

  // A finite factor: the reference itself has a bin.
  BARACUDA_HD LogitBins(float reference, float scale)
      : reference(reference), factor(-bins_of_factor_2 * (scale < 0x1p100f ? scale : 0x1p100f)) {}

  BARACUDA_HD float position(float x) const { return std::fma(x - reference, factor, shift + bins_above); }
  static BARACUDA_HD float at(int32_t bin) { return shift + float(bin); }
  static BARACUDA_HD int32_t bin(float position) { return bit_cast<int32_t>(position) - bit_cast<int32_t>(shift); }

  // The mass of a token in the middle of a bin, and whether some in the bin may have none.
  BARACUDA_HD uint64_t middle(const MassOfLogits<true>& mass, int32_t bin, bool& is_cut) const {
    constexpr float part = 1.f / bins_of_factor_2;
    float t = float(bins_above - bin) * part + (reference - mass.largest) * mass.scale;
    is_cut = std::fabs(t - mass.smallest) <= part;
    return t >= mass.smallest - part ? MassOfLogits<true>::mass_of(t < 0 ? t : 0) : 0;
  }
};

// Of probabilities, by their exponents and the first bits of mantissas.
struct ProbabilityBins {
  using Position = int32_t;
  static constexpr int shift = 17;
  static_assert(1 << (23 - shift) == bins_of_factor_2);
  static constexpr float deviation = 0.0046f;

  int32_t first;

  BARACUDA_HD ProbabilityBins(float reference, float) : first((bit_cast<int32_t>(reference) >> shift) + bins_above) {}

  // Negative ones are where 0 is.
  BARACUDA_HD int32_t position(float x) const {
    int32_t bits = bit_cast<int32_t>(x);
    return first - ((bits > 0 ? bits : 0) >> shift);
  }
  static BARACUDA_HD int32_t at(int32_t bin) { return bin; }
  static BARACUDA_HD int32_t bin(int32_t position) { return position; }

  BARACUDA_HD uint64_t middle(const ProbabilityMass& mass, int32_t bin, bool& is_cut) const {
    int32_t bits = first - bin;
    float x = bit_cast<float>((uint32_t(bits) << shift) + (1u << (shift - 1)));
    is_cut = bits == bit_cast<int32_t>(mass.smallest) >> shift;
    if (is_cut && x < mass.smallest) x = mass.smallest;
    return bits > 0 && bits <= 0x7f800000 >> shift ? mass.mass(x) : 0;
  }
};

template <class Mass>
using MassBins = std::conditional_t<std::is_same_v<typename Mass::Finite, ProbabilityMass>, ProbabilityBins, LogitBins>;

}  // namespace baracuda
