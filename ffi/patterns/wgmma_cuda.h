// Products of matrices by the tensor cores of a multiprocessor, for a warpgroup of four warps: C [64, 256] += A [64,
// 16] B [16, 256], of half precisions in shared memory, summed in float32. Warp w of the warpgroup has rows 16 w ... 16
// w + 15 of C, of which a lane has, for each 8 columns, what mma_cuda.h says of C. For Hopper, compiled for sm_90a.
//
// Operands are in boxes of 64 columns, as tensor_map_cuda.h copies them. The rows of A and columns of B are the boxes'
// lines, or, where `_is_steps`, their columns: then the lines are what is summed over.
#pragma once

#include "device_cuda.h"
#include "mma_cuda.h"

namespace baracuda {
namespace internal {

inline bool is_hopper() { return major_of_device() == 9 && device_attribute(cudaDevAttrComputeCapabilityMinor) == 0; }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What an instruction takes as an operand: of the first step, from the address of its first box. Boxes of `box_bytes`
// follow each other along the columns.
template <bool is_steps>
__device__ inline uint64_t wgmma_operand(uint32_t address, int box_bytes) {
  constexpr uint64_t swizzle_128 = 1ull << 62, eight_lines = 1024 >> 4;
  const uint64_t next_box = is_steps ? box_bytes >> 4 : 1;
  return swizzle_128 | eight_lines << 32 | next_box << 16 | (address & 0x3ffff) >> 4;
}
// How much further on 16 steps are.
template <bool is_steps>
inline constexpr uint64_t wgmma_next = is_steps ? 16 * 128 >> 4 : 16 * 2 >> 4;

#define BARACUDA_4(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define BARACUDA_16(c, i) BARACUDA_4(c, i), BARACUDA_4(c, i + 4), BARACUDA_4(c, i + 8), BARACUDA_4(c, i + 12)
#define BARACUDA_64(c, i) BARACUDA_16(c, i), BARACUDA_16(c, i + 16), BARACUDA_16(c, i + 32), BARACUDA_16(c, i + 48)
#define BARACUDA_8_BY_4(c)                                                                                 \
  BARACUDA_4(c[0], 0), BARACUDA_4(c[1], 0), BARACUDA_4(c[2], 0), BARACUDA_4(c[3], 0), BARACUDA_4(c[4], 0), \
      BARACUDA_4(c[5], 0), BARACUDA_4(c[6], 0), BARACUDA_4(c[7], 0)
#define BARACUDA_WGMMA(type)                                                                           \
  asm volatile(                                                                                        \
      "{\n"                                                                                            \
      ".reg .pred adds;\n"                                                                             \
      "setp.ne.b32 adds, %130, 0;\n"                                                                   \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type                                     \
      " {"                                                                                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                         \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "               \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "               \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "               \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "               \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "               \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "   \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127" \
      "}, %128, %129, adds, 1, 1, %131, %132;\n"                                                       \
      "}"                                                                                              \
      : BARACUDA_64(c, 0), BARACUDA_64(c, 64)                                                          \
      : "l"(a), "l"(b), "r"(int(adds)), "n"(int(left_is_steps)), "n"(int(right_is_steps)))

// Goes on while the warps do, and neither C nor the operands may be touched. C is overwritten unless `adds`.
template <class T, bool left_is_steps, bool right_is_steps>
__device__ inline void wgmma(float (&c)[128], uint64_t a, uint64_t b, bool adds) {
  if constexpr (std::is_same_v<T, BFloat16>)
    BARACUDA_WGMMA("bf16");
  else
    BARACUDA_WGMMA("f16");
}
#undef BARACUDA_WGMMA

// The same of 64 columns, of bfloat16, in the order of MmaRows: of each 8 columns a warp has 16 rows.
#define BARACUDA_WGMMA_64                                                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31}, "
template <bool left_is_steps, bool right_is_steps>
__device__ inline void wgmma(float (&c)[8][4], uint64_t a, uint64_t b, bool adds) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " BARACUDA_WGMMA_64
      "%32, %33, adds, 1, 1, %35, %36;\n"
      "}"
      : BARACUDA_8_BY_4(c)
      : "l"(a), "l"(b), "r"(int(adds)), "n"(int(left_is_steps)), "n"(int(right_is_steps)));
}
// Added, of A in registers.
template <bool right_is_steps>
__device__ inline void wgmma_add(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " BARACUDA_WGMMA_64
               "{%32, %33, %34, %35}, %36, 1, 1, 1, %37;\n"
               : BARACUDA_8_BY_4(c)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(right_is_steps)));
}
template <int N>
__device__ inline void wgmma_end(float (&c)[N][4]) {
#pragma unroll
  for (int t = 0; t < N; ++t) asm volatile("" : BARACUDA_4(c[t], 0)::"memory");
}
#undef BARACUDA_WGMMA_64
#undef BARACUDA_8_BY_4

