// Reductions of integers and bool, and FFI targets of counts.
#include "reduce.h"

#include "kernels/reduce/sum.h"

namespace baracuda {
namespace {

// Integers and bool as elements of so many bytes.
template <class Body>
ffi::Error for_element(int bytes, const Body& body) {
  if (bytes == 1) return body(uint8_t{});
  if (bytes == 2) return body(uint16_t{});
  if (bytes == 4) return body(uint32_t{});
  return body(uint64_t{});
}

bool is_signed(ffi::DataType dtype) {
  return dtype == ffi::DataType::S8 || dtype == ffi::DataType::S16 || dtype == ffi::DataType::S32 ||
         dtype == ffi::DataType::S64;
}

}  // namespace

ffi::Error reduce_integers(const Reducing& reducing, Device& device, const Array& workspace, Output& y, Counting what) {
  ffi::DataType dtype = reducing.x.element_type();
  if (dtype == ffi::DataType::C64 || dtype == ffi::DataType::C128 || width_of(dtype) > 8)
    return invalid(reducing.op, "operand must be bool, a float or an integer of 8 to 64 bits, got type ", int(dtype));
  return for_element(width_of(dtype), [&](auto element) {
    using Element = decltype(element);
    Element high = Element(Element(1) << (8 * sizeof(Element) - 1)), all = Element(~Element(0));
    ReduceIntegers<Element> reducer{y->untyped_data(),
                                    width_of(y->element_type()),
                                    what,
                                    is_signed(dtype) ? high : Element(0),
                                    is_inexact(dtype) ? Element(all ^ high) : all,
                                    uint64_t(reducing.shape.count)};
    return reducing.reduce(device, workspace, reducer);
  });
}

namespace {

// How many elements are not zero, whether any is, or all are.
ffi::Error count_handler(Device device, Array x, Output workspace, Output y, int64_t rank, std::string_view what) {
  Reducing reducing("reduce_count", "operand", x, "the result", *y, rank);
  reducing.checks
      .require(what == "count" || what == "any" || what == "all", "what must be count, any or all, got ", what)
      .require(what == "count" ? !is_inexact(y->element_type()) : y->element_type() == ffi::DataType::PRED,
               "the result must be an integer for count and bool for any and all, got type ", int(y->element_type()));
  if (reducing.checks.failed()) return reducing.checks.error();
  Counting counting = what == "count" ? Counting::count : what == "any" ? Counting::any : Counting::all;
  return reduce_integers(reducing, device, *workspace, y, counting);
}

BARACUDA_TARGET(reduce_count, count_handler, reduced().Attr<int64_t>("rank").Attr<std::string_view>("what"));

}  // namespace
}  // namespace baracuda
