// Where a pattern's driver runs: the threads of a CPU pool, or a CUDA stream. Neither knows XLA.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef BARACUDA_CUDA
#include <cuda_runtime.h>
#else
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>
#endif

namespace baracuda {

// Empty when all is well; otherwise what went wrong, in static storage.
struct Status {
  const char* error = nullptr;
  bool ok() const { return error == nullptr; }
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#ifdef BARACUDA_CUDA

// Scratch memory comes with the call, as a buffer of the program. Memory of XLA's scratch allocator is given back when
// the handler returns, while a CUDA graph that recorded the handler goes on writing to it.
struct Executor {
  cudaStream_t stream;
  char* workspace = nullptr;
  size_t workspace_bytes = 0;

  // The next piece of the workspace, or null.
  template <class T>
  T* scratch(int64_t count) {
    size_t bytes = (size_t(count) * sizeof(T) + 255) / 256 * 256;
    if (bytes > workspace_bytes) return nullptr;
    T* piece = reinterpret_cast<T*>(workspace);
    workspace += bytes, workspace_bytes -= bytes;
    return piece;
  }
};

inline constexpr Status small_workspace{"the workspace is too small"};

inline Status launched() {
  cudaError_t error = cudaGetLastError();
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

#else

// Its patterns take scratch memory from the heap.
struct Executor {
  int64_t threads;
  void* pool;
  void (*schedule)(void* pool, std::function<void()> task);
};

inline void pause_thread() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Runs body(0) ... body(tasks - 1), each once, in any order. `cost` is a task's number of simple steps: work too small
// to pay for waking threads stays on the caller. The caller takes tasks too and waits only for tasks that have begun,
// so it may itself be the pool's last free thread. It sleeps only if that takes longer than to be woken would.
//
// Each thread has a range of neighbouring tasks, and helps others when it is through: so a thread finds in its cache
// what it wrote in the call before.
template <class Body>
void parallel_for(const Executor& executor, int64_t tasks, int64_t cost, const Body& body) {
  constexpr int64_t grain = 1 << 16;
  int64_t workers = 1 + std::min({executor.threads - 1, tasks - 1, tasks * cost / grain});
  if (workers <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task);
    return;
  }
  struct Range {
    alignas(64) std::atomic<int64_t> next;
    int64_t end;
  };
  struct Shared {
    std::vector<Range> ranges;
    std::atomic<int64_t> done{0};
    std::mutex mutex;
    std::condition_variable all_done;

    Shared(int64_t workers, int64_t tasks) : ranges(size_t(workers)) {
      for (int64_t i = 0; i < workers; ++i) {
        ranges[size_t(i)].next = i * tasks / workers;
        ranges[size_t(i)].end = (i + 1) * tasks / workers;
      }
    }
  };
  auto shared = std::make_shared<Shared>(workers, tasks);
  auto work = [shared, workers, tasks, &body](int64_t own) {
    int64_t mine = 0;
    for (int64_t i = 0; i < workers; ++i) {
      Range& range = shared->ranges[size_t((own + i) % workers)];
      for (int64_t task; (task = range.next.fetch_add(1)) < range.end; ++mine) body(task);
    }
    if (mine == 0 || shared->done.fetch_add(mine) + mine < tasks) return;
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->all_done.notify_all();
  };
  for (int64_t i = 1; i < workers; ++i) executor.schedule(executor.pool, [work, i] { work(i); });
  work(0);
  auto all_done = [&] { return shared->done == tasks; };
  using Clock = std::chrono::steady_clock;
  for (auto end = Clock::now() + std::chrono::microseconds(100); !all_done() && Clock::now() < end;) pause_thread();
  if (all_done()) return;
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->all_done.wait(lock, all_done);
}

#endif

}  // namespace baracuda
