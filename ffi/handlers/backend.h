// What a handler needs of its backend, under the same names on CPU and CUDA: the drivers of the patterns, and the
// Executor as an FFI context. A handler file is compiled once for each.
#pragma once

#ifdef BARACUDA_CUDA
#include "../patterns/argextremum_cuda.h"
#include "../patterns/blocks_cuda.h"
#include "../patterns/compact_cuda.h"
#include "../patterns/elementwise_cuda.h"
#include "../patterns/gather_cuda.h"
#include "../patterns/histogram_cuda.h"
#include "../patterns/put_cuda.h"
#include "../patterns/rows_cuda.h"
#include "../patterns/scan_cuda.h"
#include "../patterns/search_cuda.h"
#include "../patterns/segment_cuda.h"
#include "../patterns/select_cuda.h"
#include "../patterns/sort_cuda.h"
#include "../patterns/tile_cuda.h"
#include "../patterns/window_cuda.h"
#else
#include "../patterns/argextremum_cpu.h"
#include "../patterns/blocks_cpu.h"
#include "../patterns/compact_cpu.h"
#include "../patterns/elementwise_cpu.h"
#include "../patterns/gather_cpu.h"
#include "../patterns/histogram_cpu.h"
#include "../patterns/put_cpu.h"
#include "../patterns/rows_cpu.h"
#include "../patterns/scan_cpu.h"
#include "../patterns/search_cpu.h"
#include "../patterns/segment_cpu.h"
#include "../patterns/select_cpu.h"
#include "../patterns/sort_cpu.h"
#include "../patterns/tile_cpu.h"
#include "../patterns/window_cpu.h"
#endif

#include <optional>

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
