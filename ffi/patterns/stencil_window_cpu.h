// The stencil pattern with windows, on CPU threads. A row of the source is widened once, into a ring of the rows that a
// window reaches, with the zeros around it.
//
// With the channels first the elements of a row are lanes. With strides the row is kept in phases, those of its
// elements that are equal modulo the stride, so that each tap reads neighbors; and so are the sums of dx. With the
// channels last neighboring channels are lanes, and each axis has a list of the taps that an element of x has and of
// their windows.
//
// Sums for weights are added by rows, which are in chunks by the shape of one channel, and then by chunks and batches.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../kernels/depthwise.h"
#include "executor.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// A vector of 32 bytes.
template <class Wide>
struct Pack {
  static constexpr int lanes = 32 / sizeof(Wide);
  typedef Wide Type __attribute__((vector_size(32)));
  typedef std::conditional_t<sizeof(Wide) == 8, int64_t, int32_t> Bits __attribute__((vector_size(32)));
  Type value{};

  static Pack load(const Wide* from) {
    Pack pack;
    std::memcpy(&pack.value, from, sizeof(Type));
    return pack;
  }
  // The first lanes, and 0 in the others, whatever is there.
  static Pack load(const Wide* from, int64_t count) {
    Pack pack = load(from);
    Bits keep{};
    for (int k = 0; k < lanes; ++k) keep[k] = k < count ? -1 : 0;
    pack.value = (Type)((Bits)pack.value & keep);
    return pack;
  }
  void store(Wide* to) const { std::memcpy(to, &value, sizeof(Type)); }
  void add(const Pack& a, const Pack& b) { value += a.value * b.value; }
};

inline constexpr int most_rows_taps = 9, channel_lanes = 32;

// Calls body(integral_constant<int, count>, first) for chunks of at most nine taps.
template <class Body, int... counts>
void by_count(int64_t count, const Body& body, std::integer_sequence<int, counts...>) {
  ((count == counts + 1 ? body(std::integral_constant<int, counts + 1>{}) : void()), ...);
}
template <class Body>
void for_taps(int64_t taps, const Body& body) {
  for (int64_t first = 0; first < taps; first += most_rows_taps)
    by_count(
        std::min<int64_t>(most_rows_taps, taps - first), [&](auto count) { body(count, first); },
        std::make_integer_sequence<int, most_rows_taps>{});
}

// to[i] += sum over taps of factors[t] from[t][i], or = where it is the first such sum.
template <bool first, class Wide, int... t>
void add_some(Wide* to, const Wide* const* from, const Wide* factors, int64_t count, std::integer_sequence<int, t...>) {
  const Wide* of[] = {from[t]...};
  Wide by[] = {factors[t]...};
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    Wide sum = first ? Wide(0) : to[i];
    ((sum += by[t] * of[t][i]), ...);
    to[i] = sum;
  }
}
// sums[t] += a[i] from[t][i], in lanes
template <class Wide, int... t>
void dot_some(Pack<Wide>* sums, const Wide* a, const Wide* const* from, int64_t count,
              std::integer_sequence<int, t...>) {
  constexpr int lanes = Pack<Wide>::lanes;
  Pack<Wide> some[] = {sums[t]...};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto factor = Pack<Wide>::load(a + i);
    ((some[t].add(factor, Pack<Wide>::load(from[t] + i))), ...);
  }
  if (i < count) {
    auto factor = Pack<Wide>::load(a + i, count - i);
    ((some[t].add(factor, Pack<Wide>::load(from[t] + i, count - i))), ...);
  }
  ((sums[t] = some[t]), ...);
}

// Taps of a row: the addresses that they read, and their factors.
template <class Wide>
struct RowTaps {
  std::vector<const Wide*> from;
  std::vector<Wide> factors;

  void clear() { from.clear(), factors.clear(); }
  void push(const Wide* address, Wide factor) { from.push_back(address), factors.push_back(factor); }
  void add_to(Wide* to, int64_t count) const { add<false>(to, count); }
  void write_to(Wide* to, int64_t count) const { add<true>(to, count); }

