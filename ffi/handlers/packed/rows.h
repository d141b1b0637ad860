// The body of the targets that multiply with packed weights: a target for each list of formats, which is a file's.
// x [batches..., count, columns] and y [batches..., count, rows]. The data may have fewer batches: neighboring ones of
// x then have the same weights.
#pragma once

#include "packed.h"
#include BARACUDA_DRIVER(packed_rows)
#include "row_dtype.h"
#ifdef BARACUDA_CUDA
#include "../../patterns/packed_rows_half_cuda.h"
#endif

// Of x in half precision, which a file of its own compiles for each list of formats (rows_*_half.cc).
#define BARACUDA_ROWS_HALF(FORMAT) template Status packed_rows_half(const Executor&, const PackedRows<packed::FORMAT>&);
#define BARACUDA_ROWS_HALF_ELSEWHERE(FORMAT) extern BARACUDA_ROWS_HALF(FORMAT)

namespace baracuda {

template <class Format>
ffi::Error multiply_format(const char* op, Device& device, Checks& checks, const PackedWeights& from,
                           const ffi::AnyBuffer& x, const ffi::AnyBuffer* experts, ffi::Result<ffi::AnyBuffer>& y) {
  from.check_row<Format>(checks);
  if (checks.failed()) return checks.error();
  int64_t blocks = from.row_bytes / Format::bytes;
  auto in_x = x.dimensions(), in_y = y->dimensions();
  auto dtype = row_dtype(x.element_type());
  checks.same_dtype("the result", *y, "x", x)
      .require(dtype.has_value(), "x must be float16, bfloat16, float32 or float64, got type ", int(x.element_type()))
      .require(in_x.size() >= 2 && in_x.back() == blocks * Format::block, "x must have rows of ",
               blocks * Format::block, " elements, as the weights have, got ", describe(in_x));
  if (checks.failed()) return checks.error();
  int64_t count = product(in_x, 0, in_x.size() - 1);
  checks
      .require(in_y.size() == in_x.size() && std::equal(in_x.begin(), in_x.end() - 1, in_y.begin()) &&
                   in_y.back() == from.rows,
               "the result must have the shape of x, ", describe(in_x), ", with rows of ", from.rows, ", got ",
               describe(in_y))
      .require(experts != nullptr || (from.batches > 0 ? count % from.batches == 0 : count == 0),
               "x must have a multiple of the batches of data, ", from.batches, ", got ", describe(in_x));
  if (checks.failed()) return checks.error();
  PackedRows<Format> work{};
  work.weights = from.blocks<Format>();
  work.batches = work.matrices = from.batches;
  work.rows = from.rows, work.blocks = blocks, work.groups = from.groups;
  work.count = from.batches ? count / from.batches : 0;
  work.dtype = *dtype, work.x = x.untyped_data(), work.y = y->untyped_data();
  if (experts != nullptr) {
    // Each row of x is a batch of its own.
    auto names = experts->dimensions();
    int64_t many = from.dims[from.dims.size() - 3], matrices = many ? from.batches / many : 0;
    checks.dtype("experts", *experts, ffi::DataType::S32)
        .require(names.size() + 1 == in_x.size() && std::equal(names.begin(), names.end(), in_x.begin()),
                 "experts must have one element for each row of x, ", describe(in_x), ", got ", describe(names))
        .require(count == 0 || (matrices > 0 && count % matrices == 0),
                 "x must have a multiple of the batches of data, ", matrices, ", got ", describe(in_x));
    if (checks.failed()) return checks.error();
    work.batches = count, work.count = 1;
    work.owner = in<int32_t>(*experts), work.experts = many, work.sharing = matrices ? count / matrices : 1;
  }
  if (work.dtype == RowDtype::f64) return to_error(op, packed_rows<double>(device.executor(), work));
  if (work.dtype == RowDtype::f32) return to_error(op, packed_rows<float>(device.executor(), work));
  return to_error(op, packed_rows_half(device.executor(), work));
}

template <class Formats>
ffi::Error rows_call(const char* op, Device& device, const ffi::AnyBuffer& x, const ffi::AnyBuffer& data,
                     const ffi::AnyBuffer& scale, const ffi::AnyBuffer& zero, const ffi::AnyBuffer* experts,
                     ffi::Result<ffi::AnyBuffer>& y, std::string_view format) {
  Checks checks(op);
  PackedWeights from(checks, data, scale, zero);
  if (checks.failed()) return checks.error();
  checks.require(experts == nullptr || from.dims.size() >= 3,
                 "data must have rank 3 or more, the matrices of experts, got ", describe(from.dims));
  if (checks.failed()) return checks.error();
  return for_format(op, Formats{}, format, [&](auto type) {
    return multiply_format<typename decltype(type)::type>(op, device, checks, from, x, experts, y);
  });
}

// A file has the instantiations of one list of formats.
#define BARACUDA_ROWS_TARGET(TARGET, FORMATS)                                                             \
  ffi::Error TARGET##_call(Device device, ffi::AnyBuffer x, ffi::AnyBuffer data, ffi::AnyBuffer scale,    \
                           ffi::AnyBuffer zero, ffi::Result<ffi::AnyBuffer> y, std::string_view format) { \
    return rows_call<FORMATS>(#TARGET, device, x, data, scale, zero, nullptr, y, format);                 \
  }                                                                                                       \
  BARACUDA_TARGET(TARGET, TARGET##_call, operands<4>().Ret<ffi::AnyBuffer>().Attr<std::string_view>("format"))

// The same with a matrix for each row of x.
#define BARACUDA_ROWS_BY_EXPERT_TARGET(TARGET, FORMATS)                                                \
  ffi::Error TARGET##_call(Device device, ffi::AnyBuffer x, ffi::AnyBuffer data, ffi::AnyBuffer scale, \
                           ffi::AnyBuffer zero, ffi::AnyBuffer experts, ffi::Result<ffi::AnyBuffer> y, \
                           std::string_view format) {                                                  \
    return rows_call<FORMATS>(#TARGET, device, x, data, scale, zero, &experts, y, format);             \
  }                                                                                                    \
  BARACUDA_TARGET(TARGET, TARGET##_call, operands<5>().Ret<ffi::AnyBuffer>().Attr<std::string_view>("format"))

}  // namespace baracuda
