// The chunks of chunk_scan_mma_backward_cuda.h on the tensor cores of Hopper, for heads of 64 rows and 128 columns that
// have no gate.
//
// A block has a chunk, and four warpgroups. Two have every other head each, of which they find what positions give each
// other and the gradient of x; the third has the gradient of C, the last that of B. Large products are wgmma's, of
// boxes that are copied up to two heads ahead; triangles are products of warps, which leave out blocks of zeros. A
// stage of copies is given back when all who read it have arrived; the last warpgroup waits for that, stores the head's
// sums, and begins the next copies.
#pragma once

#include "chunk_scan_mma_backward_cuda.h"
#include "tensor_map_cuda.h"
#include "wgmma_cuda.h"

namespace baracuda {
namespace internal {

struct BackwardWgmmaMaps {
  CUtensorMap x, dy, b, c, h, dh;
};

struct BackwardWgmmaShared {
  using Box = MmaTile<BFloat16, chunk_side, chunk_side>;
  static constexpr int side = chunk_side, columns = 2 * side, box = side * side, stages = 3, slots = 4;
  // Barriers of copies: each is waited for by all who wait for its phase before, of which a team has every other head.
  static constexpr int arrivals = 2 * stages;
  static constexpr int box_bytes = box * 2, stage_bytes = 6 * box_bytes + int(sizeof(Positions<BFloat16>));
  // Boxes are 64 columns each.
  struct Stage {
    BFloat16 x[box], dy[box], h[2][box], dh[2][box];
  };
  alignas(1024) Stage stages_[stages];
  BFloat16 b[2][box], c[2][box];
  BFloat16 kept[2][box];  // of each team: what positions keep of each other's, times C B
  float4 products[10 * ChunkCb::block];
  // Of heads, of which the sums of one are stored while the next ones are found.
  Positions<BFloat16> positions[slots];
  PositionSums sums[slots];
  float of_skip[slots][unit_warps][side];
  BackwardPart part;
  CopyBarrier full[arrivals], free[stages], is_shared;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct ChunkBackwardWgmma {
  using T = BFloat16;
  using Shared = BackwardWgmmaShared;
  using Box = Shared::Box;
  using Product = float[8][4];  // 64 x 64 of a warpgroup
  static constexpr int side = chunk_side, steps = side / 16;

  const ChunkScan<T>& scan;
  const ChunkGradients<T>& g;
  const ChunkSums<T>& sums;
  const BackwardWgmmaMaps& maps;
  Shared& shared;
  const Positions<T>* decays;
  int warp;  // of its team
  const BackwardPart& part = shared.part;

  __device__ int64_t begin() const { return int64_t(part.chunk) * side; }
  __device__ int row(int half) const { return mma_row(warp * mma_rows, half); }
  __device__ Shared::Stage& stage(int n) const { return shared.stages_[n % Shared::stages]; }
  __device__ const Positions<T>& positions(int n) const { return shared.positions[n % Shared::slots]; }
  __device__ PositionSums& found(int n) const { return shared.sums[n % Shared::slots]; }
  template <int count>
  static __device__ void wait(CopyBarrier (&barriers)[count], int n) {
    barriers[n % count].wait(n / count % 2);
  }
  // A warp has read a head's stage and written its sums.
  __device__ void release(int n) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) shared.free[n % Shared::stages].arrive();
  }
  template <bool is_steps>
  static __device__ uint64_t operand(const T* box) {
    return wgmma_operand<is_steps>(shared_address(box), Shared::box_bytes);
  }