// B in shared memory without boxes: 8 columns of 16 bytes, which are 8 steps, follow each other, then the next 8
// columns; and `next_bytes` further on are the next 8 steps.
__device__ inline uint64_t wgmma_plain_operand(uint32_t address, int next_bytes) {
  constexpr uint64_t next_columns = 8 * 16 >> 4;
  return next_columns << 32 | uint64_t(next_bytes >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// Of 8 N columns and A in registers. C is overwritten unless `adds`.
#define BARACUDA_2_BY_4(c, i) BARACUDA_4(c[i], 0), BARACUDA_4(c[i + 1], 0)
#define BARACUDA_WGMMA_OF(shape, type, sums, a0, a1, a2, a3, b, p, ...)                                           \
  asm volatile(                                                                                                   \
      "{\n"                                                                                                       \
      ".reg .pred adds;\n"                                                                                        \
      "setp.ne.b32 adds, %" p                                                                                     \
      ", 0;\n"                                                                                                    \
      "wgmma.mma_async.sync.aligned." shape ".f32." type "." type " {" sums "}, {%" a0 ", %" a1 ", %" a2 ", %" a3 \
      "}, %" b                                                                                                    \
      ", adds, 1, 1, 0;\n"                                                                                        \
      "}"                                                                                                         \
      : __VA_ARGS__                                                                                               \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand), "r"(int(adds)))
#define BARACUDA_WGMMA_32(type)                                                                                      \
  BARACUDA_WGMMA_OF("m64n32k16", type, "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15", "16", \
                    "17", "18", "19", "20", "21", BARACUDA_2_BY_4(c, 0), BARACUDA_2_BY_4(c, 2))
#define BARACUDA_WGMMA_64(type)                                                                                  \
  BARACUDA_WGMMA_OF("m64n64k16", type,                                                                           \
                    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
                    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31",                                \
                    "32", "33", "34", "35", "36", "37", BARACUDA_2_BY_4(c, 0), BARACUDA_2_BY_4(c, 2),            \
                    BARACUDA_2_BY_4(c, 4), BARACUDA_2_BY_4(c, 6))
template <class T, int N>
__device__ inline void wgmma_of(float (&c)[N][4], const uint32_t (&a)[4], uint64_t operand, bool adds) {
  static_assert(N == 4 || N == 8);
  constexpr bool is_bf16 = std::is_same_v<T, BFloat16>;
  if constexpr (N == 4 && is_bf16) BARACUDA_WGMMA_32("bf16");
  if constexpr (N == 4 && !is_bf16) BARACUDA_WGMMA_32("f16");
  if constexpr (N == 8 && is_bf16) BARACUDA_WGMMA_64("bf16");
  if constexpr (N == 8 && !is_bf16) BARACUDA_WGMMA_64("f16");
}
#undef BARACUDA_WGMMA_32
#undef BARACUDA_WGMMA_64
#undef BARACUDA_WGMMA_OF
#undef BARACUDA_2_BY_4
#undef BARACUDA_64
#undef BARACUDA_16
#undef BARACUDA_4

// What the thread has written to shared memory is seen by products after the next barrier.
__device__ inline void shared_to_wgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Before the first product of those that are committed together.
__device__ inline void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most so many of what was committed go on.
template <int left>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
// Sums that were waited for are read after this.
__device__ inline void wgmma_end(float (&c)[128]) {
#pragma unroll
  for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(c[i])::"memory");
}

// A warpgroup's registers, of those that the block has.
template <int registers>
__device__ inline void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ inline void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

#endif

}  // namespace internal
}  // namespace baracuda
