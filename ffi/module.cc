// The Python module of one backend: its table of FFI targets, and what it was built for.
#include <nanobind/nanobind.h>

#include "handlers/table.h"

#ifdef BARACUDA_CUDA
#define BARACUDA_MODULE _cuda
#define BARACUDA_BUILT_FOR "CUDA " BARACUDA_CUDA_VERSION ", architectures " BARACUDA_ARCHITECTURES
#else
#define BARACUDA_MODULE _cpu
#define BARACUDA_BUILT_FOR "CPU, " BARACUDA_ARCHITECTURES
#endif

namespace nb = nanobind;

namespace baracuda {
Targets& targets() {
  static Targets table;
  return table;
}
}  // namespace baracuda

NB_MODULE(BARACUDA_MODULE, module) {
  nb::dict targets;
  for (auto& [name, handler] : baracuda::targets()) targets[name] = nb::capsule(reinterpret_cast<void*>(handler));
  module.attr("targets") = targets;
  module.attr("built_for") = BARACUDA_BUILT_FOR;
  module.attr("ffi_api_version") = nb::make_tuple(XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
}
