// The suppress pattern on CPU threads: each element in order is compared with those that are kept, a range at a time.
#pragma once

#include <algorithm>
#include <vector>

#include "suppress.h"

namespace baracuda {
namespace internal {

// What is kept, in lanes.
template <class Sum>
struct KeptBoxes {
  static constexpr int64_t lanes = 64;
  std::vector<Sum> left, top, right, bottom, area;
  std::vector<int64_t> of_class;

  explicit KeptBoxes(int64_t most, bool has_classes) {
    int64_t padded = (most + lanes - 1) / lanes * lanes;
    for (auto* part : {&left, &top, &right, &bottom, &area}) part->resize(padded);
    if (has_classes) of_class.resize(padded);
  }
  void set(int64_t i, const Box<Sum>& box) {
    left[i] = box.left, top[i] = box.top, right[i] = box.right, bottom[i] = box.bottom, area[i] = box.area;
  }
  // What is after the last is a box of zeros, of no area in common with any.
  bool suppress(int64_t count, const Box<Sum>& box, int64_t own_class, Sum limit, Sum next) const {
    for (int64_t first = 0; first < count; first += lanes) {
      int found = 0, unsure = 0;
      for (int64_t i = first; i < first + lanes; ++i) {
        int is_alike = of_class.empty() || of_class[i] == own_class;
        Overlap<Sum> overlap(at(i), box);
        int is_above = overlap.is_surely_above(next), is_not = overlap.is_surely_not_above(limit);
        found |= is_above & is_alike, unsure |= ~(is_above | is_not) & is_alike;
      }
      if (found) return true;
      for (int64_t i = first; unsure && i < first + lanes; ++i)
        if ((of_class.empty() || of_class[i] == own_class) && Overlap<Sum>(at(i), box).is_above(limit)) return true;
    }
    return false;
  }

 private:
  Box<Sum> at(int64_t i) const {
    Box<Sum> box;
    box.left = left[i], box.top = top[i], box.right = right[i], box.bottom = bottom[i], box.area = area[i];
    return box;
  }
};

}  // namespace internal

template <class T>
Status suppress(const Executor& executor, const Suppression<T>& work) {
  using Sum = typename Suppression<T>::Sum;
  parallel_for(executor, work.batches, work.count * (work.count + 64) / 4, [&](int64_t batch) {
    const T* boxes = work.boxes + batch * work.count * 4;
    const int32_t* order = work.order + batch * work.count;
    int32_t* indices = work.indices + batch * work.size;
    internal::KeptBoxes<Sum> kept(std::min(work.count, work.size), work.classes.are_many());
    int64_t number = 0;
    for (int64_t i = 0; i < work.count && number < work.size; ++i) {
      int32_t index = order[i];
      Box<Sum> box(boxes + int64_t(index) * 4);
      int64_t own_class = work.classes.of(batch * work.count + index);
      if (kept.suppress(number, box, own_class, work.limit, work.next)) continue;
      kept.set(number, box);
      if (work.classes.are_many()) kept.of_class[number] = own_class;
      indices[number++] = index;
    }
    std::fill(indices + number, indices + work.size, -1);
    work.kept[batch] = int32_t(number);
  });
  return {};
}

}  // namespace baracuda
