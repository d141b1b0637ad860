// FFI targets of items with slots: rows are [batches..., r, d], items [batches..., t, d], weights [batches..., t, k];
// what says which rows the slots name may have fewer batches.
#include "target.h"
#include BARACUDA_DRIVER(slots)

namespace baracuda {
namespace {

struct SlotArguments {
  const ffi::AnyBuffer &rows, &items, &row, &weights;
  std::optional<ffi::AnyBuffer> owner;
  SlotShape shape{};

  std::optional<ffi::Error> problem(const char* op) {
    Checks checks(op);
    auto x = rows.dimensions(), y = items.dimensions(), r = row.dimensions(), w = weights.dimensions();
    checks.same_dtype("items", items, "rows", rows)
        .dtype("row", row, ffi::DataType::U32)
        .dtype("weights", weights, wide_of(rows))
        .require(x.size() >= 2, "rows must have rank 2 or more, got ", describe(x))
        .require(x.size() == y.size() && std::equal(x.begin(), x.end() - 2, y.begin()) && x.back() == y.back(),
                 "items must have the batches and columns of rows, ", describe(x), ", got ", describe(y))
        .require(r.size() >= 2 && r.size() <= x.size() && std::equal(r.begin(), r.end() - 2, x.begin()) &&
                     r[r.size() - 2] == y[y.size() - 2],
                 "row must be batches of items, ", describe(y), ", their number and slots, got ", describe(r))
        .require(w.size() == x.size() && std::equal(x.begin(), x.end() - 2, w.begin()) &&
                     std::equal(r.end() - 2, r.end(), w.end() - 2),
                 "weights must have the batches of items, ", describe(y), ", and be for the slots of row, ",
                 describe(r), ", got ", describe(w));
    if (!checks.failed() && owner) {
      auto o = owner->dimensions();
      checks.dtype("owner", *owner, ffi::DataType::S32)
          .require(
              o.size() == r.size() - 1 && std::equal(o.begin(), o.end() - 1, r.begin()) && o.back() == x[x.size() - 2],
              "owner must have the batches of row, ", describe(r), ", and the number of rows, got ", describe(o));
    }
    if (checks.failed()) return checks.error();
    int64_t batches = product(x, 0, x.size() - 2), shared = product(r, 0, r.size() - 2);
    shape = {batches, y[y.size() - 2], r.back(), x[x.size() - 2], x.back(), shared > 0 ? batches / shared : 1};
    return std::nullopt;
  }

  template <class T>
  Slots<T> slots() const {
    return {shape, in<uint32_t>(row), owner ? in<int32_t>(*owner) : nullptr, in<Accumulator<T>>(weights)};
  }
};

ffi::Error sum_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer row, ffi::AnyBuffer weights,
                       ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "slot_sum";
  SlotArguments arguments{x, *y, row, weights, {}};
  if (auto problem = arguments.problem(op)) return *problem;
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, slot_sum(device.executor(), arguments.slots<T>(), in<T>(x), out<T>(y)));
  });
}

ffi::Error spread_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer row, ffi::AnyBuffer owner,
                          ffi::AnyBuffer weights, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "slot_spread";
  SlotArguments arguments{*y, x, row, weights, owner};
  if (auto problem = arguments.problem(op)) return *problem;
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, slot_spread(device.executor(), arguments.slots<T>(), in<T>(x), out<T>(y)));
  });
}

ffi::Error gradient_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer row, ffi::AnyBuffer owner,
                            ffi::AnyBuffer weights, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx,
                            ffi::Result<ffi::AnyBuffer> dots) {
  constexpr const char* op = "slot_gradient";
  SlotArguments arguments{x, dy, row, weights, owner};
  if (auto problem = arguments.problem(op)) return *problem;
  Checks checks(op);
  checks.same_shape("dx", *dx, "x", x)
      .same_dtype("dx", *dx, "x", x)
      .same_shape("dots", *dots, "weights", weights)
      .same_dtype("dots", *dots, "weights", weights);
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, slot_gradient(device.executor(), arguments.slots<T>(), in<T>(x), in<T>(dy), out<T>(dx),
                                      out<Accumulator<T>>(dots)));
  });
}

BARACUDA_TARGET(slot_sum, sum_handler, operands<3>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(slot_spread, spread_handler, operands<4>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(slot_gradient, gradient_handler, operands<5>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
