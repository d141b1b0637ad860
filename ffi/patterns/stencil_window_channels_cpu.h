// The stencil pattern with windows on a CPU, the channels last: neighboring channels are lanes, and each axis has a
// list of the taps that an element of x has and of their windows.
#pragma once

#include "stencil_window_rows_cpu.h"

namespace baracuda {
namespace internal {

// Up to 32 neighboring channels of x and of y, which are lanes; of y those of one m < multiplier.
template <class T>
class StencilChannelTile {
 public:
  using Wide = Accumulator<T>;
  static constexpr int packs = channel_lanes / Pack<Wide>::lanes;

  StencilChannelTile(const Depthwise<T>& conv, int64_t sequence, int64_t first)
      : conv_(conv),
        shape_(conv.shape),
        sequence_(sequence),
        first_(first),
        count_(std::min<int64_t>(channel_lanes, shape_.channels - first)),
        of_x_(reach_of_x(shape_, 0), reach_of_x(shape_, 1), std::max<int64_t>(1, shape_.in[2]) * channel_lanes),
        of_y_(reach_of_y(shape_, 0), reach_of_y(shape_, 1), std::max<int64_t>(1, shape_.out[2]) * channel_lanes),
        factors_(shape_.taps() * channel_lanes),
        bias_(channel_lanes) {}

  void forward(int64_t begin, int64_t end, const T* bias, T* y) {
    for (int64_t m = 0; m < shape_.multiplier; ++m) {
      load_factors(m);
      const T* of_group = bias + sequence_ / shape_.batches * shape_.outputs();
      for (int64_t k = 0; k < count_; ++k) bias_[k] = Wide(of_group[(first_ + k) * shape_.multiplier + m]);
      for (int64_t row = begin; row < end; ++row) {
        find_rows(row);
        for (int64_t i = 0; i < shape_.out[2]; ++i) {
          Pack<Wide> sums[packs] = {};
          const Wide* factors = factors_.data();
          for (const Wide* from : rows_)
            for (int64_t c = 0; c < shape_.window[2]; ++c, factors += channel_lanes)
              add(sums, factors, element(from, shape_.read(2, i, c)));
          Wide of_lanes[channel_lanes];
          for (int p = 0; p < packs; ++p) sums[p].store(of_lanes + p * Pack<Wide>::lanes);
          int64_t to = shape_.y_index(sequence_, 0, row * shape_.out[2] + i) + m;
          for (int64_t k = 0; k < count_; ++k) y[to + (first_ + k) * shape_.multiplier] = T(of_lanes[k] + bias_[k]);
        }
      }
    }
  }

  // [taps + 1, outputs] of one chunk.
  void dweight(int64_t begin, int64_t end, const T* dy, Wide* to) {
    int64_t taps = shape_.taps();
    std::vector<Wide> sums((taps + 1) * channel_lanes), ones(channel_lanes, Wide(1));
    for (int64_t m = 0; m < shape_.multiplier; ++m) {
      multiple_ = m, of_y_.forget();
      std::fill(sums.begin(), sums.end(), Wide(0));
      for (int64_t row = begin; row < end; ++row) {
        find_rows(row);
        const Wide* of_y = y_row(dy, row / shape_.out[1], row % shape_.out[1]);
        auto add_row = [&](Wide* to, const auto& of_x) {
          Pack<Wide> some[packs];
          for (int p = 0; p < packs; ++p) some[p] = Pack<Wide>::load(to + p * Pack<Wide>::lanes);
          for (int64_t i = 0; i < shape_.out[2]; ++i) add(some, of_y + i * channel_lanes, of_x(i));
          for (int p = 0; p < packs; ++p) some[p].store(to + p * Pack<Wide>::lanes);
        };
        Wide* to = sums.data();
        for (const Wide* from : rows_)
          for (int64_t c = 0; c < shape_.window[2]; ++c, to += channel_lanes)
            add_row(to, [&](int64_t i) { return element(from, shape_.read(2, i, c)); });
        add_row(to, [&](int64_t) { return ones.data(); });
      }
      for (int64_t t = 0; t <= taps; ++t)
        for (int64_t k = 0; k < count_; ++k)
          to[t * shape_.outputs() + (first_ + k) * shape_.multiplier + m] = sums[t * channel_lanes + k];
    }
  }

