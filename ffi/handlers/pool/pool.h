// What FFI targets of pooling share: arrays [batches..., spatial..., channels], the channels last
// or nowhere, and the windows that attributes, or lists of where they begin, describe.
#pragma once

#include <algorithm>

#include "handlers/target.h"
#include BARACUDA_DRIVER(window)

namespace baracuda {

// The attributes. `padding` has the elements before each axis, then those after each; of adaptive windows the shapes
// say all.
struct WindowAttributes {
  Dimensions window, strides, dilation, padding;
  bool adaptive, channels_last;
};

// Their shape, checked against those of the input x and of the output y.
class Pooling {
 public:
  WindowShape shape;
  Checks checks;

  Pooling(const char* op, const char* input, const ffi::AnyBuffer& x, const char* output, const ffi::AnyBuffer& y,
          const WindowAttributes& attributes, const ffi::RemainingArgs* begins = nullptr)
      : checks(op) {
    Dimensions in = x.dimensions(), out = y.dimensions();
    size_t spatial = attributes.window.size(), trailing = spatial + attributes.channels_last;
    size_t lists = begins == nullptr ? 0 : begins->size();
    auto rank = [&](const char* name, Dimensions values, size_t count) {
      checks.require(values.size() == count, name, " must have length ", count, ", got ", describe(values));
    };
    checks.require(1 <= spatial && spatial <= 3, "window must have 1 to 3 sizes, got ", describe(attributes.window));
    rank("strides", attributes.strides, spatial);
    rank("dilation", attributes.dilation, spatial);
    rank("padding", attributes.padding, 2 * spatial);
    checks.require(in.size() >= trailing, input, " must have rank ", trailing, " or more, got ", describe(in))
        .same_dtype(output, y, input, x)
        .require(lists == 0 || lists == spatial, "expected a list of windows for each of ", spatial,
                 " axes or none, got ", lists);
    if (checks.failed()) return;
    size_t batches = in.size() - trailing;
    checks.require(out.size() == in.size() && std::equal(in.begin(), in.begin() + batches, out.begin()) &&
                       (!attributes.channels_last || in.back() == out.back()),
                   output, " must have the shape of ", input, ", ", describe(in), ", except for its ", spatial,
                   " spatial dimensions, got ", describe(out));
    if (checks.failed()) return;
    shape.batches = product(in, 0, batches);
    shape.channels = attributes.channels_last ? in.back() : 1;
    checks.require(product(in, batches, batches + spatial) < int64_t(1) << 31, input,
                   " may have 2^31 - 1 elements in a plane, got ", describe(in));
    for (size_t i = 0; i < spatial && !checks.failed(); ++i) {
      size_t axis = 3 - spatial + i;
      shape.in[axis] = in[batches + i], shape.out[axis] = out[batches + i];
      if (lists > 0)
        list(axis, *begins->get<ffi::AnyBuffer>(i), attributes.window[i], out, batches, attributes.channels_last);
      else if (attributes.adaptive)
        adapt(axis);
      else
        slide(axis, attributes.window[i], attributes.strides[i], attributes.dilation[i], attributes.padding[i],
              attributes.padding[spatial + i]);
    }
    if (!checks.failed()) flatten();
  }

 private:
  void slide(size_t axis, int64_t size, int64_t stride, int64_t dilation, int64_t before, int64_t after) {
    constexpr int64_t most = int64_t(1) << 31;
    int64_t n = shape.in[axis], m = shape.out[axis], padded = n + before + after;
    checks.require(1 <= size && size < most, "window must be 1 or more, got ", size)
        .require(1 <= stride, "strides must be 1 or more, got ", stride)
        .require(1 <= dilation, "dilation must be 1 or more, got ", dilation)
        .require(0 <= before && before < most && 0 <= after && after < most, "padding must be 0 or more, got ", before,
                 " and ", after);
    if (checks.failed()) return;
    if (size == 1) dilation = 1;
    checks.require((size - 1) < most / dilation, "window must reach over 2^31 - 1 elements at most, got ", size,
                   " with dilation ", dilation);
    if (checks.failed()) return;
    // One window at least may be cut off.
    int64_t room = padded - (size - 1) * dilation - 1, ceil = room < 0 ? -(-room / stride) : ceil_div(room, stride);
    int64_t floor = room < 0 ? -ceil_div(-room, stride) : room / stride;
    checks.require(floor + 1 <= m && m <= ceil + 1, "window, strides and padding give ", floor + 1,
                   " windows along an axis, or with one that is cut off ", ceil + 1, "; got ", m);
    if (checks.failed()) return;
    shape.size[axis] = size, shape.dilation[axis] = dilation, shape.before[axis] = before, shape.after[axis] = after;
    // A longer stride moves no window that there is.
    shape.stride[axis] = std::min(stride, std::max<int64_t>(padded, 1));
  }
  // Windows of one size are strided ones.
  void adapt(size_t axis) {
    int64_t n = shape.in[axis], m = shape.out[axis];
    checks.require(n >= 1, "adaptive windows must be of one element or more, got none");
    if (checks.failed()) return;
    shape.adaptive[axis] = m == 0 || n % m != 0;
    if (!shape.adaptive[axis]) shape.size[axis] = shape.stride[axis] = n / m;
  }
  void list(size_t axis, const ffi::AnyBuffer& begins, int64_t size, Dimensions out, size_t batches,
            bool channels_last) {
    Dimensions dims = begins.dimensions();
    bool fits = dims.size() == batches + 1 + channels_last &&
                std::equal(out.begin(), out.begin() + batches, dims.begin()) && dims[batches] == shape.out[axis] &&
                (!channels_last || dims.back() == out.back());
    checks.dtype("a list of windows", begins, ffi::DataType::S32)
        .require(fits, "a list of windows must have ", shape.out[axis], " of each plane, got ", describe(dims))
        .require(1 <= size && size <= shape.in[axis], "window must be 1 to ", shape.in[axis], ", got ", size);
    shape.size[axis] = size, shape.begins[axis] = static_cast<const int32_t*>(begins.untyped_data());
  }
  // Where the only window is the plane, that is one row.
  void flatten() {
    for (int a = 0; a < 3; ++a)
      if (shape.out[a] != 1 || shape.size[a] != shape.in[a] || shape.before[a] + shape.after[a] > 0 ||
          shape.is_general(a))
        return;
    int64_t plane = shape.in[0] * shape.in[1] * shape.in[2];
    for (int a = 0; a < 3; ++a) shape.in[a] = shape.size[a] = shape.stride[a] = a == 2 ? plane : 1;
  }
};

// Of an index in a plane.
inline int width_of_args(Checks& checks, const char* name, const ffi::AnyBuffer& index, const WindowShape& shape) {
  bool is_narrow = index.element_type() == ffi::DataType::U16;
  checks
      .require(is_narrow || index.element_type() == ffi::DataType::S32, name, " must be uint16 or int32, got type ",
               int(index.element_type()))
      .require(!is_narrow || shape.in[0] * shape.in[1] * shape.in[2] < 1 << 16, name,
               " must be int32 for so many elements in a plane");
  return is_narrow ? 2 : 4;
}

template <class T>
const T* data(const ffi::AnyBuffer& buffer) {
  return static_cast<const T*>(buffer.untyped_data());
}

template <class Binding>
auto with_windows(Binding binding) {
  return binding.template Attr<Dimensions>("window")
      .template Attr<Dimensions>("strides")
      .template Attr<Dimensions>("dilation")
      .template Attr<Dimensions>("padding")
      .template Attr<bool>("adaptive")
      .template Attr<bool>("channels_last");
}

}  // namespace baracuda
