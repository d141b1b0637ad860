// BARACUDA_TARGET(name, function, binding) defines the FFI target "baracuda.name" and puts it in the module's table.
#pragma once

#include "binding.h"
#include "checks.h"
#include "table.h"

#if defined(__linux__) && !defined(BARACUDA_CUDA)
#include <sys/mman.h>
#endif

namespace baracuda {

// On CPU, memory for results of many MiB is new in each call. It comes page by page, when it is first written, which
// takes several times as long as to write it. In large pages, which are asked for here, it does not.
inline void before_call(const XLA_FFI_CallFrame* call) {
#if defined(MADV_HUGEPAGE) && !defined(BARACUDA_CUDA)
  constexpr uintptr_t page = 1 << 21;
  for (int64_t i = 0; i < call->rets.size; ++i) {
    if (call->rets.types[i] != XLA_FFI_RetType_BUFFER) continue;
    ffi::AnyBuffer result(static_cast<const XLA_FFI_Buffer*>(call->rets.rets[i]));
    uintptr_t begin = reinterpret_cast<uintptr_t>(result.untyped_data()), end = (begin + result.size_bytes()) & -page;
    begin = (begin + page - 1) & -page;
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
}

}  // namespace baracuda

#define BARACUDA_TARGET(NAME, FUNCTION, BINDING)                                                           \
  static const bool NAME##_added = ::baracuda::add_target("baracuda." #NAME, [](XLA_FFI_CallFrame* call) { \
    static const auto binding = BINDING;                                                                   \
    before_call(call);                                                                                     \
    return binding.call(call, FUNCTION);                                                                   \
  })
