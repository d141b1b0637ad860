// Messages of checks that fail.
#include "checks.h"

#include <algorithm>
#include <charconv>

namespace baracuda {

void Part::append_to(std::string& message) const {
  switch (kind_) {
    case Kind::text:
      message.append(text_, size_);
      break;
    case Kind::real: {
      // Not by a stream: its digits depend on the locale of the process, and on the copy of the standard library that
      // other modules may have loaded.
      char digits[32];
      message.append(digits, std::to_chars(digits, digits + sizeof(digits), real_).ptr);
      break;
    }
    case Kind::integer:
      message += std::to_string(integer_);
      break;
    case Kind::dimensions:
      message += "[";
      for (size_t i = 0; i < size_; ++i) message.append(i ? ", " : "").append(std::to_string(dims_[i]));
      message += "]";
  }
}

ffi::Error invalid_of(const char* op, std::initializer_list<Part> parts) {
  std::string text = std::string(op) + ": ";
  for (const Part& part : parts) part.append_to(text);
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, std::move(text));
}

ffi::Error to_error(const char* op, Status status) {
  if (status.ok()) return ffi::Error::Success();
  return ffi::Error(ffi::ErrorCode::kInternal, std::string(op) + ": " + status.error);
}

void Checks::fail(std::initializer_list<Part> parts) { error_ = invalid_of(op_, parts); }

Checks& Checks::same_shape(const char* name, const ffi::AnyBuffer& a, const char* other, const ffi::AnyBuffer& b) {
  auto x = a.dimensions(), y = b.dimensions();
  return require(std::equal(x.begin(), x.end(), y.begin(), y.end()), name, " must have the shape of ", other, ", ",
                 describe(y), ", got ", describe(x));
}

Checks& Checks::same_dtype(const char* name, const ffi::AnyBuffer& a, const char* other, const ffi::AnyBuffer& b) {
  return require(a.element_type() == b.element_type(), name, " must have the dtype of ", other, ", got type ",
                 int(a.element_type()), " and ", int(b.element_type()));
}

Checks& Checks::dtype(const char* name, const ffi::AnyBuffer& a, ffi::DataType expected) {
  return require(a.element_type() == expected, name, " must be of type ", int(expected), ", got ",
                 int(a.element_type()));
}

}  // namespace baracuda
