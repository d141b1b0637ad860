// FFI targets of quantisation: cells [batches..., channels, inner] with scales and zero points [batches..., channels],
// which may have fewer of the batches. Zero points may be left out where all are 0.
#include "target.h"
#include BARACUDA_DRIVER(blocks)
#include BARACUDA_DRIVER(rows)

#include "../kernels/quantize.h"

namespace baracuda {
namespace {

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

bool is_packed(ffi::DataType dtype) { return dtype == ffi::DataType::S4 || dtype == ffi::DataType::U4; }

template <class T>
T* memory(const ffi::AnyBuffer& buffer) {
  return static_cast<T*>(buffer.untyped_data());
}

// Operands (x or codes, scale, zero point or nothing); `wide` is the float array that says what dtype scales have.
struct Blocks {
  Checks checks;
  BlockShape shape{0, 1, 1, 1};
  const void* scale = nullptr;
  const int32_t* zero = nullptr;

  Blocks(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& wide, const ffi::AnyBuffer& scales,
         const ffi::RemainingArgs& more)
      : checks(op) {
    auto in = x.dimensions(), per = scales.dimensions();
    auto expected = wide.element_type() == ffi::DataType::F64 ? ffi::DataType::F64 : ffi::DataType::F32;
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
        .require(!is_packed(code) || shape.columns % 2 == 0 || shape.cells() == 0,
                 "rows of codes of 4 bits must be even, got ", shape.columns);
  }
  template <class Wide>
  ScaleArrays<Wide> scales() const {
    return {static_cast<const Wide*>(scale), zero};
  }
};

template <class Wide>
CodeRange<Wide> range_of(double low, double high) {
  return {Wide(low), Wide(high)};
}

ffi::Error codes_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer scale, ffi::RemainingArgs zero,
                         ffi::Result<ffi::AnyBuffer> codes, double low, double high) {
  constexpr const char* op = "quantize";
  Blocks blocks(op, x, x, scale, zero);
  blocks.checks.same_shape("the result", *codes, "x", x);
  blocks.check_code(codes->element_type(), low, high);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    return for_code(op, "the result", codes->element_type(), [&](auto code) {
      using T = typename decltype(type)::type;
      using Kernel = Quantize<T, typename decltype(code)::type>;
      using Wide = Accumulator<T>;
      Kernel kernel{{blocks.scales<Wide>()},
                    memory<const T>(x),
                    memory<typename Kernel::Array::Memory>(*codes),
                    range_of<Wide>(low, high)};
      return to_error(op, run_blocks(device.executor(), kernel, blocks.shape));
    });
  });
}

ffi::Error values_handler(Device device, ffi::AnyBuffer codes, ffi::AnyBuffer scale, ffi::RemainingArgs zero,
                          ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "dequantize";
  Blocks blocks(op, codes, *y, scale, zero);
  blocks.checks.same_shape("the result", *y, "codes", codes);
  blocks.check_code(codes.element_type(), 0, 0);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "the result", y->element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto run = [&](auto code) {
      using Kernel = Dequantize<T, typename decltype(code)::type>;
      Kernel kernel{
          {blocks.scales<Accumulator<T>>()}, memory<const typename Kernel::Array::Memory>(codes), memory<T>(*y)};
      return to_error(op, run_blocks(device.executor(), kernel, blocks.shape));
    };
    if (codes.element_type() == y->element_type()) return run(type);
    return for_code(op, "codes", codes.element_type(), run);
  });
}

ffi::Error fake_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer scale, ffi::RemainingArgs zero,
                        ffi::Result<ffi::AnyBuffer> y, double low, double high) {
  constexpr const char* op = "fake_quantize";
  Blocks blocks(op, x, x, scale, zero);
  blocks.checks.same_shape("the result", *y, "x", x).same_dtype("the result", *y, "x", x);
  blocks.check_code(x.element_type(), low, high);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    FakeQuantize<T> kernel{{blocks.scales<Wide>()}, memory<const T>(x), memory<T>(*y), range_of<Wide>(low, high)};
    return to_error(op, run_blocks(device.executor(), kernel, blocks.shape));
  });
}

