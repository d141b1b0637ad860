// FFI targets of ops that move elements. Repeat: x [batches..., n_1, ..., n_k], y [batches..., r_1 n_1, ..., r_k n_k]
// with repeats r.
#include "target.h"
#include BARACUDA_DRIVER(tile)

#include "../kernels/repeat.h"
#include "elements.h"

namespace baracuda {
namespace {

// The attribute, and the shapes that it is checked against.
struct Repeating {
  TileShape shape;
  Checks checks;

  Repeating(const char* op, const char* input, const ffi::AnyBuffer& x, const char* output, const ffi::AnyBuffer& y,
            Dimensions repeats)
      : checks(op) {
    auto in = x.dimensions(), out = y.dimensions();
    size_t axes = repeats.size();
    checks.require(1 <= axes && axes <= tile_axes, "repeats must have 1 to ", tile_axes, " numbers, got ", axes)
        .require(in.size() >= axes, input, " must have rank ", axes, " or more, got ", describe(in))
        .require(in.size() == out.size(), output, " must have the rank of ", input, ", ", describe(in), ", got ",
                 describe(out))
        .same_dtype(output, y, input, x);
    if (checks.failed()) return;
    size_t batches = in.size() - axes;
    for (size_t i = 0; i < in.size(); ++i) {
      int64_t times = i < batches ? 1 : repeats[i - batches];
      checks.require(times >= 0, "repeats must be 0 or more, got ", describe(repeats))
          .require(out[i] == in[i] * times, "dimension ", i, " of ", output, " must be ", in[i] * times, ", that of ",
                   input, " repeated, got ", describe(out));
    }
    if (checks.failed()) return;
    shape.batches = product(in, 0, batches);
    shape.axes = int(axes);
    for (size_t i = 0; i < axes; ++i) shape.size[i] = in[batches + i], shape.repeats[i] = repeats[i];
  }
};

ffi::Error forward_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, Dimensions repeats) {
  constexpr const char* op = "repeat";
  int64_t bytes = bytes_of(x.element_type());
  Repeating repeating(op, "x", x, "the result", *y, repeats);
  require_elements(repeating.checks, "x", x);
  if (repeating.checks.failed()) return repeating.checks.error();
  TileShape shape = repeating.shape;
  int64_t& inner = shape.size[shape.axes - 1];
  return to_error(op, for_element(inner * bytes, [&](auto element) {
                    using Element = decltype(element);
                    inner = inner * bytes / int64_t(sizeof(Element));
                    return copy_elements(device.executor(), shape, static_cast<const Element*>(x.untyped_data()),
                                         static_cast<Element*>(y->untyped_data()));
                  }));
}

ffi::Error backward_handler(Device device, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> workspace,
                            ffi::Result<ffi::AnyBuffer> dx, Dimensions repeats) {
  constexpr const char* op = "repeat_backward";
  Repeating repeating(op, "the result", *dx, "dy", dy, repeats);
  if (repeating.checks.failed()) return repeating.checks.error();
  TileShape shape = repeating.shape;
  ffi::DataType dtype = dy.element_type();
  // A complex number is two neighbors.
  if (dtype == ffi::DataType::C64 || dtype == ffi::DataType::C128) {
    shape.size[shape.axes - 1] *= 2;
    dtype = dtype == ffi::DataType::C64 ? ffi::DataType::F32 : ffi::DataType::F64;
  }
  return for_float(op, "dy", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, reduce_copies(device.executor(*workspace), CopySum<T>{}, shape,
                                      static_cast<const T*>(dy.untyped_data()), static_cast<T*>(dx->untyped_data())));
  });
}

BARACUDA_TARGET(repeat, forward_handler,
                operands<0>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<Dimensions>("repeats"));
BARACUDA_TARGET(
    repeat_backward, backward_handler,
    operands<0>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<Dimensions>("repeats"));

}  // namespace
}  // namespace baracuda
