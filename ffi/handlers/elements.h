// Elements that are moved as they are: what matters is how many bytes go at a time.
#pragma once

#include <cstring>

#include "checks.h"

namespace baracuda {

// Of one element; 0 for types that no kernel here knows.
inline int64_t bytes_of(ffi::DataType dtype) {
#define BARACUDA_BYTES(NAME, TYPE) \
  case ffi::DataType::NAME:        \
    return sizeof(TYPE);
  switch (dtype) {
    BARACUDA_FLOATS(BARACUDA_BYTES)
    BARACUDA_INTEGERS(BARACUDA_BYTES)
    case ffi::DataType::PRED:
      return 1;
    case ffi::DataType::C64:
      return 8;
    case ffi::DataType::C128:
      return 16;
    default:
      return 0;
  }
#undef BARACUDA_BYTES
}

inline void require_elements(Checks& checks, const char* name, const ffi::AnyBuffer& x) {
  checks.require(bytes_of(x.element_type()) > 0, name,
                 " must be bool, a float, an integer of 8 to 64 bits or complex, got type ", int(x.element_type()));
}

// body(element) with the widest element of which there is a whole number in so many bytes.
template <class Body>
Status for_element(int64_t bytes, const Body& body) {
  if (bytes % 16 == 0) return body(Vector<uint32_t, 4>{});
  if (bytes % 8 == 0) return body(uint64_t{});
  if (bytes % 4 == 0) return body(uint32_t{});
  if (bytes % 2 == 0) return body(uint16_t{});
  return body(uint8_t{});
}

// A fill value of so many bytes, as often as there is room for it.
template <class Wide>
Wide filled(const int64_t* bits, int64_t bytes) {
  char pattern[sizeof(Wide)];
  for (int64_t i = 0; i < int64_t(sizeof(Wide)); i += bytes) memcpy(pattern + i, bits, size_t(bytes));
  Wide wide;
  memcpy(&wide, pattern, sizeof(Wide));
  return wide;
}

}  // namespace baracuda