  void dx(int64_t begin, int64_t end, const AxisHits (&hits)[3], const T* dy, T* dx) {
    std::vector<Wide> total;
    if (shape_.multiplier > 1) total.resize((end - begin) * shape_.in[2] * channel_lanes);
    for (int64_t m = 0; m < shape_.multiplier; ++m) {
      load_factors(m), of_y_.forget();
      for (int64_t row = begin; row < end; ++row)
        for (int64_t j = 0; j < shape_.in[2]; ++j) {
          Pack<Wide> sums[packs] = {};
          Wide* kept =
              m || shape_.multiplier > 1 ? &total[((row - begin) * shape_.in[2] + j) * channel_lanes] : nullptr;
          if (m)
            for (int p = 0; p < packs; ++p) sums[p] = Pack<Wide>::load(kept + p * Pack<Wide>::lanes);
          hits[0].each(row / shape_.in[1], [&](int64_t a, int64_t d) {
            hits[1].each(row % shape_.in[1], [&](int64_t b, int64_t h) {
              const Wide *of_y = y_row(dy, d, h),
                         *factors = &factors_[(a * shape_.window[1] + b) * shape_.window[2] * channel_lanes];
              hits[2].each(
                  j, [&](int64_t c, int64_t w) { add(sums, factors + c * channel_lanes, of_y + w * channel_lanes); });
            });
          });
          Wide of_lanes[channel_lanes];
          Wide* lanes = kept ? kept : of_lanes;
          for (int p = 0; p < packs; ++p) sums[p].store(lanes + p * Pack<Wide>::lanes);
          if (m + 1 < shape_.multiplier) continue;
          T* to = dx + shape_.x_index(sequence_, first_, row * shape_.in[2] + j);
          for (int64_t k = 0; k < count_; ++k) to[k] = T(lanes[k]);
        }
    }
  }

 private:
  static void add(Pack<Wide> (&sums)[packs], const Wide* a, const Wide* b) {
    for (int p = 0; p < packs; ++p)
      sums[p].add(Pack<Wide>::load(a + p * Pack<Wide>::lanes), Pack<Wide>::load(b + p * Pack<Wide>::lanes));
  }
  const Wide* element(const Wide* row, int64_t w) const {
    return shape_.is_inside(2, w) ? row + w * channel_lanes : zero_;
  }
  void load_factors(int64_t m) {
    multiple_ = m;
    int64_t group = sequence_ / shape_.batches;
    for (int64_t k = 0; k < count_; ++k) {
      int64_t output = (first_ + k) * shape_.multiplier + m;
      for (int64_t t = 0; t < shape_.taps(); ++t)
        factors_[t * channel_lanes + k] = Wide(conv_.weight[shape_.weight_index(group, output, t)]);
    }
  }
  // The rows of x that a row of y reads, in the order of taps.
  void find_rows(int64_t row) {
    rows_.clear();
    int64_t i = row / shape_.out[1], j = row % shape_.out[1];
    for (int64_t a = 0; a < shape_.window[0]; ++a)
      for (int64_t b = 0; b < shape_.window[1]; ++b) {
        int64_t d = shape_.read(0, i, a), h = shape_.read(1, j, b);
        bool is_inside = shape_.is_inside(0, d) && shape_.is_inside(1, h);
        rows_.push_back(is_inside ? x_row(d, h) : of_x_.zeros());
      }
  }
  const Wide* x_row(int64_t d, int64_t h) {
    int64_t index = d * shape_.in[1] + h;
    return of_x_.row(d, h, index, [&](Wide* to) {
      const T* from = conv_.x + shape_.x_index(sequence_, first_, index * shape_.in[2]);
      for (int64_t w = 0; w < shape_.in[2]; ++w, to += channel_lanes, from += shape_.channels) {
        BARACUDA_INDEPENDENT
        for (int64_t k = 0; k < count_; ++k) to[k] = Wide(from[k]);
      }
    });
  }
  const Wide* y_row(const T* dy, int64_t i, int64_t j) {
    int64_t index = i * shape_.out[1] + j, apart = shape_.multiplier;
    return of_y_.row(i, j, index, [&](Wide* to) {
      const T* from = dy + shape_.y_index(sequence_, first_ * apart + multiple_, index * shape_.out[2]);
      for (int64_t w = 0; w < shape_.out[2]; ++w, to += channel_lanes, from += shape_.outputs()) {
        if (apart == 1) {
          BARACUDA_INDEPENDENT
          for (int64_t k = 0; k < count_; ++k) to[k] = Wide(from[k]);
        } else {
          for (int64_t k = 0; k < count_; ++k) to[k] = Wide(from[k * apart]);
        }
      }
    });
  }

  const Depthwise<T>& conv_;
  const DepthwiseShape& shape_;
  int64_t sequence_, first_, count_, multiple_ = 0;
  RowRing<Wide> of_x_, of_y_;
  std::vector<Wide> factors_, bias_;
  std::vector<const Wide*> rows_;
  Wide zero_[channel_lanes] = {};
};

}  // namespace internal
}  // namespace baracuda