  // By one thread.
  __device__ void read(int n) const {
    if (n >= part.heads) return;
    CopyBarrier& full = shared.full[n % Shared::arrivals];
    Shared::Stage& to = stage(n);
    const int head = part.first_head + n, row = part.chunk * side, column = head * side;
    const int64_t state = (part.sequence * scan.shape.heads + head) * scan.chunks() + part.chunk;
    full.arrive_expecting(Shared::stage_bytes);
    copy_box(shared_address(to.dy), maps.dy, column, row, part.sequence, full);
    copy_box(shared_address(to.x), maps.x, column, row, part.sequence, full);
    copy_bulk(&shared.positions[n % Shared::slots], decays + state, sizeof(Positions<T>), full);
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      copy_box(shared_address(to.dh[q]), maps.dh, q * side, 0, int(state), full);
      copy_box(shared_address(to.h[q]), maps.h, q * side, 0, int(state), full);
    }
  }
  __device__ void start() const {
    if (threadIdx.x == 0) {
      shared.part = BackwardPart(scan.shape, scan.chunks(), sums.parts);
#pragma unroll
      for (CopyBarrier& full : shared.full) full.init(1);
#pragma unroll
      for (CopyBarrier& free : shared.free) free.init(3 * unit_warps);
      shared.is_shared.init(1);
      shared.is_shared.arrive_expecting(4 * Shared::box_bytes);
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int column = part.which * Shared::columns + q * side;
        copy_box(shared_address(shared.b[q]), maps.b, column, part.chunk * side, part.sequence, shared.is_shared);
        copy_box(shared_address(shared.c[q]), maps.c, column, part.chunk * side, part.sequence, shared.is_shared);
      }
#pragma unroll 1
      for (int n = 0; n < Shared::stages; ++n) read(n);
    }
    // Of sums the second strips have nothing, and no position is before the first 16.
    if (threadIdx.x < side)
#pragma unroll
      for (PositionSums& of : shared.sums) {
        of.of_to[1][threadIdx.x] = of.of_x[1][threadIdx.x] = 0;
        if (threadIdx.x < mma_rows) of.of_row[threadIdx.x] = 0;
      }
    __syncthreads();
    shared.is_shared.wait(0);
  }
  __device__ void meet() const { wait_at_barrier(every_warp, backward_threads); }

  // Where the blocks of 16 x 16 of a warp's rows are in the order of a lower triangle.
  __device__ float4* of_blocks() const {
    return shared.products + warp * (warp + 1) / 2 * ChunkCb::block + threadIdx.x % 32;
  }
  template <class Body>
  __device__ void each_block(const Body& body) const {
#pragma unroll
    for (int k = 0; k < unit_warps; ++k)
      if (k <= warp) body(k);
  }
  __device__ void find_products() const {
#pragma unroll 1
    for (int k = 0; k <= warp; ++k) {
      MmaRows<1, 16> product;
      product.clear();
#pragma unroll
      for (int q = 0; q < 2; ++q)
        product.template add_product<steps, Box, Box>(
            shared_address(shared.c[q]) + Box::as_left() + warp * mma_rows * Box::pitch,
            shared_address(shared.b[q]) + Box::as_right() + k * mma_rows * Box::pitch);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const float* value = product.part[0][t];
        of_blocks()[k * ChunkCb::block + t * 32] = {value[0], value[1], value[2], value[3]};
      }
    }
  }

  // What positions give each other: their products are in `pairs`.
  __device__ void find_pairs(int n, int team, const Product& pairs, Product& dproducts) const {
    const Positions<T>& of = positions(n);
    PositionSums& to = found(n);
    const Box kept{shared.kept[team]};
    float of_row[2] = {};
    each_block([&](int k) {
      float4 value[2];
      float2 factor[2][2], step[2];
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int j = k * 16 + mma_column(t, 0);
        const float2 decay = *reinterpret_cast<const float2*>(of.decay + j);
        value[t] = of_blocks()[k * ChunkCb::block + t * 32];
        step[t] = *reinterpret_cast<const float2*>(of.step + j);
#pragma unroll
        for (int half = 0; half < 2; ++half) factor[half][t] = of.passed_pair(row(half), j, decay);
      }
      float path[2][2][2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const float2 by = factor[half][t];
          const float2 of_value = half ? float2{value[t].z, value[t].w} : float2{value[t].x, value[t].y};
          *reinterpret_cast<uint32_t*>(kept.address(row(half), 2 * k + t) + mma_column(0, 0)) =
              rounded_pair<T>(times_passed(by.x, of_value.x), times_passed(by.y, of_value.y));
          const float* of_pair = pairs[2 * k + t] + 2 * half;
          float* sum = dproducts[2 * k + t] + 2 * half;
          const float low = times_passed(by.x, step[t].x * of_pair[0]);
          const float high = times_passed(by.y, step[t].y * of_pair[1]);
          sum[0] += low, sum[1] += high;
          path[half][t][0] = low * of_value.x, path[half][t][1] = high * of_value.y;
        }
      if (k == warp) {
        sum_within_block(path);
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          of_row[half] += path[half][0][0] + path[half][0][1] + (path[half][1][0] + path[half][1][1]);
      }
      float of_column[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) of_column[e] = path[0][e / 2][e % 2] + path[1][e / 2][e % 2];
      const float sum = sum_of_columns(of_column);
      if (threadIdx.x / 4 % 2 == 0)
        (k == warp ? to.of_block : to.of_column[unit_warps - 1 - warp])[k * 16 + column_of_sum<4>()] = sum;
    });
    if (warp > 0)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = sum_of_row(of_row[half]);
        if (threadIdx.x % 4 == 0) to.of_row[row(half)] = sum;
      }
  }
  __device__ void find_inputs(int team) const {
    Product dproducts;
#pragma unroll
    for (auto& part_of : dproducts)
#pragma unroll
      for (float& value : part_of) value = 0;
    if (team == 0) find_products();
    meet();
    const int barrier = 1 + team;
#pragma unroll 1
    for (int n = team; n < part.heads; n += 2) {
      wait(shared.full, n);
      const Shared::Stage& of_stage = stage(n);
      Product result;
      wgmma_begin();
#pragma unroll
      for (int k = 0; k < steps; ++k)
        wgmma<false, false>(result, operand<false>(of_stage.dy) + k * wgmma_next<false>,
                            operand<false>(of_stage.x) + k * wgmma_next<false>, k > 0);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_end(result);
      wait_at_barrier(barrier, team_threads);  // what was kept before was read
      find_pairs(n, team, result, dproducts);
      wgmma_begin();
#pragma unroll
      for (int k = 0; k < 2 * steps; ++k)
        wgmma<false, false>(result, operand<false>(shared.b[k / steps]) + k % steps * wgmma_next<false>,
                            operand<false>(of_stage.dh[k / steps]) + k % steps * wgmma_next<false>, k > 0);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_end(result);
      const Positions<T>& of = positions(n);
      PositionSums& to = found(n);
      const uint32_t rows_at = Box::as_left() + warp * mma_rows * Box::pitch;
      const uint32_t x_at = shared_address(of_stage.x) + rows_at, dy_at = shared_address(of_stage.dy) + rows_at;
      float of_to[2] = {}, of_x[2] = {}, to_state[2], step[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) to_state[half] = of.to_state[row(half)], step[half] = of.step[row(half)];
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        uint32_t pairs[4];
        Box::left(pairs, x_at, 0, k);
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            float* value = result[2 * k + t] + 2 * half;
            const uint32_t pair = pairs[2 * t + half];
            value[0] *= to_state[half], value[1] *= to_state[half];
            of_to[half] += value[0] * low_of_pair(pair) + value[1] * high_of_pair(pair);
          }
      }
      wait_at_barrier(barrier, team_threads);  // what is kept is there
      const uint32_t left_at = shared_address(shared.kept[team]) + Box::as_right();
      const uint32_t right_at = shared_address(of_stage.dy) + Box::as_left();
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        if (k < warp) continue;
        uint32_t left[4];
        Box::left_of_rows(left, left_at, k * 16, warp);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          uint32_t right[2][2];
          Box::right_of_rows(right, right_at, k * 16, t);
          multiply_add<T>(result[2 * t], left, right[0]);
          multiply_add<T>(result[2 * t + 1], left, right[1]);
        }
      }
      const int head = part.first_head + n;
      const float* skips = scan.skip + scan.head_of(part.sequence, head) * scan.shape.skips;
      const bool is_one = scan.shape.skips == 1, is_odd = threadIdx.x % 2;
      const int64_t stride = scan.shape.heads * side;
      T* dx =
          g.dx + scan.x_at(part.sequence, begin(), head) + row(0) * stride + mma_column(0, 0) + (is_odd ? 8 - 2 : 0);
