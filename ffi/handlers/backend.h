// What a handler needs of its backend, under the same names on CPU and CUDA: the Executor as an FFI context, and
// `#include BARACUDA_DRIVER(pattern)`, the driver of a pattern. A handler file is compiled once for each.
#pragma once

// clang-format off
#define BARACUDA_QUOTED(x) #x
#ifdef BARACUDA_CUDA
#define BARACUDA_DRIVER(pattern) BARACUDA_QUOTED(patterns/pattern##_cuda.h)
#else
#define BARACUDA_DRIVER(pattern) BARACUDA_QUOTED(patterns/pattern##_cpu.h)
#endif
// clang-format on

#include <optional>

#include "../patterns/executor.h"
#include "xla/ffi/api/ffi.h"

namespace baracuda {

namespace ffi = xla::ffi;

// The Executor, and what it borrows, for the time of one call.
class Device {
 public:
#ifdef BARACUDA_CUDA
  explicit Device(cudaStream_t stream) : stream_(stream) {}
  Executor executor() const { return {stream_}; }
  Executor executor(const ffi::AnyBuffer& workspace) const {
    return {stream_, static_cast<char*>(workspace.untyped_data()), workspace.size_bytes()};
  }

 private:
  cudaStream_t stream_;
#else
  explicit Device(ffi::ThreadPool pool) : pool_(pool) {}
  Executor executor() {
    return {pool_.num_threads(), &pool_, [](void* pool, std::function<void()> task) {
              static_cast<ffi::ThreadPool*>(pool)->Schedule(std::move(task));
            }};
  }
  Executor executor(const ffi::AnyBuffer&) { return executor(); }

 private:
  ffi::ThreadPool pool_;
#endif
};

}  // namespace baracuda

template <>
struct xla::ffi::CtxDecoding<baracuda::Device> {
  using Type = baracuda::Device;
  static std::optional<Type> Decode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* context,
                                    DiagnosticEngine& diagnostic) {
#ifdef BARACUDA_CUDA
    auto stream = CtxDecoding<PlatformStream<cudaStream_t>>::Decode(api, context, diagnostic);
    if (!stream) return std::nullopt;
    return Type(*stream);
#else
    auto pool = CtxDecoding<ThreadPool>::Decode(api, context, diagnostic);
    if (!pool) return std::nullopt;
    return Type(*pool);
#endif
  }
};
