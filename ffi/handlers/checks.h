// Checks of what a caller of an FFI target sends, and the choice of a kernel by dtype. Errors name the op, what was
// expected and what came.
#pragma once

#include <charconv>
#include <string>

#include "../kernels/complex.h"
#include "backend.h"

namespace baracuda {

// Not by a stream: its digits depend on the locale of the process, and on the copy of the standard library that other
// modules may have loaded.
template <class Part>
void append(std::string& text, const Part& part) {
  if constexpr (std::is_floating_point_v<Part>) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof(digits), part).ptr);
  } else if constexpr (std::is_integral_v<Part>) {
    text += std::to_string(part);
  } else {
    text += part;
  }
}

template <class... Parts>
ffi::Error invalid(const char* op, const Parts&... parts) {
  std::string text = std::string(op) + ": ";
  (append(text, parts), ...);
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, std::move(text));
}

inline ffi::Error to_error(const char* op, Status status) {
  if (status.ok()) return ffi::Error::Success();
  return ffi::Error(ffi::ErrorCode::kInternal, std::string(op) + ": " + status.error);
}

template <class T>
const T* in(const ffi::AnyBuffer& array) {
  return static_cast<const T*>(array.untyped_data());
}
template <class T>
T* out(ffi::Result<ffi::AnyBuffer>& array) {
  return static_cast<T*>(array->untyped_data());
}

using Dimensions = ffi::Span<const int64_t>;

inline std::string describe(Dimensions dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text.append(i ? ", " : "").append(std::to_string(dims[i]));
  return text.append("]");
}

inline int64_t product(Dimensions dims, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= dims[i];
  return count;
}

// What sums of an array's elements are computed in.
inline ffi::DataType wide_of(const ffi::AnyBuffer& array) {
  return array.element_type() == ffi::DataType::F64 ? ffi::DataType::F64 : ffi::DataType::F32;
}

// A list of checks that keeps the first that fails.
class Checks {
 public:
  explicit Checks(const char* op) : op_(op) {}
  template <class... Parts>
  Checks& require(bool holds, const Parts&... parts) {
    if (!holds && !error_) error_ = invalid(op_, parts...);
    return *this;
  }
  template <class A, class B>
  Checks& same_shape(const char* name, const A& a, const char* other, const B& b) {
    auto x = a.dimensions(), y = b.dimensions();
    return require(x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin()), name, " must have the shape of ",
                   other, ", ", describe(y), ", got ", describe(x));
  }
  template <class A, class B>
  Checks& same_dtype(const char* name, const A& a, const char* other, const B& b) {
    return require(a.element_type() == b.element_type(), name, " must have the dtype of ", other, ", got type ",
                   int(a.element_type()), " and ", int(b.element_type()));
  }
  template <class A>
  Checks& dtype(const char* name, const A& a, ffi::DataType expected) {
    return require(a.element_type() == expected, name, " must be of type ", int(expected), ", got ",
                   int(a.element_type()));
  }
  bool failed() const { return error_.has_value(); }
  ffi::Error error() const { return *error_; }

 private:
  const char* op_;
  std::optional<ffi::Error> error_;
};

template <class T>
struct Type {
  using type = T;
};

#define BARACUDA_FLOATS(CASE) CASE(F32, float) CASE(F64, double) CASE(F16, Half) CASE(BF16, BFloat16)
#define BARACUDA_INTEGERS(CASE) \
  CASE(S8, int8_t)              \
  CASE(S16, int16_t)            \
  CASE(S32, int32_t) CASE(S64, int64_t) CASE(U8, uint8_t) CASE(U16, uint16_t) CASE(U32, uint32_t) CASE(U64, uint64_t)
#define BARACUDA_CASE(NAME, TYPE) \
  case ffi::DataType::NAME:       \
    return body(Type<TYPE>{});

template <class Body>
ffi::Error for_float(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  switch (dtype) {
    BARACUDA_FLOATS(BARACUDA_CASE)
    default:
      return invalid(op, argument, " must be float16, bfloat16, float32 or float64, got type ", int(dtype));
  }
}

template <class Body>
ffi::Error for_inexact(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  switch (dtype) {
    BARACUDA_FLOATS(BARACUDA_CASE)
    BARACUDA_CASE(C64, Complex<float>)
    BARACUDA_CASE(C128, Complex<double>)
    default:
      return invalid(op, argument, " must be a float or complex, got type ", int(dtype));
  }
}

template <class Body>
ffi::Error for_number(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  switch (dtype) {
    BARACUDA_FLOATS(BARACUDA_CASE)
    BARACUDA_INTEGERS(BARACUDA_CASE)
    default:
      return invalid(op, argument, " must be a float or an integer of 8 to 64 bits, got type ", int(dtype));
  }
}

// A number, or the byte that a bool is.
template <class Body>
ffi::Error for_key(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  if (dtype == ffi::DataType::PRED) return body(Type<uint8_t>{});
  return for_number(op, argument, dtype, body);
}

template <class Body>
ffi::Error for_index(const char* op, const char* argument, ffi::DataType dtype, const Body& body) {
  switch (dtype) {
    BARACUDA_CASE(S32, int32_t)
    BARACUDA_CASE(S64, int64_t)
    default:
      return invalid(op, argument, " must be int32 or int64, got type ", int(dtype));
  }
}

}  // namespace baracuda
