// Checks of what a caller of an FFI target sends, and the choice of a kernel by dtype. Errors name the op, what was
// expected and what came.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "../kernels/complex.h"
#include "backend.h"

namespace baracuda {

using Dimensions = ffi::Span<const int64_t>;

// A part of a message, which is put together only where there is an error.
class Part {
 public:
  Part(std::string_view text) : kind_(Kind::text), text_(text.data()), size_(text.size()) {}
  Part(const char* text) : Part(std::string_view(text)) {}
  Part(const std::string& text) : Part(std::string_view(text)) {}
  Part(std::floating_point auto number) : kind_(Kind::real), real_(number) {}
  Part(std::integral auto number) : kind_(Kind::integer), integer_(int64_t(number)) {}
  Part(Dimensions dims) : kind_(Kind::dimensions), dims_(dims.begin()), size_(dims.size()) {}

  void append_to(std::string& message) const;

 private:
  enum class Kind : uint8_t { text, real, integer, dimensions } kind_;
  union {
    const char* text_;
    double real_;
    int64_t integer_;
    const int64_t* dims_;
  };
  size_t size_ = 0;
};

ffi::Error invalid_of(const char* op, std::initializer_list<Part> parts);
template <class... Parts>
ffi::Error invalid(const char* op, Parts... parts) {
  return invalid_of(op, {Part(parts)...});
}

ffi::Error to_error(const char* op, Status status);

template <class T>
const T* in(const ffi::AnyBuffer& array) {
  return static_cast<const T*>(array.untyped_data());
}
template <class T>
T* out(ffi::Result<ffi::AnyBuffer>& array) {
  return static_cast<T*>(array->untyped_data());
}

// Dimensions as a part of a message.
inline Dimensions describe(Dimensions dims) { return dims; }

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
  Checks& require(bool holds, Parts... parts) {
    if (!holds && !error_) fail({Part(parts)...});
    return *this;
  }
  Checks& same_shape(const char* name, const ffi::AnyBuffer& a, const char* other, const ffi::AnyBuffer& b);
  Checks& same_dtype(const char* name, const ffi::AnyBuffer& a, const char* other, const ffi::AnyBuffer& b);
  Checks& dtype(const char* name, const ffi::AnyBuffer& a, ffi::DataType expected);
  bool failed() const { return error_.has_value(); }
  ffi::Error error() const { return *error_; }

 private:
  void fail(std::initializer_list<Part> parts);

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
