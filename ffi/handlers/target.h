// BARACUDA_TARGET(name, function, binding) defines the FFI target "baracuda.name" and puts it in the module's table.
#pragma once

#include "checks.h"
#include "table.h"

// No handler waits for the device or touches the host's state, so all may be recorded in a CUDA graph.
#define BARACUDA_TARGET(NAME, FUNCTION, BINDING)                                                         \
  XLA_FFI_DEFINE_HANDLER(NAME##_handler, FUNCTION, BINDING, {::xla::ffi::Traits::kCmdBufferCompatible}); \
  static const bool NAME##_added = ::baracuda::add_target("baracuda." #NAME, NAME##_handler)