#pragma unroll
      for (int part_of = 0; part_of < 2; ++part_of) {
        float of_skip[8] = {};
#pragma unroll
        for (int within = 0; within < 2; ++within) {
          const int k = 2 * part_of + within;
          uint32_t of_rows[4], of_dy[4], rounded[2][2];
          Box::left(of_rows, x_at, 0, k);
          Box::left(of_dy, dy_at, 0, k);
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            const int p = is_one ? 0 : k * 16 + mma_column(t, 0);
            const float skip[2] = {skips[p], skips[is_one ? 0 : p + 1]};
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const float* value = result[2 * k + t] + 2 * half;
              const float x_low = low_of_pair(of_rows[2 * t + half]), x_high = high_of_pair(of_rows[2 * t + half]);
              const float dy_low = low_of_pair(of_dy[2 * t + half]), dy_high = high_of_pair(of_dy[2 * t + half]);
              of_x[half] += x_low * value[0] + x_high * value[1];
              of_skip[4 * within + 2 * t] += x_low * dy_low, of_skip[4 * within + 2 * t + 1] += x_high * dy_high;
              rounded[half][t] =
                  rounded_pair<T>(step[half] * value[0] + dy_low * skip[0], step[half] * value[1] + dy_high * skip[1]);
            }
          }
          // Neighboring lanes exchange pairs, so that each writes 8 bytes.
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const uint32_t own = is_odd ? rounded[half][1] : rounded[half][0];
            const uint32_t other = __shfl_xor_sync(~0u, is_odd ? rounded[half][0] : rounded[half][1], 1);
            if (row(half) < part.count)
              *reinterpret_cast<uint2*>(dx + half * 8 * stride + k * 16) =
                  is_odd ? uint2{other, own} : uint2{own, other};
          }
        }
        shared.of_skip[n % Shared::slots][warp][part_of * 32 + column_of_sum<8>()] = sum_of_columns(of_skip);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = step[half] * sum_of_row(of_to[half]), other = sum_of_row(of_x[half]);
        if (threadIdx.x % 4 == 0) to.of_to[0][row(half)] = sum, to.of_x[0][row(half)] = other;
      }
      release(n);
    }
    meet();
    if (team == 1)
      each_block([&](int k) {
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const float* value = dproducts[2 * k + t];
          of_blocks()[k * ChunkCb::block + t * 32] = {value[0], value[1], value[2], value[3]};
        }
      });
    meet();
    if (team == 0)
      each_block([&](int k) {
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const float* value = dproducts[2 * k + t];
          const float4 other = of_blocks()[k * ChunkCb::block + t * 32];
          T* to = Box{shared.kept[0]}.address(row(0), 2 * k + t) + mma_column(0, 0);
          *reinterpret_cast<uint32_t*>(to) = rounded_pair<T>(value[0] + other.x, value[1] + other.y);
          *reinterpret_cast<uint32_t*>(to + 8 * side) = rounded_pair<T>(value[2] + other.z, value[3] + other.w);
        }
      });
    meet();
  }

  // Adds products of the sums over heads of pairs of positions and B or C.
  template <bool is_turned>
  __device__ void add_pairs(Product (&to)[2], const T (&of)[2][Shared::box]) const {
    const uint32_t pairs_at = shared_address(shared.kept[0]) + (is_turned ? Box::as_right() : Box::as_left());
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      if (is_turned ? k < warp : k > warp) continue;
      uint32_t left[4];
      if constexpr (is_turned)
        Box::left_of_rows(left, pairs_at, k * 16, warp);
      else
        Box::left(left, pairs_at, warp * mma_rows, k);
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          uint32_t right[2][2];
          Box::right_of_rows(right, shared_address(of[q]) + Box::as_left(), k * 16, t);
          multiply_add<T>(to[q][2 * t], left, right[0]);
          multiply_add<T>(to[q][2 * t + 1], left, right[1]);
        }
    }
  }
  // A block's part of the gradient of B or C.
  __device__ void store_shared(const Product (&of)[2], int kind, T* whole) const {
    const ChunkShape& shape = scan.shape;
    const int64_t of_part = ((part.sequence * shape.shared + part.which) * sums.parts + part.number) * shape.length;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = row(half);
      if (i >= part.count) continue;
      float* to = sums.shared + ((of_part + begin() + i) * 2 + kind) * Shared::columns;
      T* to_whole = whole + scan.b_at(part.sequence, begin() + i, part.which);
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int t = 0; t < 8; ++t) {
          const int column = q * side + mma_column(t, 0);
          const float* value = of[q][t] + 2 * half;
          if (sums.shared)
            *reinterpret_cast<float2*>(to + column) = {value[0], value[1]};
          else
            *reinterpret_cast<uint32_t*>(to_whole + column) = rounded_pair<T>(value[0], value[1]);
        }
    }
  }
  static __device__ void clear(Product (&of)[2]) {
#pragma unroll
    for (Product& half : of)
#pragma unroll
      for (auto& part_of : half)
#pragma unroll
        for (float& value : part_of) value = 0;
  }

  // The gradient of C.
  __device__ void find_c() const {
    Product dc[2];
    clear(dc);
    meet();
#pragma unroll 1
    for (int n = 0; n < part.heads; ++n) {
      wait(shared.full, n);
      const Shared::Stage& of_stage = stage(n);
      const Positions<T>& of = positions(n);
      float kept[2], from[2] = {};
      bool is_seen[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        kept[half] = of.from_state[row(half)], is_seen[half] = of.first[row(half)] < 0;
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        Product product;
        wgmma_begin();
#pragma unroll
        for (int k = 0; k < steps; ++k)
          wgmma<false, true>(product, operand<false>(of_stage.dy) + k * wgmma_next<false>,
                             operand<true>(of_stage.h[q]) + k * wgmma_next<true>, k > 0);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_end(product);
        const uint32_t c_at = shared_address(shared.c[q]) + Box::as_left() + warp * mma_rows * Box::pitch;
#pragma unroll
        for (int k = 0; k < steps; ++k) {
          uint32_t pairs[4];
          Box::left(pairs, c_at, 0, k);
#pragma unroll
          for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int t = 0; t < 2; ++t) {
              const float* value = product[2 * k + t] + 2 * half;
              const float low = is_seen[half] ? value[0] : 0.f, high = is_seen[half] ? value[1] : 0.f;
              float* to = dc[q][2 * k + t] + 2 * half;
              const uint32_t pair = pairs[2 * t + half];
              to[0] += kept[half] * low, to[1] += kept[half] * high;
              from[half] += low * low_of_pair(pair), from[half] += high * high_of_pair(pair);
            }
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = kept[half] * sum_of_row(from[half]);
        if (threadIdx.x % 4 == 0) found(n).of_from[0][row(half)] = sum;
      }
      release(n);
    }
    meet(), meet(), meet();
    add_pairs<false>(dc, shared.b);
    store_shared(dc, 1, g.dc);
  }
  // The gradient of B; sums of states and their cotangents.
  __device__ void find_b() const {
    Product db[2];
    clear(db);
    meet();
#pragma unroll 1
    for (int n = 0; n < part.heads; ++n) {
      wait(shared.full, n);
      const Shared::Stage& of_stage = stage(n);
      const Positions<T>& of = positions(n);
      float weight[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) weight[half] = of.step[row(half)] * of.to_state[row(half)];
      uint32_t left[steps][4];
      const uint32_t rows_at = Box::as_left() + warp * mma_rows * Box::pitch;
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        Box::left(left[k], shared_address(of_stage.x) + rows_at, 0, k);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          left[k][i] =
              rounded_pair<T>(weight[i % 2] * low_of_pair(left[k][i]), weight[i % 2] * high_of_pair(left[k][i]));
      }
      wgmma_begin();
#pragma unroll
      for (int k = 0; k < steps; ++k)
#pragma unroll
        for (int q = 0; q < 2; ++q)
          wgmma_add<true>(db[q], left[k], operand<true>(of_stage.dh[q]) + k * wgmma_next<true>);
      wgmma_commit();
      float of_kept = 0;
      if (of.is_kept) {
        // The diagonal of 16 rows of h dh^T.
        MmaRows<1, 16> product;
        product.clear();
#pragma unroll
        for (int q = 0; q < 2; ++q)
          product.template add_product<steps, Box, Box>(
              shared_address(of_stage.h[q]) + rows_at,
              shared_address(of_stage.dh[q]) + Box::as_right() + warp * mma_rows * Box::pitch);
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (mma_row(0, half) == mma_column(half, e)) of_kept += product.part[0][half][2 * half + e];
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) of_kept += __shfl_xor_sync(~0u, of_kept, distance);
      }
      if (threadIdx.x % 32 == 0) found(n).of_kept[warp] = of_kept;
      wgmma_wait<0>();
      wgmma_end(db[0]), wgmma_end(db[1]);
      if (n > 0) finish(n - 1);
      release(n);
    }
    if (part.heads > 0) finish(part.heads - 1);
    meet(), meet(), meet();
    add_pairs<true>(db, shared.c);
    store_shared(db, 0, g.db);
  }
  // When all have been through a head its stage is read for another one; the first warp stores the sums of D, the
  // second one those of steps. The next head's stage is not given back before.
  __device__ void finish(int n) const {
    if (warp > 1) return;
    wait(shared.free, n);
    const int head = part.first_head + n;
    float* to =
        sums.heads + ((part.sequence * scan.shape.heads + head) * scan.chunks() + part.chunk) * (2 + scan.shape.skips);
    if (warp == 0) {
      if (threadIdx.x % 32 == 0) read(n + Shared::stages);
      __syncwarp();
      const float (&of)[unit_warps][side] = shared.of_skip[n % Shared::slots];
      float total = 0;
#pragma unroll
      for (int p = threadIdx.x % 32; p < side; p += 32) {
        const float sum = of[0][p] + of[1][p] + (of[2][p] + of[3][p]);
        if (scan.shape.skips > 1) to[2 + p] = sum;
        total += sum;
      }
      if (scan.shape.skips == 1) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(~0u, total, distance);
        if (threadIdx.x % 32 == 0) to[2] = total;
      }
    } else {
      sum_paths(found(n));
      __syncwarp();
      store_steps(scan, found(n), positions(n), part.sequence, head, begin(), g.ddt, to);
    }
  }
};

