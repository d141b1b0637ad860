// Tasks on CPU threads: compiled once for all kernels.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "executor.h"

namespace baracuda {
namespace {

void pause_thread() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
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

}  // namespace

void run_tasks(const Executor& executor, int64_t tasks, int64_t cost, TaskBody body) {
  constexpr int64_t grain = 1 << 16;
  int64_t workers = 1 + std::min({executor.threads - 1, tasks - 1, tasks * cost / grain});
  if (workers <= 1) return body.run(body.body, 0, tasks);
  auto shared = std::make_shared<Shared>(workers, tasks);
  auto work = [shared, workers, tasks, body](int64_t own) {
    int64_t mine = 0;
    for (int64_t i = 0; i < workers; ++i) {
      Range& range = shared->ranges[size_t((own + i) % workers)];
      for (int64_t task; (task = range.next.fetch_add(1)) < range.end; ++mine) body.run(body.body, task, task + 1);
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

}  // namespace baracuda
