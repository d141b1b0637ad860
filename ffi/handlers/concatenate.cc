// FFI targets that join arrays [batches..., n_i] to [batches..., n_1 + ... + n_k], and split it again.
#include "target.h"
#include BARACUDA_DRIVER(concatenate)

#include <numeric>
#include <vector>

#include "elements.h"

namespace baracuda {
namespace {

struct Concatenation {
  Checks checks;
  const ffi::AnyBuffer& whole;
  std::vector<Chunks> launches;
  int64_t rows = 0, columns = 0, start = 0, common = 0;

  Concatenation(const char* op, const ffi::AnyBuffer& whole) : checks(op), whole(whole) {
    auto dims = whole.dimensions();
    require_elements(checks, "the whole", whole);
    checks.require(dims.size() >= 1, "the whole must have one dimension or more, got ", describe(dims));
    if (checks.failed()) return;
    rows = product(dims, 0, dims.size() - 1), columns = dims.back();
  }
  void add(size_t i, const ffi::AnyBuffer& chunk) {
    auto dims = whole.dimensions(), part = chunk.dimensions();
    checks.same_dtype("each chunk", chunk, "the whole", whole)
        .require(part.size() == dims.size() && std::equal(part.begin(), part.end() - 1, dims.begin()), "chunk ", i,
                 " must have the shape of the whole, ", describe(dims), ", but for the last dimension, got ",
                 describe(part));
    if (checks.failed() || part.back() == 0) return;
    if (launches.empty() || launches.back().count == concatenate_chunks) {
      launches.emplace_back();
      launches.back().start[0] = start;
    }
    Chunks& chunks = launches.back();
    chunks.chunk[chunks.count++] = chunk.untyped_data();
    chunks.start[chunks.count] = start += part.back();
    common = common ? std::gcd(common, part.back()) : part.back();
  }
  template <bool is_split>
  ffi::Error run(const char* op, Device& device) {
    checks.require(start == columns, "the chunks must make up the whole's last dimension, ", columns, ", got ", start);
    if (checks.failed()) return checks.error();
    if (rows * columns == 0) return ffi::Error::Success();
    int64_t bytes = bytes_of(whole.element_type());
    return to_error(op, for_element(common * bytes, [&](auto element) {
                      using Element = decltype(element);
                      Status status;
                      for (Chunks chunks : launches) {
                        for (int i = 0; i <= chunks.count; ++i)
                          chunks.start[i] = chunks.start[i] * bytes / int64_t(sizeof(Element));
                        if (status.ok())
                          status = concatenate_rows<is_split>(device.executor(), chunks, rows,
                                                              columns * bytes / int64_t(sizeof(Element)),
                                                              static_cast<Element*>(whole.untyped_data()));
                      }
                      return status;
                    }));
  }
};

ffi::Error concatenate_handler(Device device, ffi::RemainingArgs chunks, ffi::Result<ffi::AnyBuffer> y) {
  ffi::AnyBuffer whole = *y;
  Concatenation concatenation("concat", whole);
  for (size_t i = 0; i < chunks.size(); ++i) {
    auto chunk = chunks.get<ffi::AnyBuffer>(i);
    if (chunk.has_error()) return chunk.error();
    concatenation.add(i, *chunk);
  }
  return concatenation.run<false>("concat", device);
}

ffi::Error split_handler(Device device, ffi::AnyBuffer dy, ffi::RemainingRets chunks) {
  Concatenation concatenation("concat_backward", dy);
  for (size_t i = 0; i < chunks.size(); ++i) {
    auto chunk = chunks.get<ffi::AnyBuffer>(i);
    if (chunk.has_error()) return chunk.error();
    concatenation.add(i, **chunk);
  }
  return concatenation.run<true>("concat_backward", device);
}

BARACUDA_TARGET(concat, concatenate_handler, operands<0>().RemainingArgs().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(concat_backward, split_handler, operands<0>().Arg<ffi::AnyBuffer>().RemainingRets());

}  // namespace
}  // namespace baracuda
