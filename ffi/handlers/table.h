// The table of a module's FFI targets.
#pragma once

#include <utility>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace baracuda {

using Targets = std::vector<std::pair<const char*, XLA_FFI_Handler*>>;
Targets& targets();

inline bool add_target(const char* name, XLA_FFI_Handler* handler) {
  targets().emplace_back(name, handler);
  return true;
}

}  // namespace baracuda
