// Copies of many bytes from memory to shared memory by one instruction, and the barriers in shared memory that wait for
// them. Devices before Hopper have neither: there the kernels that call these are compiled, and never launched.
#pragma once

#include <cstdint>

#include "device_cuda.h"
#include "executor.h"

namespace baracuda {
namespace internal {

// Whether the device has such copies, and the kernel was compiled for them.
template <class Kernel>
bool has_bulk_copies(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  return major_of_device() >= 9 && cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
         attributes.ptxVersion >= 90;
}

// A phase of a barrier ends when so many threads have arrived and the bytes that they expect are there. What they wrote
// before is seen by those that waited.
struct CopyBarrier {
  uint64_t state;

  __device__ uint32_t address() const { return uint32_t(__cvta_generic_to_shared(&state)); }
  // By one thread, before a __syncthreads.
  __device__ void init(int threads) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(threads) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  __device__ void arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
#endif
  }
  __device__ void arrive_expecting(int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
#endif
  }
  // By each thread, when the copies of 16 bytes that it began are there.
  __device__ void arrive_after_copies() {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address()) : "memory");
#endif
  }
  // For the end of a phase whose number has this parity.
  __device__ void wait(int parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra through;\n"
        "bra again;\n"
        "through:\n"
        "}" ::"r"(address()),
        "r"(parity)
        : "memory");
#endif
  }
};

// The addresses and the number of bytes are multiples of 16.
__device__ inline void copy_bulk(void* to, const void* from, int bytes, CopyBarrier& barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   uint32_t(__cvta_generic_to_shared(to))),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier.address())
               : "memory");
#endif
}

}  // namespace internal
}  // namespace baracuda
