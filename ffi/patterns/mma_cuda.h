// Products of matrices by a warp's tensor cores: C [16, 8] += A [16, 16] B [16, 8], of half precisions, summed in
// float32. What lane 4 r + c has of them, in pairs of neighbors along k (PTX ISA, mma.m16n8k16):
//   A  rows r, r + 8, r, r + 8 at the columns 2 c, 2 c, 2 c + 8, 2 c + 8
//   B  column r at the rows 2 c and 2 c + 8
//   C  (r, 2 c), (r, 2 c + 1), (r + 8, 2 c), (r + 8, 2 c + 1)
// So C of one product is A of another one, its columns being the k of that: registers 0, 1 of a first C and of the
// next one, rounded, are its registers.
#pragma once

#include <cstdint>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {
namespace internal {

template <class T>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

template <>
__device__ inline void multiply_add<BFloat16>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ inline void multiply_add<Half>(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The address of what is in shared memory, as the instructions below take it.
__device__ inline uint32_t shared_address(const void* at) { return uint32_t(__cvta_generic_to_shared(at)); }

// Four matrices of 8 rows of 16 bytes from shared memory: lane i says where row i % 8 of the matrix i / 8 is, and gets
// of each matrix the pair c of row r; transposed, the elements r of the rows 2 c and 2 c + 1.
__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}
__device__ inline void load_transposed_matrices(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// The opposite of load_matrices. For Hopper.
__device__ inline void store_matrices(uint32_t row, const uint32_t (&from)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(from[0]),
               "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
#endif
}

// Two neighbors along k, rounded, the first in the lower bits.
template <class T>
__device__ inline uint32_t rounded_pair(float low, float high);

template <>
__device__ inline uint32_t rounded_pair<BFloat16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
__device__ inline uint32_t rounded_pair<Half>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Differences of two pairs.
template <class T>
__device__ inline uint32_t pair_difference(uint32_t a, uint32_t b) {
  using Pair = std::conditional_t<std::is_same_v<T, BFloat16>, __nv_bfloat162, __half2>;
  return bit_cast<uint32_t>(__hsub2(bit_cast<Pair>(a), bit_cast<Pair>(b)));
}

}  // namespace internal
}  // namespace baracuda
