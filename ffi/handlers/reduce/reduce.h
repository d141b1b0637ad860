// What FFI targets of reductions share. Operands are [batches..., n_1, k_1, n_2, ...], of whose last `rank` dimensions
// the first is reduced, the second kept, and so on; results are [batches..., k_1, ...]. Gradients are shaped like
// operands.
#pragma once

#include "handlers/saved.h"
#include "handlers/target.h"
#include "kernels/reduce/sum.h"
#include BARACUDA_DRIVER(reduce)

namespace baracuda {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

// The shapes of what is reduced and what it comes to.
struct Reducing {
  const char* op;
  Checks checks;
  const char* names[2];
  const Array &x, &y;
  ReduceShape shape;

  Reducing(const char* op, const char* x_name, const Array& x, const char* y_name, const Array& y, int64_t rank)
      : op(op), checks(op), names{x_name, y_name}, x(x), y(y) {
    auto full = x.dimensions(), kept = y.dimensions();
    int64_t batches = int64_t(full.size()) - rank;
    checks
        .require(1 <= rank && rank <= ElementDimensions::most, "rank must be in [1, ", ElementDimensions::most,
                 "], got ", rank)
        .require(batches >= 0, x_name, " must have rank ", rank, " or more, got ", describe(full));
    if (checks.failed()) return;
    bool fits = int64_t(kept.size()) == batches + rank / 2;
    for (int64_t d = 0; fits && d < int64_t(kept.size()); ++d)
      fits = kept[d] == full[d < batches ? d : batches + 2 * (d - batches) + 1];
    checks.require(fits, y_name, " must have the dimensions of ", x_name, ", ", describe(full), ", that are kept, got ",
                   describe(kept));
    if (checks.failed()) return;
    shape = ReduceShape(product(full, 0, batches), full.begin() + batches, int(rank));
  }

  // Slices of another kind.
  Reducing(const char* op, const Array& x, const Array& y, const ReduceShape& shape)
      : op(op), checks(op), names{"operand", "the result"}, x(x), y(y), shape(shape) {}

  // Another array of which each slice has an element.
  Reducing& per_slice(const char* name, const Array& array) {
    checks.same_shape(name, array, names[1], y);
    return *this;
  }
  template <class Reducer>
  ffi::Error reduce(Device& device, const Array& workspace, const Reducer& reducer) const {
    return to_error(op, reduce_slices(device.executor(workspace), reducer, shape, in<typename Reducer::Element>(x)));
  }
  // dx is x in this shape.
  template <class Broadcaster>
  ffi::Error broadcast(Device& device, const Broadcaster& broadcaster, const Array& from, Output& dx) const {
    using T = typename Broadcaster::Element;
    return to_error(op, broadcast_slices(device.executor(), broadcaster, shape, in<T>(from), out<T>(dx)));
  }
};

// The sum, or the mean, of floats, complex numbers, integers or bool; or of the magnitudes of floats.
ffi::Error sum(Reducing reducing, Device& device, const Array& workspace, Output& y, double divisor,
               bool magnitudes = false);

// The p-th root of the sum of |x|^p; `more` may have a result for it before it is rounded.
ffi::Error norm_of_powers(Reducing reducing, Device& device, const Array& workspace, Output& y, ffi::RemainingRets more,
                          double p);

// The array that a target returns after its first result when a gradient or the caller needs it, or null.
template <class T>
ffi::ErrorOr<T*> saved(Reducing& reducing, ffi::RemainingRets& more, size_t position, const char* name,
                       ffi::DataType dtype) {
  auto array = more.get<Array>(position);
  if (array.has_error()) return ffi::Unexpected(array.error());
  reducing.per_slice(name, **array);
  reducing.checks.dtype(name, **array, dtype);
  if (reducing.checks.failed()) return ffi::Unexpected(reducing.checks.error());
  return out<T>(*array);
}

// The only array that a target may return next to its first result, in the dtype that is computed in; or null.
template <class T>
ffi::ErrorOr<Comparable<T>*> saved_wide(Reducing& reducing, ffi::RemainingRets& more, const char* name) {
  reducing.checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (reducing.checks.failed()) return ffi::Unexpected(reducing.checks.error());
  if (more.size() == 0) return static_cast<Comparable<T>*>(nullptr);
  return saved<Comparable<T>>(reducing, more, 0, name, wide(reducing.x.element_type()));
}

inline int width_of(ffi::DataType dtype) { return int(ffi::ByteWidth(dtype)); }

inline bool is_inexact(ffi::DataType dtype) {
  switch (dtype) {
#define BARACUDA_FLOAT(NAME, TYPE) case ffi::DataType::NAME:
    BARACUDA_FLOATS(BARACUDA_FLOAT)
#undef BARACUDA_FLOAT
    case ffi::DataType::C64:
    case ffi::DataType::C128:
      return true;
    default:
      return false;
  }
}

// Floats and complex numbers keep their dtype; integers and bool come to integers.
inline Reducing& check_result(Reducing& reducing) {
  ffi::DataType dtype = reducing.y.element_type();
  if (is_inexact(reducing.x.element_type()))
    reducing.checks.same_dtype("the result", reducing.y, "operand", reducing.x);
  else
    reducing.checks.require(!is_inexact(dtype) && dtype != ffi::DataType::PRED && width_of(dtype) > 0,
                            "the result must be an integer, got type ", int(dtype));
  return reducing;
}

// Of integers and bool, or of elements that are counted.
ffi::Error reduce_integers(const Reducing& reducing, Device& device, const Array& workspace, Output& y, Counting what);

// The workspace and the first result.
inline auto reduced() { return operands<1>().Ret<Array>().Ret<Array>(); }

}  // namespace baracuda
