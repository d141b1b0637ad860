// The body of the targets that unpack weights: a target for each list of formats, which is a file's.
#pragma once

#include "packed.h"
#include BARACUDA_DRIVER(unpack)

namespace baracuda {

template <class Format>
ffi::Error unpack_format(const char* op, Device& device, Checks& checks, const PackedWeights& from,
                         ffi::Result<ffi::AnyBuffer>& y) {
  from.check_row<Format>(checks);
  if (checks.failed()) return checks.error();
  int64_t blocks = from.row_bytes / Format::bytes;
  auto dims = y->dimensions();
  checks.require(dims.size() >= 2 && product(dims, 0, dims.size() - 1) == from.batches * from.rows &&
                     dims.back() == blocks * Format::block,
                 "the result must have ", from.batches * from.rows, " rows of ", blocks * Format::block,
                 " weights, got ", describe(dims));
  if (checks.failed()) return checks.error();
  return for_float(op, "the result", y->element_type(), [&](auto type) {
    using Out = typename decltype(type)::type;
    return to_error(op, unpack_rows(device.executor(), from.blocks<Format>(), from.batches * from.rows, blocks,
                                    from.groups, out<Out>(y)));
  });
}

template <class Formats>
ffi::Error unpack_call(const char* op, Device& device, const ffi::AnyBuffer& data, const ffi::AnyBuffer& scale,
                       const ffi::AnyBuffer& zero, ffi::Result<ffi::AnyBuffer>& y, std::string_view format) {
  Checks checks(op);
  PackedWeights from(checks, data, scale, zero);
  if (checks.failed()) return checks.error();
  return for_format(op, Formats{}, format, [&](auto type) {
    return unpack_format<typename decltype(type)::type>(op, device, checks, from, y);
  });
}

// A file has the instantiations of one list of formats.
#define BARACUDA_UNPACK_TARGET(TARGET, FORMATS)                                                           \
  ffi::Error TARGET##_call(Device device, ffi::AnyBuffer data, ffi::AnyBuffer scale, ffi::AnyBuffer zero, \
                           ffi::Result<ffi::AnyBuffer> y, std::string_view format) {                      \
    return unpack_call<FORMATS>(#TARGET, device, data, scale, zero, y, format);                           \
  }                                                                                                       \
  BARACUDA_TARGET(TARGET, TARGET##_call, operands<3>().Ret<ffi::AnyBuffer>().Attr<std::string_view>("format"))

}  // namespace baracuda