#endif

__global__ void __launch_bounds__(backward_threads, 1)
    chunk_backward_wgmma(const __grid_constant__ ChunkScan<BFloat16> scan,
                         const __grid_constant__ ChunkGradients<BFloat16> g,
                         const __grid_constant__ ChunkSums<BFloat16> sums,
                         const __grid_constant__ BackwardWgmmaMaps maps, const Positions<BFloat16>* decays) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char bytes[];
  BackwardWgmmaShared& shared = *reinterpret_cast<BackwardWgmmaShared*>(bytes);
  const int warp = uniform_warp();
  const ChunkBackwardWgmma block{scan, g, sums, maps, shared, decays, warp % unit_warps};
  block.start();
  const int team = warp / unit_warps;
  if (team < 2) {
    more_registers<144>();
    block.find_inputs(team);
  } else if (team == 2) {
    fewer_registers<112>();
    block.find_c();
  } else {
    fewer_registers<112>();
    block.find_b();
  }
#endif
}

inline bool suits_backward_wgmma(const ChunkScan<BFloat16>& scan, const ChunkGradients<BFloat16>& g,
                                 const ChunkSums<BFloat16>& sums) {
  const ChunkShape& shape = scan.shape;
  for (const void* at :
       {static_cast<const void*>(scan.x), static_cast<const void*>(g.dy), static_cast<const void*>(scan.b),
        static_cast<const void*>(scan.c), static_cast<const void*>(g.states), static_cast<const void*>(sums.dstates)})
    if (reinterpret_cast<uintptr_t>(at) % 16 != 0) return false;
  constexpr int64_t most = int64_t(1) << 31;
  return !scan.z && shape.rows == chunk_side && shape.columns == 2 * chunk_side && shape.length > 0 &&
         shape.heads * shape.rows < most && shape.shared * shape.columns < most &&
         shape.sequences() * shape.heads * scan.chunks() < most && is_hopper();
}