 private:
  template <bool is_new>
  void add(Wide* to, int64_t count) const {
    for_taps(int64_t(from.size()), [&](auto taps, int64_t first) {
      auto each = std::make_integer_sequence<int, decltype(taps)::value>{};
      if (is_new && first == 0)
        add_some<true>(to, &from[first], &factors[first], count, each);
      else
        add_some<false>(to, &from[first], &factors[first], count, each);
    });
  }
};

// The rows of a plane that windows reach, widened when they are first asked for. Rows outside are zeros.
template <class Wide>
class RowRing {
 public:
  // `depth` planes and `height` rows are reached by one window.
  RowRing(int64_t depth, int64_t height, int64_t size)
      : depth_(depth), height_(height), size_(size), rows_((depth * height + 1) * size), held_(depth * height, -1) {}

  const Wide* zeros() const { return rows_.data() + depth_ * height_ * size_; }
  // widen(to) writes row (d, h), of an index of its own, where the memory has zeros or a row before.
  template <class Widen>
  const Wide* row(int64_t d, int64_t h, int64_t index, const Widen& widen) {
    int64_t slot = d % depth_ * height_ + h % height_;
    Wide* to = rows_.data() + slot * size_;
    if (held_[slot] != index) widen(to), held_[slot] = index;
    return to;
  }
  // Of another plane.
  void forget() { std::fill(held_.begin(), held_.end(), -1); }

 private:
  int64_t depth_, height_, size_;
  std::vector<Wide> rows_;
  std::vector<int64_t> held_;
};

// The taps of each element of an axis of x, and their windows.
struct AxisHits {
  struct Hit {
    int64_t tap, window;
  };
  std::vector<int64_t> begins;
  std::vector<Hit> hits;

  AxisHits(const DepthwiseShape& shape, int axis) {
    for (int64_t j = 0; j < shape.in[axis]; ++j) {
      begins.push_back(int64_t(hits.size()));
      for (int64_t k = 0; k < shape.window[axis]; ++k)
        if (int64_t i = shape.window_at(axis, j, k); i >= 0) hits.push_back({k, i});
    }
    begins.push_back(int64_t(hits.size()));
  }
  template <class Body>
  void each(int64_t j, const Body& body) const {
    for (int64_t i = begins[j]; i < begins[j + 1]; ++i) body(hits[i].tap, hits[i].window);
  }
};

// How many rows a ring must have that steps along an axis of x, or of dy.
inline int64_t reach_of_x(const DepthwiseShape& shape, int axis) {
  return std::max<int64_t>(1, std::min(shape.in[axis], (shape.window[axis] - 1) * shape.dilation[axis] + 1));
}
inline int64_t reach_of_y(const DepthwiseShape& shape, int axis) {
  int64_t reach = (shape.window[axis] - 1) * shape.dilation[axis] / shape.stride[axis] + 1;
  return std::max<int64_t>(1, std::min(shape.out[axis], reach));
}

// What tasks share: chunks of the rows of a plane, where there are too few planes for many threads.
struct RowChunks {
  int64_t count;
  RowChunks(int64_t planes, int64_t rows)
      : count(std::clamp<int64_t>(ceil_div(32, std::max<int64_t>(planes, 1)), 1, std::max<int64_t>(1, rows / 8))) {}
  int64_t begin(int64_t chunk, int64_t rows) const { return chunk * rows / count; }
};

// ---------------------------------------------------------------------------------------------------------------------
// The channels first

// Sums over windows without strides along the last two axes: the rows of several windows, with zeros around, are next
// to each other, and each tap is an offset.
template <class T>
class StencilBand {
 public:
  using Wide = Accumulator<T>;

