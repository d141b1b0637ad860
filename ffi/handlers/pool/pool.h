// What FFI targets of pooling share: arrays [batches..., spatial..., channels], the channels in their place only with
// channels_last.
#pragma once

#include "handlers/saved.h"
#include "handlers/target.h"
#include BARACUDA_DRIVER(window)

#include "kernels/lp_pool.h"

namespace baracuda {

// The attributes, and the shapes of the input x and the output y that they are checked against.
struct Pooling {
  WindowShape shape;
  double norm_type;
  Checks checks;

  Pooling(const char* op, const char* input, const ffi::AnyBuffer& x, const char* output, const ffi::AnyBuffer& y,
          Dimensions window, Dimensions strides, double norm_type, bool channels_last)
      : norm_type(norm_type), checks(op) {
    auto in = x.dimensions(), out = y.dimensions();
    size_t spatial = window.size(), trailing = spatial + channels_last;
    checks.require(1 <= spatial && spatial <= 3, "window must have 1 to 3 sizes, got ", describe(window))
        .require(strides.size() == spatial, "strides must have the length of window, ", spatial, ", got ",
                 describe(strides))
        .require(norm_type > 0, "norm_type must be above 0, got ", norm_type)
        .require(in.size() >= trailing, input, " must have rank ", trailing, " or more, got ", describe(in))
        .same_dtype(output, y, input, x);
    if (checks.failed()) return;
    size_t batches = in.size() - trailing;
    checks.require(out.size() == in.size() && std::equal(in.begin(), in.begin() + batches, out.begin()) &&
                       (!channels_last || in.back() == out.back()),
                   output, " must have the shape of ", input, ", ", describe(in), ", but for its ", spatial,
                   " spatial dimensions, got ", describe(out));
    if (checks.failed()) return;
    shape.batches = product(in, 0, batches);
    shape.channels = channels_last ? in.back() : 1;
    for (size_t i = 0; i < spatial; ++i) {
      int64_t n = in[batches + i], m = out[batches + i], k = window[i], s = strides[i];
      checks
          .require(k >= 1 && k <= n, "window must be 1 to the size of ", input, ", ", describe(in), ", got ",
                   describe(window))
          .require(s >= 1, "strides must be 1 or more, got ", describe(strides));
      if (checks.failed()) return;
      int64_t whole = (n - k) / s + 1, most = whole + ((n - k) % s != 0);
      checks.require(whole <= m && m <= most && m - 1 <= (n - 1) / s, "dimension ", batches + i, " of ", output,
                     " must be ", whole, ", or with a last window that is cut off, which must begin inside ", input,
                     ", ", most, "; got ", m);
      size_t axis = 3 - spatial + i;
      shape.in[axis] = n, shape.out[axis] = m, shape.size[axis] = k;
      // A longer stride moves no window that there is.
      shape.stride[axis] = std::min(s, n);
    }
  }
};

// body(power) for the norm, in the type that sums are formed in.
template <class Wide, class Body>
Status for_power(double p, const Body& body) {
  if (p == 1) return body(PowerOne<Wide>{});
  if (p == 2) return body(PowerTwo<Wide>{});
  if (p == 3) return body(PowerThree<Wide>{});
  if (p == std::numeric_limits<double>::infinity()) return body(PowerMax<Wide>{});
  return body(PowerAny<Wide>{p});
}

template <class T>
const T* data(const ffi::AnyBuffer& buffer) {
  return static_cast<const T*>(buffer.untyped_data());
}

inline auto pool() {
  return ffi::Ffi::Bind().Ctx<Device>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets();
}
inline auto derivative() {
  return ffi::Ffi::Bind()
      .Ctx<Device>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Arg<ffi::AnyBuffer>()
      .Ret<ffi::AnyBuffer>();
}
template <class Binding>
auto with_attributes(Binding binding) {
  return std::move(binding)
      .template Attr<Dimensions>("window")
      .template Attr<Dimensions>("strides")
      .template Attr<double>("norm_type")
      .template Attr<bool>("channels_last");
}

}  // namespace baracuda
