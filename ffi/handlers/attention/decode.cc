// The FFI target of decoding: a query of each head, over a cache that is made of pages: q [batches..., sequences,
// heads, d], k and v [batches..., pages, page size, heads of keys, d] and [..., values], page_table [batches...,
// sequences, pages of a sequence], lengths [batches..., sequences] and slopes [batches..., heads], which give y
// [batches..., sequences, heads, values] and lse [batches..., sequences, heads].
#include "handlers/attention/attention.h"
#include "handlers/attention/dimensions.h"

namespace baracuda {

#define BARACUDA_ELSEWHERE(NAME, STORED, WIDE) \
  extern template Status decode(const Executor&, const Decode<STORED, WIDE>&);
BARACUDA_CACHES(BARACUDA_ELSEWHERE)

namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

ffi::Error decode_handler(Device device, Array q, Array k, Array v, Array page_table, Array lengths, Array slopes,
                          Output workspace, Output y, Output lse, double scale, double softcap, int64_t left) {
  constexpr const char* op = "paged_decode";
  Checks checks(op);
  auto queries = q.dimensions(), keys = k.dimensions(), values = v.dimensions(), table = page_table.dimensions();
  checks.require(queries.size() >= 3, "q must have rank 3 or more, got ", describe(queries))
      .require(keys.size() == queries.size() + 1 && values.size() == keys.size() && table.size() + 1 == queries.size(),
               "k and v must have one dimension more than q, ", describe(queries), ", and page_table one less, got ",
               describe(keys), ", ", describe(values), " and ", describe(table));
  if (checks.failed()) return checks.error();
  size_t rank = queries.size() - 3;
  Dimensions batches(queries.begin(), rank);
  const int64_t* of_q = queries.end() - 3;
  const int64_t* of_k = keys.end() - 4;
  DecodeShape shape{
      product(queries, 0, rank), of_q[0], of_q[1], of_k[2], of_k[0], of_k[1], table.back(), of_q[2], values.back()};
  constexpr int64_t most = (int64_t(1) << 31) - 1;
  checks
      .require(is(keys, batches, {shape.pages, shape.page_size, shape.kv_heads, shape.d}),
               "k must have the batches and d of q, ", describe(queries), ", got ", describe(keys))
      .require(is(values, batches, {shape.pages, shape.page_size, shape.kv_heads, shape.values}),
               "v must have the shape of k, ", describe(keys), ", except for the last dimension, got ",
               describe(values))
      .require(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "there must be a multiple of ", shape.kv_heads,
               " heads, got ", shape.heads)
      .require(is(table, batches, {shape.sequences, shape.table}), "page_table must have the sequences of q, ",
               describe(queries), ", got ", describe(table))
      .require(is(lengths.dimensions(), batches, {shape.sequences}), "lengths must have the sequences of q, ",
               describe(queries), ", got ", describe(lengths.dimensions()))
      .require(is(slopes.dimensions(), batches, {shape.heads}), "slopes must have the heads of q, ", describe(queries),
               ", got ", describe(slopes.dimensions()))
      .require(is(y->dimensions(), batches, {shape.sequences, shape.heads, shape.values}),
               "the result must have the shape of q, ", describe(queries), ", with the columns of v, got ",
               describe(y->dimensions()))
      .require(is(lse->dimensions(), batches, {shape.sequences, shape.heads}), "lse must have the heads of q, ",
               describe(queries), ", got ", describe(lse->dimensions()))
      .require(shape.pages * shape.page_size <= most && shape.capacity() <= most,
               "there may be at most 2^31 - 1 rows, of all pages and of a sequence, got ", describe(keys), " and ",
               describe(table))
      .dtype("page_table", page_table, ffi::DataType::S32)
      .dtype("lengths", lengths, ffi::DataType::S32)
      .same_dtype("v", v, "k", k)
      .same_dtype("slopes", slopes, "q", q)
      .same_dtype("the result", *y, "q", q)
      .same_dtype("lse", *lse, "q", q);
  if (checks.failed()) return checks.error();
  auto run = [&](auto stored, auto computed) {
    using Stored = typename decltype(stored)::type;
    using Wide = typename decltype(computed)::type;
    checks.dtype("q", q, sizeof(Wide) == 8 ? ffi::DataType::F64 : ffi::DataType::F32);
    if (checks.failed()) return checks.error();
    return to_error(
        op, decode(device.executor(*workspace),
                   Decode<Stored, Wide>{shape, AttentionScore<Wide>(scale, softcap), left, in<Wide>(q), in<Stored>(k),
                                        in<Stored>(v), in<int32_t>(page_table), in<int32_t>(lengths), in<Wide>(slopes),
                                        out<Wide>(y), out<Wide>(lse)}));
  };
  switch (k.element_type()) {
#define BARACUDA_RUN(NAME, STORED, WIDE) \
  case ffi::DataType::NAME:              \
    return run(Type<STORED>{}, Type<WIDE>{});
    BARACUDA_CACHES(BARACUDA_RUN)
    default:
      return invalid(op, "k must be a float of 8 to 64 bits, got type ", int(k.element_type()));
  }
}

BARACUDA_TARGET(
    paged_decode, decode_handler,
    operands<6>().Ret<Array>().Ret<Array>().Ret<Array>().Attr<double>("scale").Attr<double>("softcap").Attr<int64_t>(
        "left"));

}  // namespace
}  // namespace baracuda
