// The FFI target that resamples one axis, or two that follow each other: x [..., in, ..., inner], and of each axis the
// first tap of each element, int32 [out], and weights [taps, out]; y has the axes' new sizes. Two axes have 1, 2, 4
// or 8 taps, both as many; `scaled` says that they are scaled (ffi/patterns/resample.h). x and y have one dtype, or one
// has that in which the other's 16 bits are computed, as what is between two calls has.
#include "handlers/target.h"
#include BARACUDA_DRIVER(resample)

namespace baracuda {
namespace {

constexpr const char* op = "resample";

template <class Sum>
Taps<Sum> taps_of(const ffi::RemainingArgs& tables, size_t axis, int64_t size) {
  auto weight = *tables.get<ffi::AnyBuffer>(2 * axis + 1);
  auto dims = weight.dimensions();
  return {in<int32_t>(*tables.get<ffi::AnyBuffer>(2 * axis)), in<Sum>(weight), size, dims[1], int(dims[0])};
}

void require_taps(Checks& checks, const ffi::AnyBuffer& begin, const ffi::AnyBuffer& weight, int64_t in, int64_t out,
                  ffi::DataType computed, bool are_few) {
  auto first = begin.dimensions(), dims = weight.dimensions();
  checks.dtype("a table of first taps", begin, ffi::DataType::S32)
      .dtype("a table of weights", weight, computed)
      .require(in < int64_t(1) << 31, "x may have 2^31 - 1 elements along an axis, got ", in)
      .require(first.size() == 1 && first[0] == out, "a table of first taps must have ", out, " elements, got ",
               describe(first))
      .require(dims.size() == 2 && dims[1] == out && 1 <= dims[0] && dims[0] <= in,
               "a table of weights must have 1 to ", in, " taps of ", out, " elements, got ", describe(dims));
  if (checks.failed() || !are_few) return;
  checks.require(dims[0] == 1 || dims[0] == 2 || dims[0] == 4 || dims[0] == 8,
                 "two axes must have 1, 2, 4 or 8 taps, got ", dims[0]);
}

void require_scaled(Checks& checks, const ffi::RemainingArgs& tables, Dimensions from, Dimensions to, size_t axis) {
  checks.require(tables.size() == 4, "scaled axes must be 2, got ", tables.size() / 2);
  if (checks.failed()) return;
  bool are_twice = to[axis] == 2 * from[axis] && to[axis + 1] == 2 * from[axis + 1];
  bool are_half = from[axis] == 2 * to[axis] && from[axis + 1] == 2 * to[axis + 1];
  int64_t taps = tables.get<ffi::AnyBuffer>(1)->dimensions()[0];
  checks.require((are_twice && (taps == 2 || taps == 4)) || (are_half && (taps == 4 || taps == 8)),
                 "scaled axes must be of twice the size and of 2 or 4 taps, or of half the size and of 4 or 8, got ",
                 describe(from), " and ", describe(to), " of ", taps, " taps");
}

// Calls body with the types of x and of the result.
template <class Body>
ffi::Error for_resampled(const ffi::AnyBuffer& x, const ffi::AnyBuffer& y, const Body& body) {
  return for_float(op, "x", x.element_type(), [&](auto of_x) {
    using T = typename decltype(of_x)::type;
    if (x.element_type() == y.element_type()) return body(of_x, of_x);
    if constexpr (is_half<T>) {
      if (y.element_type() == ffi::DataType::F32) return body(of_x, Type<float>{});
    } else if constexpr (std::is_same_v<T, float>) {
      if (y.element_type() == ffi::DataType::F16) return body(of_x, Type<Half>{});
      if (y.element_type() == ffi::DataType::BF16) return body(of_x, Type<BFloat16>{});
    }
    return invalid(op, "the result must have the dtype of x, or one of them float32 and the other 16 bits; got types ",
                   int(y.element_type()), " and ", int(x.element_type()));
  });
}

ffi::Error axes_handler(Device device, ffi::AnyBuffer x, ffi::RemainingArgs tables, ffi::Result<ffi::AnyBuffer> y,
                        int64_t inner_rank, bool scaled) {
  Checks checks(op);
  auto from = x.dimensions(), to = y->dimensions();
  size_t axes = tables.size() / 2;
  checks
      .require(tables.size() == 2 || tables.size() == 4, "expected two tables for each of 1 or 2 axes, got ",
               tables.size())
      .require(inner_rank >= 0 && from.size() >= size_t(inner_rank) + axes, "x must have ", axes,
               " dimensions before the last ", inner_rank, ", got ", describe(from));
  if (checks.failed()) return checks.error();
  size_t axis = from.size() - size_t(inner_rank) - axes;
  bool fits = to.size() == from.size();
  for (size_t i = 0; fits && i < from.size(); ++i) fits = to[i] == from[i] || (i >= axis && i < axis + axes);
  checks.require(fits, "the result must have the shape of x, ", describe(from), ", except along ", axes,
                 " dimensions before the last ", inner_rank, ", got ", describe(to));
  if (checks.failed()) return checks.error();
  int64_t outer = product(from, 0, axis), inner = product(from, axis + axes, from.size());
  if (outer * product(to, axis, axis + axes) * inner == 0) return ffi::Error::Success();
  ffi::DataType computed = wide_of(x);
  for (size_t i = 0; i < axes && !checks.failed(); ++i)
    require_taps(checks, *tables.get<ffi::AnyBuffer>(2 * i), *tables.get<ffi::AnyBuffer>(2 * i + 1), from[axis + i],
                 to[axis + i], computed, axes == 2);
  if (scaled && !checks.failed()) require_scaled(checks, tables, from, to, axis);
  if (checks.failed()) return checks.error();
  return for_resampled(x, *y, [&](auto of_x, auto of_y) {
    using T = typename decltype(of_x)::type;
    using U = typename decltype(of_y)::type;
    using Sum = Accumulator<T>;
    Taps<Sum> first = taps_of<Sum>(tables, 0, from[axis]);
    if (axes == 1)
      return to_error(op, resample(device.executor(), ResampleAxis<Sum>{first, outer, inner}, in<T>(x), out<U>(y)));
    Taps<Sum> second = taps_of<Sum>(tables, 1, from[axis + 1]);
    if (second.count != first.count)
      return invalid(op, "both axes must have as many taps, got ", first.count, " and ", second.count);
    return to_error(
        op, resample(device.executor(), ResamplePlane<Sum>{first, second, outer, inner, scaled}, in<T>(x), out<U>(y)));
  });
}

BARACUDA_TARGET(resample, axes_handler,
                operands<1>().RemainingArgs().Ret<ffi::AnyBuffer>().Attr<int64_t>("inner_rank").Attr<bool>("scaled"));

}  // namespace
}  // namespace baracuda