  // Of a source [in] and a result [out]; `before` may be negative.
  StencilBand(const int64_t (&in)[3], const int64_t (&out)[3], const DepthwiseShape& shape, const int64_t (&before)[3])
      : in_(in), out_(out), shape_(shape), before_(before), pitch_(out[2] + reach(2)) {
    constexpr int64_t enough = 1 << 12;  // elements, twice of which a first-level cache may hold
    int64_t rows = enough / (shape.window[0] * pitch_) - reach(1);
    rows_ = std::clamp<int64_t>(rows, std::min<int64_t>(out[1], 1 + reach(1)), out[1]);
    source_ = std::make_unique_for_overwrite<Wide[]>(shape.window[0] * (rows_ + reach(1)) * pitch_);
    sums_ = std::make_unique_for_overwrite<Wide[]>(rows_ * pitch_);
  }
  // write(row, sums) for rows [begin, end), of sums with factors(a, b, c).
  template <class Factors, class Write>
  void run(const T* from, int64_t begin, int64_t end, const Factors& factors, const Write& write) {
    for (int64_t row = begin, count; row < end; row += count) {
      int64_t d = row / out_[1], h = row % out_[1];
      count = std::min({rows_, end - row, out_[1] - h});
      int64_t height = count + reach(1);
      taps_.clear();
      for (int64_t a = 0; a < shape_.window[0]; ++a) {
        int64_t depth = d * shape_.stride[0] + a * shape_.dilation[0] - before_[0];
        Wide* to = source_.get() + a * height * pitch_;
        for (int64_t i = 0; i < height; ++i) widen(from, depth, h + i - before_[1], to + i * pitch_);
        for (int64_t b = 0; b < shape_.window[1]; ++b)
          for (int64_t c = 0; c < shape_.window[2]; ++c)
            taps_.push(to + b * shape_.dilation[1] * pitch_ + c * shape_.dilation[2], factors(a, b, c));
      }
      taps_.write_to(sums_.get(), (count - 1) * pitch_ + out_[2]);
      for (int64_t i = 0; i < count; ++i) write(row + i, sums_.get() + i * pitch_);
    }
  }

 private:
  int64_t reach(int axis) const { return (shape_.window[axis] - 1) * shape_.dilation[axis]; }
  void widen(const T* from, int64_t d, int64_t h, Wide* to) const {
    if (d < 0 || d >= in_[0] || h < 0 || h >= in_[1]) {
      std::fill_n(to, pitch_, Wide(0));
      return;
    }
    from += (d * in_[1] + h) * in_[2];
    int64_t first = std::clamp<int64_t>(before_[2], 0, pitch_);
    int64_t end = std::clamp<int64_t>(in_[2] + before_[2], first, pitch_), before = before_[2];
    std::fill(to, to + first, Wide(0));
    BARACUDA_INDEPENDENT
    for (int64_t i = first; i < end; ++i) to[i] = Wide(from[i - before]);
    std::fill(to + end, to + pitch_, Wide(0));
  }

  const int64_t (&in_)[3], (&out_)[3];
  const DepthwiseShape& shape_;
  const int64_t (&before_)[3];
  int64_t pitch_, rows_;
  std::unique_ptr<Wide[]> source_, sums_;
  RowTaps<Wide> taps_;
};

template <class T>
class StencilPlane {
 public:
  using Wide = Accumulator<T>;

  explicit StencilPlane(const Depthwise<T>& conv)
      : conv_(conv),
        shape_(conv.shape),
        stride_(shape_.stride[2]),
        reach_((shape_.window[2] - 1) * shape_.dilation[2]),
        phase_(ceil_div((shape_.out[2] - 1) * stride_ + reach_ + 1, stride_) + Pack<Wide>::lanes),
        // Windows before the first that elements of dx may ask for, and those that are read at all.
        margin_(reach_ / stride_),
        length_(margin_ + std::max(shape_.out[2], (shape_.in[2] - 1 + shape_.before[2]) / stride_ + 1)),
        of_x_(reach_of_x(shape_, 0), reach_of_x(shape_, 1), phase_ * stride_),
        of_y_(reach_of_y(shape_, 0), reach_of_y(shape_, 1), length_ + Pack<Wide>::lanes),
        sums_(length_) {}

  // Whether the weights of the windows on a channel of x are, so that zeros around dy add nothing.
  bool is_finite(int64_t channel) const {
    int64_t sequence = channel / shape_.channels, group = sequence / shape_.batches;
    int64_t output = group * shape_.outputs() + channel % shape_.channels * shape_.multiplier;
    const T* begin = conv_.weight + output * shape_.taps();
    return std::all_of(begin, begin + shape_.multiplier * shape_.taps(),
                       [](T w) { return Wide(w) - Wide(w) == Wide(0); });
  }

