// What a handler takes of a call: BARACUDA_TARGET's third argument. XLA's own binding is a template with all its errors
// in it, which took half of what a small handler took to compile; here the parts of a call are found by code that is
// compiled once.
#pragma once

#include <string_view>

#include "backend.h"

namespace baracuda {

// `operands`, `results` and `attributes`: all that are not taken one by one.
enum class Taken : uint8_t {
  device,
  operand,
  operands,
  result,
  results,
  boolean,
  integer,
  real,
  text,
  integers,
  attributes
};

struct TakenPart {
  Taken kind;
  const char* name = nullptr;
};

namespace internal {

// Where the parts of a call are: `found[i]` is what `taken[i]` takes.
struct CallParts {
  const void** found;
  std::optional<Device> device = {};
  int64_t operands = 0, results = 0;  // that are taken one by one
  XLA_FFI_Error* error = nullptr;
};
// Whether the handler is to be called. If not, `error` says what is wrong, or is null for a question about the handler.
bool find_parts(XLA_FFI_CallFrame* call, const TakenPart* taken, int count, CallParts& parts);
XLA_FFI_Error* error_of(XLA_FFI_CallFrame* call, const ffi::Error& error);

template <class T>
constexpr Taken kind_of() {
  if constexpr (std::is_same_v<T, bool>) return Taken::boolean;
  if constexpr (std::is_same_v<T, int64_t>) return Taken::integer;
  if constexpr (std::is_same_v<T, double>) return Taken::real;
  if constexpr (std::is_same_v<T, std::string_view>) return Taken::text;
  if constexpr (std::is_same_v<T, ffi::Span<const int64_t>>) return Taken::integers;
}

template <Taken kind>
auto part(XLA_FFI_CallFrame* call, const CallParts& parts, int i) {
  const void* found = parts.found[i];
  if constexpr (kind == Taken::device)
    return *parts.device;
  else if constexpr (kind == Taken::operand)
    return ffi::AnyBuffer(static_cast<const XLA_FFI_Buffer*>(found));
  else if constexpr (kind == Taken::result)
    return ffi::Result<ffi::AnyBuffer>(ffi::AnyBuffer(static_cast<const XLA_FFI_Buffer*>(found)));
  else if constexpr (kind == Taken::operands)
    return ffi::RemainingArgs(&call->args, size_t(parts.operands));
  else if constexpr (kind == Taken::results)
    return ffi::RemainingRets(&call->rets, size_t(parts.results));
  else if constexpr (kind == Taken::boolean)
    return *static_cast<const bool*>(found);
  else if constexpr (kind == Taken::integer)
    return *static_cast<const int64_t*>(found);
  else if constexpr (kind == Taken::real)
    return *static_cast<const double*>(found);
  else if constexpr (kind == Taken::text) {
    auto text = static_cast<const XLA_FFI_ByteSpan*>(found);
    return std::string_view(text->ptr, text->len);
  } else if constexpr (kind == Taken::integers) {
    auto array = static_cast<const XLA_FFI_Array*>(found);
    return ffi::Span<const int64_t>(static_cast<const int64_t*>(array->data), array->size);
  } else {
    return ffi::Dictionary(&call->attrs);
  }
}

}  // namespace internal

// `operands<2>().Ret<ffi::AnyBuffer>().Attr<bool>("exact")`, in the order of the handler's arguments.
template <Taken... kinds>
struct Binding {
  TakenPart taken[sizeof...(kinds)];

  template <Taken kind>
  constexpr Binding<kinds..., kind> with(const char* name = nullptr) const {
    Binding<kinds..., kind> longer{};
    for (size_t i = 0; i < sizeof...(kinds); ++i) longer.taken[i] = taken[i];
    longer.taken[sizeof...(kinds)] = {kind, name};
    return longer;
  }
  template <class>
  constexpr auto Arg() const {
    return with<Taken::operand>();
  }
  template <class>
  constexpr auto Ret() const {
    return with<Taken::result>();
  }
  constexpr auto RemainingArgs() const { return with<Taken::operands>(); }
  constexpr auto RemainingRets() const { return with<Taken::results>(); }
  template <class T>
  constexpr auto Attr(const char* name) const {
    return with<internal::kind_of<T>()>(name);
  }
  constexpr auto Attrs() const { return with<Taken::attributes>(); }

  template <class Function>
  XLA_FFI_Error* call(XLA_FFI_CallFrame* frame, const Function& function) const {
    return call(frame, function, std::make_integer_sequence<int, sizeof...(kinds)>());
  }

 private:
  template <class Function, int... i>
  XLA_FFI_Error* call(XLA_FFI_CallFrame* frame, const Function& function, std::integer_sequence<int, i...>) const {
    const void* found[sizeof...(kinds)];
    internal::CallParts parts{found};
    if (!internal::find_parts(frame, taken, sizeof...(kinds), parts)) return parts.error;
    return internal::error_of(frame, function(internal::part<kinds>(frame, parts, i)...));
  }
};

// The binding of a handler with so many operands.
template <int count>
constexpr auto operands() {
  if constexpr (count == 0)
    return Binding<Taken::device>{{{Taken::device}}};
  else
    return operands<count - 1>().template Arg<ffi::AnyBuffer>();
}

}  // namespace baracuda
