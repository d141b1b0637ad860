// What the handlers of small matrices share: checks of x [batches..., n, n], and the dtypes, float32 and float64.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(tiny)

namespace baracuda {

inline Checks& small_matrices(Checks& checks, const char* name, const ffi::AnyBuffer& x, int largest = tiny_largest) {
  auto dims = x.dimensions();
  return checks
      .require(dims.size() >= 2 && dims[dims.size() - 1] <= largest && dims[dims.size() - 2] <= largest, name,
               " must be [batches..., m, n] with m and n of at most ", largest, ", got ", describe(dims))
      .require(x.element_type() == ffi::DataType::F32 || x.element_type() == ffi::DataType::F64, name,
               " must be float32 or float64, got type ", int(x.element_type()));
}

inline Checks& square_matrices(Checks& checks, const char* name, const ffi::AnyBuffer& x, int largest = tiny_largest) {
  auto dims = x.dimensions();
  small_matrices(checks, name, x, largest);
  return checks.require(checks.failed() || dims[dims.size() - 1] == dims[dims.size() - 2], name,
                        " must be square matrices, got ", describe(dims));
}

// That `other` is [batches of x..., sizes...].
template <class... Size>
Checks& of_batches(Checks& checks, const char* name, const ffi::AnyBuffer& other, const ffi::AnyBuffer& x,
                   Size... sizes) {
  auto dims = x.dimensions(), got = other.dimensions();
  const int64_t expected[] = {sizes...};
  size_t batches = dims.size() - 2;
  bool is_so = got.size() == batches + sizeof...(sizes) &&
               std::equal(dims.begin(), dims.begin() + batches, got.begin()) &&
               std::equal(got.begin() + batches, got.end(), expected);
  return checks.require(is_so, name, " must have the batches of ", describe(dims), ", then ",
                        describe(Dimensions(expected, sizeof...(sizes))), ", got ", describe(got));
}

// That y has the shape and the dtype of x.
inline Checks& as_large(Checks& checks, const char* name, const ffi::AnyBuffer& y, const char* other,
                        const ffi::AnyBuffer& x) {
  return checks.same_shape(name, y, other, x).same_dtype(name, y, other, x);
}

// That a [batches..., n, n] and b [batches..., n, k] are linear systems, and y has the shape of b.
inline Checks& systems(Checks& checks, const ffi::AnyBuffer& a, const ffi::AnyBuffer& b, const ffi::AnyBuffer& y) {
  square_matrices(checks, "a", a).same_dtype("b", b, "a", a).same_shape("y", y, "b", b).same_dtype("y", y, "a", a);
  small_matrices(checks, "b", b);
  return checks.failed() ? checks : of_batches(checks, "b", b, a, a.dimensions().back(), b.dimensions().back());
}

inline int64_t batches_of(const ffi::AnyBuffer& x) { return product(x.dimensions(), 0, x.dimensions().size() - 2); }
inline int side_of(const ffi::AnyBuffer& x) { return int(x.dimensions().back()); }
inline int rows_of(const ffi::AnyBuffer& x) { return int(x.dimensions()[x.dimensions().size() - 2]); }

// body(Type<T>) of the arrays' dtype, which is checked.
template <class Body>
ffi::Error for_wide(ffi::DataType dtype, const Body& body) {
  return dtype == ffi::DataType::F32 ? body(Type<float>{}) : body(Type<double>{});
}

}  // namespace baracuda
