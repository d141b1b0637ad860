// Registers that the compiler is to leave as they are.
#pragma once

namespace baracuda {
namespace internal {

// Keeps what is the same in all turns of a loop from being computed in each of them.
__device__ inline void keep(int& value) { asm volatile("" : "+r"(value)); }
template <class T>
__device__ inline void keep(const T*& at) {
  asm volatile("" : "+l"(at));
}

}  // namespace internal
}  // namespace baracuda