  // Rows [begin, end) of a plane of y.
  void forward(int64_t plane, int64_t begin, int64_t end, const T* bias, T* y) {
    begin_plane(plane);
    for (int64_t row = begin; row < end; ++row) {
      taps_.clear();
      each_row(row, [&](int64_t a, int64_t b, const Wide* from) {
        for (int64_t c = 0; c < shape_.window[2]; ++c) taps_.push(from + offset(c), factor(a, b, c));
      });
      std::fill_n(sums_.data(), shape_.out[2], Wide(0));
      taps_.add_to(sums_.data(), shape_.out[2]);
      T* to = y + (plane * shape_.out[0] * shape_.out[1] + row) * shape_.out[2];
      Wide of_output = Wide(bias[output_]);
      const Wide* sums = sums_.data();
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < shape_.out[2]; ++i) to[i] = T(sums[i] + of_output);
    }
  }

  // The sums for the weights, and last for the bias, of rows [begin, end) of a plane of dy.
  void dweight(int64_t plane, int64_t begin, int64_t end, const T* dy, Wide* to) {
    begin_plane(plane);
    int64_t taps = shape_.taps();
    std::vector<Pack<Wide>> sums(taps + 1);
    std::vector<const Wide*> from(taps + 1);
    std::vector<Wide> ones(shape_.out[2] + Pack<Wide>::lanes, Wide(1));
    for (int64_t row = begin; row < end; ++row) {
      auto tap = from.begin();
      each_row(row, [&](int64_t, int64_t, const Wide* x) {
        for (int64_t c = 0; c < shape_.window[2]; ++c) *tap++ = x + offset(c);
      });
      *tap = ones.data();
      const Wide* of_y = y_row(dy, row / shape_.out[1], row % shape_.out[1]) + margin_;
      for_taps(taps + 1, [&](auto count, int64_t first) {
        dot_some(&sums[first], of_y, &from[first], shape_.out[2],
                 std::make_integer_sequence<int, decltype(count)::value>{});
      });
    }
    for (int64_t t = 0; t <= taps; ++t) {
      to[t] = 0;
      for (int k = 0; k < Pack<Wide>::lanes; ++k) to[t] += sums[t].value[k];
    }
  }

  // Rows [begin, end) of a plane of dx, of the channels that its windows give.
  void dx(int64_t plane, int64_t begin, int64_t end, const AxisHits (&hits)[2], const T* dy, T* dx) {
    int64_t columns = shape_.in[2], before = shape_.before[2];
    std::vector<Wide> total(columns);
    for (int64_t row = begin; row < end; ++row) {
      int64_t d = row / shape_.in[1], h = row % shape_.in[1];
      T* to = dx + (plane * shape_.in[0] * shape_.in[1] + row) * columns;
      std::fill(total.begin(), total.end(), Wide(0));
      for (int64_t m = 0; m < shape_.multiplier; ++m) {
        begin_plane(plane * shape_.multiplier + m);
        for (int64_t phase = 0; phase < stride_; ++phase) {
          // Elements j = q stride + phase - before of x, whose windows are q minus what their tap says.
          int64_t first = phase >= before ? 0 : ceil_div(before - phase, stride_);
          int64_t end = columns - 1 + before < phase ? 0 : (columns - 1 + before - phase) / stride_ + 1;
          if (first >= end) continue;
          taps_.clear();
          hits[0].each(d, [&](int64_t a, int64_t i) {
            hits[1].each(h, [&](int64_t b, int64_t j) {
              const Wide* of_y = y_row(dy, i, j);
              for (int64_t c = 0; c < shape_.window[2]; ++c)
                if (int64_t at = c * shape_.dilation[2]; at % stride_ == phase)
                  taps_.push(of_y + margin_ + first - at / stride_, factor(a, b, c));
            });
          });
          Wide* sums = stride_ == 1 ? total.data() : sums_.data();
          if (stride_ > 1) std::fill_n(sums, end - first, Wide(0));
          taps_.add_to(sums, end - first);
          if (stride_ > 1)
            for (int64_t q = first; q < end; ++q) total[q * stride_ + phase - before] += sums[q - first];
        }
      }
      const Wide* from = total.data();
      BARACUDA_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) to[j] = T(from[j]);
    }
  }

 private:
  Wide factor(int64_t a, int64_t b, int64_t c) const {
    return Wide(conv_.weight[output_ * shape_.taps() + (a * shape_.window[1] + b) * shape_.window[2] + c]);
  }
  int64_t offset(int64_t c) const {
    int64_t at = c * shape_.dilation[2];
    return at % stride_ * phase_ + at / stride_;
  }
  // `plane` is one of y.
  void begin_plane(int64_t plane) {
    if (plane == plane_) return;
    plane_ = plane;
    int64_t sequence = plane / shape_.outputs();
    output_ = sequence / shape_.batches * shape_.outputs() + plane % shape_.outputs();
    x_ = conv_.x + (sequence * shape_.channels + plane % shape_.outputs() / shape_.multiplier) * shape_.in_plane();
    of_x_.forget(), of_y_.forget();
  }

  // body(a, b, row of x) for the taps of a row of y along the first two axes.
  template <class Body>
  void each_row(int64_t row, const Body& body) {
    int64_t i = row / shape_.out[1], j = row % shape_.out[1];
    for (int64_t a = 0; a < shape_.window[0]; ++a)
      for (int64_t b = 0; b < shape_.window[1]; ++b) {
        int64_t d = shape_.read(0, i, a), h = shape_.read(1, j, b);
        bool is_inside = shape_.is_inside(0, d) && shape_.is_inside(1, h);
        body(a, b, is_inside ? x_row(d, h) : of_x_.zeros());
      }
  }
  const Wide* x_row(int64_t d, int64_t h) {
    int64_t index = d * shape_.in[1] + h;
    return of_x_.row(d, h, index, [&](Wide* to) {
      const T* from = x_ + index * shape_.in[2];
      int64_t before = shape_.before[2];
      for (int64_t phase = 0; phase < stride_; ++phase, to += phase_) {
        // Of the elements q stride + phase - before those that are in the row.
        int64_t first = phase >= before ? 0 : ceil_div(before - phase, stride_);
        int64_t end = shape_.in[2] - 1 + before < phase ? 0 : (shape_.in[2] - 1 + before - phase) / stride_ + 1;
        end = std::min(end, phase_ - Pack<Wide>::lanes);
        if (stride_ == 1) {
          BARACUDA_INDEPENDENT
          for (int64_t q = first; q < end; ++q) to[q] = Wide(from[q - before]);
        } else {
          BARACUDA_INDEPENDENT
          for (int64_t q = first; q < end; ++q) to[q] = Wide(from[q * stride_ + phase - before]);
        }
      }
    });
  }
  // With `margin_` zeros before it, and zeros after.
  const Wide* y_row(const T* dy, int64_t i, int64_t j) {
    int64_t index = i * shape_.out[1] + j;
    return of_y_.row(i, j, index, [&](Wide* to) {
      const T* from = dy + (plane_ * shape_.out[0] * shape_.out[1] + index) * shape_.out[2];
      to += margin_;
      BARACUDA_INDEPENDENT
      for (int64_t k = 0; k < shape_.out[2]; ++k) to[k] = Wide(from[k]);
    });
  }

  const Depthwise<T>& conv_;
  const DepthwiseShape& shape_;
  int64_t stride_, reach_, phase_, margin_, length_;
  RowRing<Wide> of_x_, of_y_;
  std::vector<Wide> sums_;
  RowTaps<Wide> taps_;
  int64_t plane_ = -1, output_ = 0;
  const T* x_ = nullptr;
};

