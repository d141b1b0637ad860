// FFI targets of fake quantization and of gradients.
#include "quantize.h"
#include BARACUDA_DRIVER(blockwise)

namespace baracuda {
namespace {

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
    return to_error(op, run_blockwise(device.executor(), kernel, blocks.shape));
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
    auto run = [&](auto kernel) { return to_error(op, run_blockwise(device.executor(), kernel, blocks.shape)); };
    Scaled<T> scaled{blocks.scales<Wide>()};
    auto range = range_of<Wide>(low, high);
    if (divides)
      return run(QuantizeBackward<T, true>{scaled, memory<const T>(x), memory<const T>(dy), memory<T>(*dx), range});
    return run(QuantizeBackward<T, false>{scaled, memory<const T>(x), memory<const T>(dy), memory<T>(*dx), range});
  });
}

BARACUDA_TARGET(fake_quantize, fake_handler,
                with_range(elements().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>()));
BARACUDA_TARGET(quantize_backward, gradient_handler,
                with_range(elements().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>())
                    .Attr<bool>("divides"));

}  // namespace
}  // namespace baracuda
