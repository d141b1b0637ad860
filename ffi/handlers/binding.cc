// Finds what handlers take of calls.
#include "binding.h"

#include <string>

namespace baracuda::internal {
namespace {

XLA_FFI_Error* refuse(XLA_FFI_CallFrame* call, const std::string& message) {
  return ffi::internal::CreateError(call->api, ffi::Error(ffi::ErrorCode::kInvalidArgument, message));
}

// Its value, or null if it is not there or another type.
const void* attribute(const XLA_FFI_Attrs& attributes, const TakenPart& taken) {
  std::string_view name = taken.name;
  for (int64_t i = 0; i < attributes.size; ++i) {
    if (std::string_view(attributes.names[i]->ptr, attributes.names[i]->len) != name) continue;
    const void* value = attributes.attrs[i];
    auto scalar = [&](XLA_FFI_DataType dtype) -> const void* {
      auto number = static_cast<const XLA_FFI_Scalar*>(value);
      return attributes.types[i] == XLA_FFI_AttrType_SCALAR && number->dtype == dtype ? number->value : nullptr;
    };
    if (taken.kind == Taken::boolean) return scalar(XLA_FFI_DataType_PRED);
    if (taken.kind == Taken::integer) return scalar(XLA_FFI_DataType_S64);
    if (taken.kind == Taken::real) return scalar(XLA_FFI_DataType_F64);
    if (taken.kind == Taken::text) return attributes.types[i] == XLA_FFI_AttrType_STRING ? value : nullptr;
    bool is_array = attributes.types[i] == XLA_FFI_AttrType_ARRAY &&
                    static_cast<const XLA_FFI_Array*>(value)->dtype == XLA_FFI_DataType_S64;
    return is_array ? value : nullptr;
  }
  return nullptr;
}

}  // namespace

bool find_parts(XLA_FFI_CallFrame* call, const TakenPart* taken, int count, CallParts& parts) {
  // Versions, traits and stages are as XLA has them. No handler waits for the device or touches the host's state, so
  // all may be recorded in a CUDA graph.
  static const auto* plain =
      ffi::Ffi::Bind().To([] { return ffi::Error::Success(); }, {ffi::Traits::kCmdBufferCompatible}).release();
  if ((parts.error = plain->Call(call)) != nullptr) return false;
  if (call->extension_start != nullptr && call->extension_start->type == XLA_FFI_Extension_Metadata) return false;
  int64_t attributes = 0;
  bool more_operands = false, more_results = false, all_attributes = false;
  for (int i = 0; i < count; ++i) {
    auto fails = [&](const std::string& what) {
      parts.error = refuse(call, what);
      return false;
    };
    const void*& found = parts.found[i];
    switch (taken[i].kind) {
      case Taken::device: {
        ffi::DiagnosticEngine diagnostic;
        if (auto device = ffi::CtxDecoding<Device>::Decode(call->api, call->ctx, diagnostic))
          parts.device.emplace(*device);
        if (!parts.device) return fails(std::move(diagnostic).Result());
        break;
      }
      case Taken::operand:
        if (parts.operands >= call->args.size || call->args.types[parts.operands] != XLA_FFI_ArgType_BUFFER)
          return fails("operand " + std::to_string(parts.operands) + " is missing");
        found = call->args.args[parts.operands++];
        break;
      case Taken::result:
        if (parts.results >= call->rets.size || call->rets.types[parts.results] != XLA_FFI_RetType_BUFFER)
          return fails("result " + std::to_string(parts.results) + " is missing");
        found = call->rets.rets[parts.results++];
        break;
      case Taken::operands:
        more_operands = true;
        break;
      case Taken::results:
        more_results = true;
        break;
      case Taken::attributes:
        all_attributes = true;
        break;
      default:
        ++attributes;
        found = attribute(call->attrs, taken[i]);
        if (found == nullptr)
          return fails(std::string("attribute ") + taken[i].name + " is missing, or of another type");
    }
  }
  auto exactly = [&](const char* what, int64_t expected, int64_t came, bool or_more) {
    if (came == expected || or_more) return true;
    parts.error = refuse(call, "expected " + std::to_string(expected) + " " + what + ", got " + std::to_string(came));
    return false;
  };
  return exactly("operands", parts.operands, call->args.size, more_operands) &&
         exactly("results", parts.results, call->rets.size, more_results) &&
         exactly("attributes", attributes, call->attrs.size, all_attributes || attributes == 0);
}

XLA_FFI_Error* error_of(XLA_FFI_CallFrame* call, const ffi::Error& error) {
  return error.success() ? nullptr : ffi::internal::CreateError(call->api, error);
}

}  // namespace baracuda::internal
