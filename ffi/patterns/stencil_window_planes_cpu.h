// The stencil pattern with windows on a CPU, the channels first: elements of a row are lanes. With strides the row is
// kept in phases, those of its elements that are equal modulo the stride, so that each tap reads neighbors; and so are
// the sums of dx.
#pragma once

#include "stencil_window_rows_cpu.h"

namespace baracuda {
namespace internal {

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

}  // namespace internal
}  // namespace baracuda