inline Status launch_chunk_backward_wgmma(const Executor& executor, const ChunkScan<BFloat16>& scan,
                                          const ChunkGradients<BFloat16>& g, const ChunkSums<BFloat16>& sums,
                                          int64_t blocks, const Positions<BFloat16>* decays) {
  const ChunkShape& shape = scan.shape;
  const int64_t sequences = shape.sequences(), states = sequences * shape.heads * scan.chunks();
  BackwardWgmmaMaps maps;
  Status status;
  auto map = [&](CUtensorMap& to, const BFloat16* at, int64_t arrays, int64_t rows, int64_t columns) {
    if (status.ok()) status = tensor_map(to, at, arrays, rows, columns, chunk_side);
  };
  map(maps.x, scan.x, sequences, shape.length, shape.heads * shape.rows);
  map(maps.dy, g.dy, sequences, shape.length, shape.heads * shape.rows);
  map(maps.b, scan.b, sequences, shape.length, shape.shared * shape.columns);
  map(maps.c, scan.c, sequences, shape.length, shape.shared * shape.columns);
  map(maps.h, g.states, states, shape.rows, shape.columns);
  map(maps.dh, sums.dstates, states, shape.rows, shape.columns);
  if (!status.ok()) return status;
  return launch_chunks(executor, chunk_backward_wgmma, blocks, backward_threads, sizeof(BackwardWgmmaShared), scan, g,
                       sums, maps, decays);
}

}  // namespace internal
}  // namespace baracuda