// ---------------------------------------------------------------------------------------------------------------------
// The channels last

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

// Rows of a plane of y.
template <class T>
void convolve_rows(const Depthwise<T>& conv, int64_t plane, int64_t begin, int64_t end, const T* bias, T* y) {
  using Wide = Accumulator<T>;
  const DepthwiseShape& shape = conv.shape;
  if (shape.stride[1] > 1 || shape.stride[2] > 1) return StencilPlane<T>(conv).forward(plane, begin, end, bias, y);
  int64_t sequence = plane / shape.outputs(), output = plane % shape.outputs();
  int64_t weights = sequence / shape.batches * shape.outputs() + output, columns = shape.out[2];
  const T *of_output = conv.weight + weights * shape.taps(),
          *x = conv.x + shape.x_index(sequence, output / shape.multiplier, 0);
  Wide more = Wide(bias[weights]);
  StencilBand<T>(shape.in, shape.out, shape, shape.before)
      .run(
          x, begin, end,
          [&](int64_t a, int64_t b, int64_t c) {
            return Wide(of_output[(a * shape.window[1] + b) * shape.window[2] + c]);
          },
          [&](int64_t row, const Wide* sums) {
            T* to = y + (plane * shape.out[0] * shape.out[1] + row) * columns;
            BARACUDA_INDEPENDENT
            for (int64_t i = 0; i < columns; ++i) to[i] = T(sums[i] + more);
          });
}

