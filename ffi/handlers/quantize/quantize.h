// What FFI targets of quantization share: elements [batches..., channels, inner] with scales and zero points
// [batches..., channels], which may have fewer of the batches. Zero points may be left out where all are 0.
#pragma once

#include "handlers/target.h"
#include "kernels/quantize.h"
#include "patterns/blockwise.h"

namespace baracuda {

template <class Body>
ffi::Error for_code(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  switch (dtype) {
    case ffi::DataType::S8:
      return body(Type<int8_t>{});
    case ffi::DataType::U8:
      return body(Type<uint8_t>{});
    case ffi::DataType::S4:
      return body(Type<Integer4<true>>{});
    case ffi::DataType::U4:
      return body(Type<Integer4<false>>{});
    case ffi::DataType::F8E4M3FN:
      return body(Type<Float8E4M3>{});
    case ffi::DataType::F8E5M2:
      return body(Type<Float8E5M2>{});
    default:
      return invalid(op, argument, " must be int8, uint8, int4, uint4, float8_e4m3fn or float8_e5m2, got type ",
                     int(dtype));
  }
}

inline bool is_packed(ffi::DataType dtype) { return dtype == ffi::DataType::S4 || dtype == ffi::DataType::U4; }

template <class T>
T* memory(const ffi::AnyBuffer& buffer) {
  return static_cast<T*>(buffer.untyped_data());
}

// Operands (x or q, scale, zero point or nothing); `wide` is the float array that says what dtype scales have.
struct Blocks {
  Checks checks;
  BlockShape shape{0, 1, 1, 1};
  const void* scale = nullptr;
  const int32_t* zero = nullptr;

  Blocks(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& wide, const ffi::AnyBuffer& scales,
         const ffi::RemainingArgs& more)
      : checks(op) {
    auto in = x.dimensions(), per = scales.dimensions();
    auto expected = wide_of(wide);
    checks.require(in.size() >= 2, "x must have rank 2 or more, got ", describe(in))
        .require(per.size() >= 1 && per.size() < in.size() && std::equal(per.begin(), per.end() - 1, in.begin()) &&
                     per.back() == in[in.size() - 2],
                 "scale must have the leading dimensions and the channels of x, ", describe(in), ", got ",
                 describe(per))
        .dtype("scale", scales, expected)
        .require(more.size() <= 1, "expected at most one zero point, got ", more.size());
    if (checks.failed()) return;
    if (more.size() == 1) {
      auto zeros = more.get<ffi::AnyBuffer>(0);
      if (checks.require(zeros.has_value(), "zero_point must be an array").failed()) return;
      checks.same_shape("zero_point", *zeros, "scale", scales).dtype("zero_point", *zeros, ffi::DataType::S32);
      zero = memory<const int32_t>(*zeros);
    }
    scale = scales.untyped_data();
    shape = BlockShape(product(in, 0, in.size() - 2), in[in.size() - 2], in.back(), product(per, 0, per.size()));
  }
  void check_code(ffi::DataType code, double low, double high) {
    checks.require(low <= high, "qmin must be at most qmax, got ", low, " and ", high)
        .require(!is_packed(code) || shape.columns % 2 == 0 || shape.elements() == 0,
                 "rows of quantized values of 4 bits must be even, got ", shape.columns);
  }
  template <class Wide>
  ScaleArrays<Wide> scales() const {
    return {static_cast<const Wide*>(scale), zero};
  }
};

template <class Wide>
QuantizedRange<Wide> range_of(double low, double high) {
  return {Wide(low), Wide(high)};
}

inline auto elements() { return operands<0>().Arg<ffi::AnyBuffer>(); }
template <class Binding>
constexpr auto with_range(Binding binding) {
  return binding.template Attr<double>("low").template Attr<double>("high");
}

}  // namespace baracuda
