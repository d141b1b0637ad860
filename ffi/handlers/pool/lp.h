// What FFI targets of LP pooling share.
#pragma once

#include "handlers/saved.h"
#include "kernels/lp_pool.h"
#include "pool.h"

namespace baracuda {

// Windows without padding.
inline WindowAttributes plain_windows(Dimensions window, Dimensions strides, bool channels_last) {
  static constexpr int64_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0, 0, 0, 0};
  size_t spatial = std::min<size_t>(window.size(), 3);
  return {window, strides, {ones, spatial}, {zeros, 2 * spatial}, false, channels_last};
}

struct LpPooling : Pooling {
  LpPooling(const char* op, const char* input, const ffi::AnyBuffer& x, const char* output, const ffi::AnyBuffer& y,
            Dimensions window, Dimensions strides, double norm_type, bool channels_last)
      : Pooling(op, input, x, output, y, plain_windows(window, strides, channels_last)) {
    checks.require(norm_type > 0, "norm_type must be above 0, got ", norm_type);
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

inline auto pool() { return operands<0>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets(); }
inline auto derivative() {
  return operands<0>().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>();
}
template <class Binding>
auto with_attributes(Binding binding) {
  return binding.template Attr<Dimensions>("window")
      .template Attr<Dimensions>("strides")
      .template Attr<double>("norm_type")
      .template Attr<bool>("channels_last");
}

}  // namespace baracuda