// Rows of a plane of dx, of one output for each channel and without strides: the same, with the window turned over.
template <class T>
void convolve_rows_back(const Depthwise<T>& conv, int64_t plane, int64_t begin, int64_t end, const T* dy, T* dx) {
  using Wide = Accumulator<T>;
  const DepthwiseShape& shape = conv.shape;
  const int64_t (&window)[3] = shape.window, columns = shape.in[2];
  int64_t sequence = plane / shape.channels;
  int64_t weights = sequence / shape.batches * shape.channels + plane % shape.channels, before[3];
  for (int a = 0; a < 3; ++a) before[a] = (window[a] - 1) * shape.dilation[a] - shape.before[a];
  const T* of_channel = conv.weight + weights * shape.taps();
  StencilBand<T>(shape.out, shape.in, shape, before)
      .run(
          dy + plane * shape.out_plane(), begin, end,
          [&](int64_t a, int64_t b, int64_t c) {
            int64_t tap = ((window[0] - 1 - a) * window[1] + window[1] - 1 - b) * window[2] + window[2] - 1 - c;
            return Wide(of_channel[tap]);
          },
          [&](int64_t row, const Wide* sums) {
            T* to = dx + (plane * shape.in[0] * shape.in[1] + row) * columns;
            BARACUDA_INDEPENDENT
            for (int64_t i = 0; i < columns; ++i) to[i] = T(sums[i]);
          });
}

// dweight and dbias, of the sums [groups, parts, taps + 1, outputs], or with the channels first [groups, parts,
// outputs, taps + 1].
template <class T>
void add_weight_parts(const Executor& executor, const DepthwiseShape& shape, const Accumulator<T>* sums, int64_t parts,
                      T* dweight, T* dbias) {
  int64_t taps = shape.taps(), outputs = shape.outputs();
  parallel_for(executor, shape.groups * outputs, parts * (taps + 1), [&](int64_t task) {
    int64_t group = task / outputs, output = task % outputs;
    for (int64_t t = 0; t <= taps; ++t) {
      Accumulator<T> total = 0;
      for (int64_t part = 0; part < parts; ++part)
        total += shape.channels_last ? sums[((group * parts + part) * (taps + 1) + t) * outputs + output]
                                     : sums[((group * parts + part) * outputs + output) * (taps + 1) + t];
      (t == taps ? dbias[task] : dweight[shape.weight_index(group, output, t)]) = T(total);
    }
  });
}

}  // namespace internal

