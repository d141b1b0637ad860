// A range of a row as a block reads it through shared memory: forward, and once more backward.
#pragma once

#include "copy_async_cuda.h"
#include "row_loads_cuda.h"

namespace baracuda {
namespace internal {

// Each thread has a ring of copies that are on their way, in which some chunks that follow each other have a slot.
template <class Loads, class Key, int threads, int stages, int chunks_of_slot>
struct RowRing {
  using Words = typename Loads::Words;

  const Loads& loads;
  Words (*words)[threads];  // so many as slots have chunks
  Key filling;              // of what is not in the range

  // Calls body(words, chunk) for all loads, by all threads together; or backward, where the last chunks are in shared
  // memory as the read before left them, and those before in the cache.
  template <bool backward, class Body>
  __device__ void each(bool has_last, const Body& body) const {
    constexpr int32_t step = backward ? -1 : 1, ahead = step * stages, chunks = chunks_of_slot;
    constexpr uint32_t size = threads * sizeof(Words), slot = chunks * size;
    const int32_t number = int32_t(loads.chunks() + chunks - 1) / chunks;
    const int32_t first_whole = loads.before > 0, end_whole = int32_t(loads.length / (chunks * Loads::chunk));
    const uint32_t ring = uint32_t(__cvta_generic_to_shared(&words[0][threadIdx.x]));
    auto start = [&](int32_t of, uint32_t to) {
      if (of >= 0 && of < number)
#pragma unroll 1
        for (int k = 0; k < chunks; ++k) {
          uint32_t first = loads.offset(uint32_t(chunks * of + k));
          if (first >= loads.before && first + Loads::elements <= loads.length)
            copy_async(to + k * size, loads.from + first, 16);
          else
            store_shared(to + k * size, loads.load_words(first, filling));
        }
      __pipeline_commit();
    };
    int32_t next = backward ? number - 1 : 0;
    uint32_t at = uint32_t(next % stages) * slot;
#pragma unroll 1
    for (int32_t i = 0; i < stages; ++i, next += step) {
      if (has_last)
        __pipeline_commit();
      else
        start(next, ring + max(next, 0) % stages * slot);
    }
    const Key* from = loads.from + int64_t(next) * (chunks * Loads::chunk) + threadIdx.x * Loads::elements;
#pragma unroll 1
    for (int32_t turn = number; turn > 0; --turn) {
      __pipeline_wait_prior(stages - 1);
      Words of_slot[chunks];
#pragma unroll
      for (int k = 0; k < chunks; ++k) of_slot[k] = load_shared(ring + at + k * size);
      // One branch for all threads where the chunks are whole, as all are but the first and the last.
      if (backward ? next >= first_whole : next < end_whole) {
#pragma unroll
        for (int k = 0; k < chunks; ++k) copy_async(ring + at + k * size, from + k * Loads::chunk, 16);
        __pipeline_commit();
      } else {
        start(next, ring + at);
      }
#pragma unroll
      for (int k = 0; k < chunks; ++k) body(of_slot[k], chunks * (next - ahead) + k);
      next += step, from += step * int32_t(chunks * Loads::chunk);
      if constexpr (backward)
        at = at == 0 ? (stages - 1) * slot : at - slot;
      else
        at = at == (stages - 1) * slot ? 0 : at + slot;
    }
    __syncthreads();
  }

 private:
  static __device__ Words load_shared(uint32_t at) {
    Words words;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.lane[0]), "=r"(words.lane[1]), "=r"(words.lane[2]), "=r"(words.lane[3])
                 : "r"(at)
                 : "memory");
    return words;
  }
  static __device__ void store_shared(uint32_t at, const Words& words) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(words.lane[0]), "r"(words.lane[1]),
                 "r"(words.lane[2]), "r"(words.lane[3])
                 : "memory");
  }
};

}  // namespace internal
}  // namespace baracuda
