// Checks that FFI targets of scans over states share. The first operand's dimensions before `lead` are those of
// batches; other operands fit it and B.
#pragma once

#include <algorithm>
#include <vector>

#include "handlers/saved.h"
#include "handlers/target.h"

namespace baracuda {

struct RequireFit {
  Checks& checks;
  const char* name;
  const ffi::AnyBuffer &x, &b;
  size_t lead;

  // `rest` are the dimensions after the batches; where an operand may be none, the last one may be 0.
  void operator()(const char* other_name, const ffi::AnyBuffer& other, ffi::DataType dtype,
                  std::initializer_list<int64_t> rest, bool may_be_none = false) const {
    Dimensions d = x.dimensions(), dims = other.dimensions();
    size_t same = rest.size() - may_be_none;
    bool fits = dims.size() == lead + rest.size() && std::equal(d.begin(), d.begin() + lead, dims.begin()) &&
                std::equal(rest.begin(), rest.begin() + same, dims.begin() + lead) &&
                (!may_be_none || dims.back() == *(rest.end() - 1) || dims.back() == 0);
    checks.dtype(other_name, other, dtype)
        .require(fits, other_name, " must fit ", name, " ", describe(d), " and B ", describe(b.dimensions()), ", got ",
                 describe(dims));
  }
};

// The states before each chunk.
template <class Array>
void require_saved(Checks& checks, const Array& states, ffi::DataType dtype, const std::vector<int64_t>& expected) {
  auto dims = states.dimensions();
  checks.dtype("the saved states", states, dtype)
      .require(dims.size() == expected.size() && std::equal(dims.begin(), dims.end(), expected.begin()),
               "the saved states must be those before each chunk, ", describe({expected.data(), expected.size()}),
               ", got ", describe(dims));
}

// The results after y, where they are asked for: the last state, and the states before each chunk.
struct MoreStates {
  void *last = nullptr, *saved = nullptr;
};
template <class Arguments>
MoreStates require_more(Checks& checks, const Arguments& of, ffi::RemainingRets more) {
  checks.require(more.size() == 0 || more.size() == 2, "expected one or three results, got ", more.size() + 1);
  if (more.size() == 0 || checks.failed()) return {};
  auto last = more.get<ffi::AnyBuffer>(0), saved = more.get<ffi::AnyBuffer>(1);
  checks.require(last.has_value() && saved.has_value(), "the results must be arrays");
  if (checks.failed()) return {};
  checks.same_shape("the last state", **last, "the state", of.state).same_dtype("the last state", **last, "A", of.a);
  of.check_saved(checks, **saved);
  return {(*last)->untyped_data(), (*saved)->untyped_data()};
}

// Cotangents, and gradients in the order of operands: all like what they belong to.
template <class Arguments>
void require_gradients(Checks& checks, const char* name, const ffi::AnyBuffer& x, const Arguments& of,
                       const ffi::AnyBuffer& dy, const ffi::AnyBuffer& dfinal,
                       const std::vector<ffi::AnyBuffer>& gradients) {
  auto like = [&](const std::string& gradient, const ffi::AnyBuffer& array, const char* other,
                  const ffi::AnyBuffer& value) {
    checks.same_shape(gradient.c_str(), array, other, value).same_dtype(gradient.c_str(), array, other, value);
  };
  const ffi::AnyBuffer* values[] = {&x, &of.dt, &of.a, &of.b, &of.c, &of.skip, &of.z, &of.bias, &of.state};
  const char* names[] = {name, "dt", "A", "B", "C", "D", "z", "the bias", "the state"};
  like("dy", dy, name, x), like("dfinal", dfinal, "the state", of.state);
  for (size_t i = 0; i < gradients.size(); ++i)
    like(std::string("the gradient of ") + names[i], gradients[i], names[i], *values[i]);
}

}  // namespace baracuda
