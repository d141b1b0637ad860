// Quantized values: integers of 8 and 4 bits, and floats of 8 bits. Integers of 4 bits lie two to a
// byte, the first in the low half.
#pragma once

#include "number.h"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

namespace baracuda {

// A float of 8 bits with `mantissa` of them for the fraction. Conversion rounds to the nearest even and saturates.
template <int mantissa, int bias, bool has_infinity>
struct Float8 {
  uint8_t bits;

  // The largest finite value's bits.
  static constexpr uint32_t most = has_infinity ? 0x7b : 0x7e;
  static constexpr uint32_t nan = has_infinity ? 0x7e : 0x7f;

  static BARACUDA_HD float highest() { return has_infinity ? 57344.f : 448.f; }

  Float8() = default;
  explicit BARACUDA_HD Float8(float x) {
#ifdef __CUDA_ARCH__
    bits = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, has_infinity ? __NV_E5M2 : __NV_E4M3);
#else
    uint32_t all = bit_cast<uint32_t>(x), magnitude = all & 0x7fffffffu;
    constexpr uint32_t shift = 23 - mantissa;
    uint32_t normal =
        (magnitude + (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1u) - (uint32_t(127 - bias) << 23)) >> shift;
    // The sum's last bit is worth as much as the smallest subnormal.
    constexpr uint32_t unit = uint32_t(127 + 1 - bias - mantissa + 23) << 23;
    uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(unit)) - unit;
    uint32_t code = magnitude < (uint32_t(128 - bias) << 23) ? subnormal : normal;
    code = magnitude >= bit_cast<uint32_t>(highest()) ? most : code;
    code = magnitude > 0x7f800000u ? nan : code;
    bits = uint8_t(code | ((all >> 24) & 0x80u));
#endif
  }
  explicit BARACUDA_HD Float8(double x) : Float8(to_odd(x)) {}

  BARACUDA_HD operator float() const {
#ifdef __CUDA_ARCH__
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, has_infinity ? __NV_E5M2 : __NV_E4M3)));
#else
    uint32_t magnitude = bits & 0x7fu, sign = uint32_t(bits & 0x80u) << 24;
    uint32_t normal = (magnitude << (23 - mantissa)) + (uint32_t(127 - bias) << 23);
    constexpr uint32_t unit = uint32_t(127 + 1 - bias - mantissa) << 23;
    uint32_t subnormal = bit_cast<uint32_t>(float(int32_t(magnitude)) * bit_cast<float>(unit));
    uint32_t value = magnitude < (1u << mantissa) ? subnormal : normal;
    if (has_infinity ? magnitude >= 0x7c : magnitude == 0x7f)
      value = has_infinity && magnitude == 0x7c ? 0x7f800000u : 0x7fc00000u;
    return bit_cast<float>(value | sign);
#endif
  }

 private:
  // Rounded to a float by truncation, with a last bit that says whether anything was cut: rounded again it is right.
  static BARACUDA_HD float to_odd(double x) {
    float nearest = float(x);
    if (!(std::fabs(double(nearest)) <= 1e30) || double(nearest) == x) return nearest;
    uint32_t bits = bit_cast<uint32_t>(nearest);
    if (std::fabs(double(nearest)) > std::fabs(x)) --bits;
    return bit_cast<float>(bits | 1u);
  }
};

using Float8E4M3 = Float8<3, 7, false>;
using Float8E5M2 = Float8<2, 15, true>;

template <bool is_signed>
struct Integer4 {};

// How quantized values of a kind are stored in memory. A Lane is one quantized value in a register.
template <class Code>
struct CodeArray {
  using Lane = Code;
  using Memory = Code;
  static constexpr bool is_float = !std::is_integral_v<Code>;
  static constexpr int least_width = 1;

  template <int V>
  static BARACUDA_HD Vector<Lane, V> get(const Memory* from, int64_t element) {
    return load<V>(from + element);
  }
  template <int V>
  static BARACUDA_HD void put(Memory* to, int64_t element, const Vector<Lane, V>& quantized) {
    store<V>(to + element, quantized);
  }
};

template <bool is_signed>
struct CodeArray<Integer4<is_signed>> {
  using Lane = int8_t;
  using Memory = uint8_t;
  static constexpr bool is_float = false;
  static constexpr int least_width = 2;

  template <int V>
  static BARACUDA_HD Vector<Lane, V> get(const Memory* from, int64_t element) {
    Vector<Memory, V / 2> bytes = load<V / 2>(from + element / 2);
    Vector<Lane, V> quantized;
    for (int k = 0; k < V / 2; ++k) {
      uint8_t low = bytes.lane[k] & 15u, high = bytes.lane[k] >> 4;
      quantized.lane[2 * k] = is_signed ? int8_t(int8_t(low ^ 8u) - 8) : int8_t(low);
      quantized.lane[2 * k + 1] = is_signed ? int8_t(int8_t(high ^ 8u) - 8) : int8_t(high);
    }
    return quantized;
  }
  template <int V>
  static BARACUDA_HD void put(Memory* to, int64_t element, const Vector<Lane, V>& quantized) {
    Vector<Memory, V / 2> bytes;
    for (int k = 0; k < V / 2; ++k)
      bytes.lane[k] = uint8_t((uint8_t(quantized.lane[2 * k]) & 15u) | uint8_t(quantized.lane[2 * k + 1] << 4));
    store<V / 2>(to + element / 2, bytes);
  }
};

}  // namespace baracuda
