// What FFI targets share that combine elements with rows by an index. x and the result are [batches..., count], index
// and src [batches..., items]. Where the index `wraps` negative numbers count from the end.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(scatter)

namespace baracuda {

inline void check_scattered(Checks& checks, ffi::AnyBuffer x, ffi::AnyBuffer index, ffi::AnyBuffer src,
                            ffi::AnyBuffer y) {
  auto rows = x.dimensions(), in = index.dimensions();
  checks.same_shape("index", index, "src", src)
      .dtype("index", index, ffi::DataType::S32)
      .same_dtype("src", src, "x", x)
      .same_shape("the result", y, "x", x)
      .same_dtype("the result", y, "x", x)
      .require(in.size() >= 1 && in.size() == rows.size() && std::equal(in.begin(), in.end() - 1, rows.begin()),
               "x must be index's ", describe(in), " but for the last dimension, got ", describe(rows))
      .require(in.size() >= 1 && std::max(in.back(), rows.back()) <= 0x7fffffff,
               "x and index must have rows of fewer than 2^31 elements");
}

template <class F>
ffi::Error combine(const char* op, Device& device, const F& f, ffi::AnyBuffer x, ffi::AnyBuffer index,
                   ffi::AnyBuffer src, bool wraps) {
  auto in = index.dimensions();
  int64_t count = x.dimensions().back();
  ScatterShape shape{product(in, 0, in.size() - 1), count, in.back(), false, wraps ? int32_t(count) : 0};
  return to_error(op, scatter_combined(device.executor(), f, static_cast<const int32_t*>(index.untyped_data()),
                                       static_cast<const typename F::Element*>(src.untyped_data()), shape));
}

}  // namespace baracuda