template <class T>
Status stencil_window(const Executor& executor, const Depthwise<T>& conv, const T* bias, T* y) {
  using namespace internal;
  const DepthwiseShape& shape = conv.shape;
  int64_t rows = shape.out[0] * shape.out[1];
  if (shape.sequences() * shape.outputs() * shape.out_plane() == 0) return {};
  if (!shape.channels_last) {
    RowChunks chunks(shape.batches * shape.outputs(), rows);
    int64_t planes = shape.sequences() * shape.outputs();
    parallel_for(executor, planes * chunks.count, shape.out_plane() / chunks.count * (shape.taps() + 8) / 4,
                 [&](int64_t task) {
                   int64_t plane = task / chunks.count, chunk = task % chunks.count;
                   convolve_rows(conv, plane, chunks.begin(chunk, rows), chunks.begin(chunk + 1, rows), bias, y);
                 });
    return {};
  }
  int64_t tiles = ceil_div(shape.channels, channel_lanes);
  RowChunks chunks(shape.batches * tiles, rows);
  parallel_for(executor, shape.sequences() * tiles * chunks.count,
               shape.out_plane() / chunks.count * shape.multiplier * (shape.taps() + 8) * channel_lanes / 4,
               [&](int64_t task) {
                 int64_t chunk = task % chunks.count, tile = task / chunks.count % tiles;
                 StencilChannelTile<T>(conv, task / chunks.count / tiles, tile * channel_lanes)
                     .forward(chunks.begin(chunk, rows), chunks.begin(chunk + 1, rows), bias, y);
               });
  return {};
}

template <class T>
Status stencil_window_backward(const Executor& executor, const Depthwise<T>& conv, const T* dy, T* dx, T* dweight,
                               T* dbias) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const DepthwiseShape& shape = conv.shape;
  int64_t y_rows = shape.out[0] * shape.out[1], x_rows = shape.in[0] * shape.in[1], taps = shape.taps();
  int64_t tiles = shape.channels_last ? ceil_div(shape.channels, channel_lanes) : shape.channels;
  RowChunks chunks(shape.batches * tiles, std::min(y_rows, x_rows));
  int64_t parts = shape.batches * chunks.count;
  std::vector<Wide> sums(shape.groups * parts * (taps + 1) * shape.outputs());
  AxisHits depth(shape, 0), height(shape, 1), width(shape, 2);
  const AxisHits first_two[] = {depth, height}, all[] = {depth, height, width};
  int64_t lanes = shape.channels_last ? channel_lanes : 1;
  parallel_for(executor, shape.sequences() * tiles * chunks.count,
               (shape.in_plane() + shape.out_plane()) / chunks.count * shape.multiplier * (taps + 8) * lanes / 4,
               [&](int64_t task) {
                 int64_t chunk = task % chunks.count, tile = task / chunks.count % tiles,
                         sequence = task / chunks.count / tiles;
                 int64_t part = sequence * chunks.count + chunk;
                 int64_t y_begin = chunks.begin(chunk, y_rows), y_end = chunks.begin(chunk + 1, y_rows);
                 int64_t x_begin = chunks.begin(chunk, x_rows), x_end = chunks.begin(chunk + 1, x_rows);
                 if (shape.channels_last) {
                   StencilChannelTile<T> of_tile(conv, sequence, tile * channel_lanes);
                   of_tile.dweight(y_begin, y_end, dy, &sums[part * (taps + 1) * shape.outputs()]);
                   of_tile.dx(x_begin, x_end, all, dy, dx);
                   return;
                 }
                 StencilPlane<T> plane(conv);
                 for (int64_t m = 0; m < shape.multiplier; ++m) {
                   int64_t output = tile * shape.multiplier + m;
                   plane.dweight(sequence * shape.outputs() + output, y_begin, y_end, dy,
                                 &sums[(part * shape.outputs() + output) * (taps + 1)]);
                 }
                 int64_t x_plane = sequence * shape.channels + tile;
                 if (plane.is_finite(x_plane)) {
                   bool is_dense = shape.multiplier == 1 && shape.stride[0] * shape.stride[1] * shape.stride[2] == 1;
                   return is_dense ? convolve_rows_back(conv, x_plane, x_begin, x_end, dy, dx)
                                   : plane.dx(x_plane, x_begin, x_end, first_two, dy, dx);
                 }
                 for (int64_t i = x_begin * shape.in[2]; i < x_end * shape.in[2]; ++i)
                   dx[x_plane * shape.in_plane() + i] =
                       conv.template dx_at<1>(dy, sequence, tile, PlanePosition(i, shape.in)).lane[0];
               });
  add_weight_parts(executor, shape, sums.data(), parts, dweight, dbias);
  return {};
}

}  // namespace baracuda
