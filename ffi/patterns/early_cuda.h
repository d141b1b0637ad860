// Kernels that begin before the kernel that was launched before them has ended: so their launch takes no time of its
// own, and their blocks have the multiprocessors that its last ones leave.
#pragma once

#include "device_cuda.h"
#include "launch_with_cuda.h"

namespace baracuda {
namespace internal {

// Lets the next kernel's blocks begin, once all blocks of this one have called it or are through.
__device__ inline void next_may_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernel before has ended, and what it wrote is there. A block of each kernel that begins early has to,
// at its end at least: then all have ended when the last one has.
__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Older devices launch the kernel when the one before has ended.
template <class... Parameters, class... Values>
Status launch_early(const Executor& executor, void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
                    size_t dynamic_bytes, const Values&... values) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return launch_with(executor, major_of_device() >= 9 ? &attribute : nullptr, kernel, blocks, threads, dynamic_bytes,
                     values...);
}

}  // namespace internal
}  // namespace baracuda