ffi::Error gradient_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer dy, ffi::AnyBuffer scale,
                            ffi::RemainingArgs zero, ffi::Result<ffi::AnyBuffer> dx, double low, double high,
                            bool divides) {
  constexpr const char* op = "quantize_backward";
  Blocks blocks(op, x, x, scale, zero);
  blocks.checks.same_shape("dy", dy, "x", x)
      .same_dtype("dy", dy, "x", x)
      .same_shape("the result", *dx, "x", x)
      .same_dtype("the result", *dx, "x", x);
  blocks.check_code(x.element_type(), low, high);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    auto run = [&](auto kernel) { return to_error(op, run_blocks(device.executor(), kernel, blocks.shape)); };
    Scaled<T> scaled{blocks.scales<Wide>()};
    auto range = range_of<Wide>(low, high);
    if (divides)
      return run(QuantizeBackward<T, true>{scaled, memory<const T>(x), memory<const T>(dy), memory<T>(*dx), range});
    return run(QuantizeBackward<T, false>{scaled, memory<const T>(x), memory<const T>(dy), memory<T>(*dx), range});
  });
}

// Rows [batches..., inner]; scale, and the zero point of the asymmetric mode, are [batches..., 1].
ffi::Error dynamic_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> codes,
                           ffi::Result<ffi::AnyBuffer> scale, ffi::RemainingRets zero, double low, double high) {
  constexpr const char* op = "dynamic_quantize";
  Checks checks(op);
  auto in = x.dimensions(), per = scale->dimensions();
  checks.require(in.size() >= 1, "x must have rank 1 or more, got ", describe(in))
      .require(per.size() == in.size() && per.back() == 1 && std::equal(per.begin(), per.end() - 1, in.begin()),
               "scale must be x's ", describe(in), " with rows of 1, got ", describe(per))
      .same_shape("the result", *codes, "x", x)
      .dtype("scale", *scale, x.element_type() == ffi::DataType::F64 ? ffi::DataType::F64 : ffi::DataType::F32)
      .require(low <= 0 && 0 < high, "the codes must hold 0 and more, got ", low, " to ", high)
      .require(zero.size() <= 1, "expected two or three results, got ", zero.size() + 2);
  if (checks.failed()) return checks.error();
  int64_t columns = in.back(), rows = product(in, 0, in.size() - 1);
  checks.require(!is_packed(codes->element_type()) || columns % 2 == 0, "rows of codes of 4 bits must be even, got ",
                 columns);
  int32_t* zeros = nullptr;
  if (zero.size() == 1) {
    auto array = zero.get<ffi::AnyBuffer>(0);
    if (array.has_error()) return array.error();
    checks.same_shape("zero_point", **array, "scale", *scale).dtype("zero_point", **array, ffi::DataType::S32);
    zeros = memory<int32_t>(**array);
  }
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    return for_code(op, "the result", codes->element_type(), [&](auto code) {
      using T = typename decltype(type)::type;
      using Code = typename decltype(code)::type;
      using Wide = Accumulator<T>;
      Quantize<T, Code> quantize{
          {}, memory<const T>(x), memory<typename CodeArray<Code>::Memory>(*codes), range_of<Wide>(low, high)};
      DynamicQuantize<T, Code> kernel{quantize, memory<Wide>(*scale), zeros};
      return to_error(op, run_rows(device.executor(), kernel, rows, columns));
    });
  });
}

auto cells() { return ffi::Ffi::Bind().Ctx<Device>().Arg<ffi::AnyBuffer>(); }
template <class Binding>
auto with_range(Binding binding) {
  return std::move(binding).template Attr<double>("low").template Attr<double>("high");
}

BARACUDA_TARGET(quantize, codes_handler,
                with_range(cells().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>()));
BARACUDA_TARGET(dequantize, values_handler, cells().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(fake_quantize, fake_handler,
                with_range(cells().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>()));
BARACUDA_TARGET(quantize_backward, gradient_handler,
                with_range(cells().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>())
                    .Attr<bool>("divides"));
BARACUDA_TARGET(dynamic_quantize, dynamic_handler,
                with_range(cells().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets()));

}  // namespace
}  // namespace baracuda
