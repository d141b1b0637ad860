// FFI targets that write a block into an array, in place where they may, and that read one. x [batches..., n_1, ...,
// n_k], the block [batches..., m_1, ..., m_k], and where it begins, start [some of the batches..., k]. A slice is moved
// inside; of rows, which are whole along all axes but the first, those outside are left out, and 0 where they are read.
#include "target.h"
#include BARACUDA_DRIVER(slice)

#include "elements.h"

namespace baracuda {
namespace {

struct Slicing {
  SliceShape shape;
  Checks checks;

  Slicing(const char* op, bool of_rows, const ffi::AnyBuffer& x, const ffi::AnyBuffer& block,
          const ffi::AnyBuffer& start)
      : checks(op) {
    shape.leaves_out = of_rows;
    auto whole = x.dimensions(), part = block.dimensions(), first = start.dimensions();
    require_elements(checks, "x", x);
    checks.same_dtype("the block", block, "x", x)
        .require(start.element_type() == ffi::DataType::S32 || start.element_type() == ffi::DataType::S64,
                 "start must be int32 or int64, got type ", int(start.element_type()))
        .require(first.size() >= 1 && 1 <= first.back() && first.back() <= slice_axes, "start must have 1 to ",
                 slice_axes, " numbers in its last dimension, got ", describe(first));
    if (checks.failed()) return;
    size_t axes = size_t(first.back());
    checks.require(whole.size() >= axes && part.size() == whole.size(), "x and the block must have rank ", axes,
                   " or more, and the same, got ", describe(whole), " and ", describe(part));
    if (checks.failed()) return;
    size_t batches = whole.size() - axes;
    checks
        .require(first.size() <= batches + 1 && std::equal(first.begin(), first.end() - 1, whole.begin()),
                 "start must begin with batches of x, ", describe(whole), ", got ", describe(first))
        .require(std::equal(whole.begin(), whole.begin() + batches, part.begin()),
                 "the block must have the batches of x, ", describe(whole), ", got ", describe(part));
    if (checks.failed()) return;
    for (size_t i = batches; i < whole.size(); ++i)
      checks.require(part[i] == whole[i] || (part[i] < whole[i] && (!of_rows || i == batches)),
                     "the block must fit into x, ", describe(whole), ", got ", describe(part));
    if (checks.failed()) return;
    shape.batches = product(whole, 0, batches);
    for (size_t i = batches; i < whole.size(); ++i) shape.add(whole[i], part[i]);
    int64_t batches_of_starts = product(first, 0, first.size() - 1);
    if (batches_of_starts > 0) shape.sharing = shape.batches / batches_of_starts;
    shape.start = start.untyped_data(), shape.is_wide = start.element_type() == ffi::DataType::S64;
  }

  template <bool is_write>
  Status run(Device& device, int64_t bytes, void* whole, void* block) {
    if (shape.batches * shape.elements == 0) return {};
    return for_element(shape.axis[shape.axes - 1].unit * bytes, [&](auto element) {
      using Element = decltype(element);
      int64_t width = int64_t(sizeof(Element)) / bytes;
      shape.widen(width);
      return move_block<is_write>(device.executor(), shape, static_cast<Element*>(whole), static_cast<Element*>(block));
    });
  }
};

template <bool of_rows>
ffi::Error write_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer update, ffi::AnyBuffer start,
                         ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = of_rows ? "write_rows" : "write_slice";
  Slicing slicing(op, of_rows, x, update, start);
  slicing.checks.same_shape("the result", *y, "x", x).same_dtype("the result", *y, "x", x);
  if (slicing.checks.failed()) return slicing.checks.error();
  int64_t bytes = bytes_of(x.element_type());
  // XLA stores both in the same memory if it may: then all but the block is there.
  if (x.untyped_data() != y->untyped_data()) {
    int64_t all = bytes * slicing.shape.batches * slicing.shape.whole_elements;
    Status status = all ? copy_bytes(device.executor(), x.untyped_data(), y->untyped_data(), all) : Status{};
    if (!status.ok()) return to_error(op, status);
  }
  return to_error(op, slicing.run<true>(device, bytes, y->untyped_data(), update.untyped_data()));
}

template <bool of_rows>
ffi::Error read_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer start, ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = of_rows ? "read_rows" : "read_slice";
  Slicing slicing(op, of_rows, x, *y, start);
  if (slicing.checks.failed()) return slicing.checks.error();
  return to_error(op, slicing.run<false>(device, bytes_of(x.element_type()), x.untyped_data(), y->untyped_data()));
}

BARACUDA_TARGET(write_slice, write_handler<false>, operands<3>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(read_slice, read_handler<false>, operands<2>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(write_rows, write_handler<true>, operands<3>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(read_rows, read_handler<true>, operands<2>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
