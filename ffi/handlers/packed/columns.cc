// The FFI targets of weights in AWQ's layout: a product, of x [batches..., count, depth], y [batches..., count,
// columns], and the weights as floats. W may have fewer batches: neighboring ones of x then have the same weights. The
// workspace is for sums of parts of the rows of W, of which there are 16 `splits`.
#include "../target.h"
#include BARACUDA_DRIVER(packed_columns)
#include "row_dtype.h"

namespace baracuda {
namespace {

// W, whose columns are packed.
struct Weights {
  PackedColumns work{};

  Weights(Checks& checks, const ffi::AnyBuffer& data, const ffi::AnyBuffer& scale, const ffi::AnyBuffer& zero) {
    auto dims = data.dimensions(), by = scale.dimensions(), minus = zero.dimensions();
    auto scale_dtype = row_dtype(scale.element_type());
    auto has_words = [](const ffi::AnyBuffer& words) {
      return words.element_type() == ffi::DataType::S32 || words.element_type() == ffi::DataType::U32;
    };
    checks.require(has_words(data) && has_words(zero), "data and zero must be int32 or uint32")
        .require(scale_dtype.has_value() && *scale_dtype != RowDtype::f64,
                 "scale must be float16, bfloat16 or float32, got type ", int(scale.element_type()))
        .require(dims.size() >= 2, "data must have rank 2 or more, got ", describe(dims));
    if (checks.failed()) return;
    size_t rank = dims.size();
    work.depth = dims[rank - 2], work.words = dims[rank - 1], work.batches = product(dims, 0, rank - 2);
    checks.require(
        by.size() == rank && std::equal(dims.begin(), dims.end() - 2, by.begin()) && by.back() == work.columns(),
        "scale must have the batches and columns of data, ", describe(dims), ", got ", describe(by));
    if (checks.failed()) return;
    work.groups = by[rank - 2], work.scale_dtype = *scale_dtype;
    checks
        .require(
            minus.size() == rank && std::equal(by.begin(), by.end() - 1, minus.begin()) && minus.back() == work.words,
            "zero must have the groups of scale and the words of data, got ", describe(minus))
        .require(work.depth == 0 || (work.groups > 0 && work.depth % (32 * work.groups) == 0), "data of ", work.depth,
                 " rows must have groups of a multiple of 32, got ", work.groups, " groups");
    work.data = in<uint32_t>(data), work.zero = in<uint32_t>(zero), work.scale = scale.untyped_data();
#ifdef BARACUDA_CUDA
    for (const ffi::AnyBuffer* array : {&data, &scale})
      checks.require(reinterpret_cast<uintptr_t>(array->untyped_data()) % 16 == 0,
                     "data and scale must be at multiples of 16 bytes");
#endif
  }
};

ffi::Error multiply(Device device, ffi::AnyBuffer x, ffi::AnyBuffer data, ffi::AnyBuffer scale, ffi::AnyBuffer zero,
                    ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y, int64_t splits) {
  constexpr const char* op = "packed_columns";
  Checks checks(op);
  Weights weights(checks, data, scale, zero);
  if (checks.failed()) return checks.error();
  PackedColumns work = weights.work;
  auto in_x = x.dimensions(), in_y = y->dimensions();
  auto dtype = row_dtype(x.element_type());
  checks.same_dtype("the result", *y, "x", x)
      .require(dtype.has_value(), "x must be float16, bfloat16, float32 or float64, got type ", int(x.element_type()))
      .require(splits >= 1 && (splits & (splits - 1)) == 0, "splits must be a power of two, got ", splits)
      .require(in_x.size() >= 2 && in_x.back() == work.depth, "x must have rows of ", work.depth,
               " elements, as data has rows, got ", describe(in_x));
  if (checks.failed()) return checks.error();
  int64_t count = product(in_x, 0, in_x.size() - 1);
  checks
      .require(in_y.size() == in_x.size() && std::equal(in_x.begin(), in_x.end() - 1, in_y.begin()) &&
                   in_y.back() == work.columns(),
               "the result must have the shape of x, ", describe(in_x), ", with rows of ", work.columns(), ", got ",
               describe(in_y))
      .require(work.batches > 0 ? count % work.batches == 0 : count == 0,
               "x must have a multiple of the batches of data, ", work.batches, ", got ", describe(in_x));
#ifdef BARACUDA_CUDA
  checks.require(reinterpret_cast<uintptr_t>(x.untyped_data()) % 16 == 0, "x must be at a multiple of 16 bytes");
#endif
  if (checks.failed()) return checks.error();
  work.count = work.batches ? count / work.batches : 0, work.splits = splits;
  work.dtype = *dtype, work.x = x.untyped_data(), work.y = y->untyped_data();
  auto executor = device.executor(*workspace);
  if (work.dtype == RowDtype::f64) return to_error(op, packed_columns<double>(executor, work));
  if (work.dtype == RowDtype::f32) return to_error(op, packed_columns<float>(executor, work));
  return to_error(op, packed_columns_half(executor, work));
}

ffi::Error unpack(Device device, ffi::AnyBuffer data, ffi::AnyBuffer scale, ffi::AnyBuffer zero,
                  ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "unpack_columns";
  Checks checks(op);
  Weights weights(checks, data, scale, zero);
  if (checks.failed()) return checks.error();
  auto dims = data.dimensions(), in_y = y->dimensions();
  checks.require(in_y.size() == dims.size() && std::equal(dims.begin(), dims.end() - 1, in_y.begin()) &&
                     in_y.back() == weights.work.columns(),
                 "the result must have the rows of data, ", describe(dims), ", with ", weights.work.columns(),
                 " columns, got ", describe(in_y));
  if (checks.failed()) return checks.error();
  return for_float(op, "the result", y->element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, unpack_columns(device.executor(), weights.work, out<T>(y)));
  });
}

BARACUDA_TARGET(packed_columns, multiply,
                operands<4>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<int64_t>("splits"));
BARACUDA_TARGET(unpack_columns, unpack, operands<3>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
