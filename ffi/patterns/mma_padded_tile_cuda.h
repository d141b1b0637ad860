// A tile as MmaTile, with 16 bytes between its rows instead of chunks in another order: what a lane reads is at
// constant distances from one address, where MmaTile needs an address for each step of 16 columns. For warps with few
// registers.
#pragma once

#include "mma_rows_cuda.h"

namespace baracuda {
namespace internal {

template <int D, int rows_>
struct MmaPaddedTile {
  using T = BFloat16;
  static constexpr int rows = rows_, chunk = 8, chunks = D / chunk, size = rows * (D + chunk);
  static constexpr uint32_t pitch = (D + chunk) * sizeof(T);
  T* at;

  __device__ T* address(int row, int number) const { return at + row * (D + chunk) + number * chunk; }
  static __device__ uint32_t in_bytes(int row, int number) { return row * pitch + number * chunk * sizeof(T); }
  static __device__ uint32_t as_left() { return in_bytes(threadIdx.x % 16, threadIdx.x % 32 / 16); }
  static __device__ uint32_t as_right() {
    const int lane = threadIdx.x % 32;
    return in_bytes(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  static __device__ void left(uint32_t (&a)[4], uint32_t at, int row, int k) {
    load_matrices(a, at + in_bytes(row, 2 * k));
  }
  static __device__ void right(uint32_t (&b)[2][2], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_matrices(all, at + in_bytes(row, 2 * k));
    b[0][0] = all[0], b[0][1] = all[1], b[1][0] = all[2], b[1][1] = all[3];
  }
  static __device__ void right_of_rows(uint32_t (&b)[2][2], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_transposed_matrices(all, at + in_bytes(row, 2 * k));
    b[0][0] = all[0], b[0][1] = all[1], b[1][0] = all[2], b[1][1] = all[3];
  }
  // Of A, whose columns are rows of the tile, from a row on; 16 columns from 16 k on.
  static __device__ void turned_left(uint32_t (&a)[4], uint32_t at, int row, int k) {
    uint32_t all[4];
    load_transposed_matrices(all, at + in_bytes(row, 2 * k));
    a[0] = all[0], a[1] = all[2], a[2] = all[1], a[3] = all[3];
  }
};

}  // namespace internal
}  // namespace baracuda
