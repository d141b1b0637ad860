// The FFI targets of attention of sequences that follow each other in one array: q [batches..., queries, heads, d], k
// [batches..., keys, heads of keys, d], v alike with its own columns, starts_q and starts_k [batches..., sequences +
// 1], ascending, slopes [batches..., heads] and positions of keys [batches..., keys], or [batches..., 0], which give y
// [batches..., queries, heads, values] and lse [batches..., queries, heads]. The gradient reads y, lse and their
// cotangents besides, and has room for a number of each query and head.
#include "handlers/attention/varlen.h"
#include "handlers/attention/dimensions.h"

namespace baracuda {

#define BARACUDA_ELSEWHERE(NAME, T) BARACUDA_VARLEN_OF(extern, T)
BARACUDA_VARLEN(BARACUDA_ELSEWHERE)

namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

struct Static {
  double scale, softcap;
  int64_t left, right;
  bool bottom_right, biased;
  int64_t most_queries, most_keys;
};

struct VarlenArrays {
  Array q, k, v, starts_q, starts_k, slopes, positions;
};

// The shape, and the batches, of operands that fit.
VarlenShape checked(Checks& checks, const VarlenArrays& x, const Static& how, Dimensions& batches) {
  auto q = x.q.dimensions(), k = x.k.dimensions(), v = x.v.dimensions(), starts = x.starts_q.dimensions();
  checks.require(q.size() >= 3, "q must have rank 3 or more, got ", describe(q))
      .require(k.size() == q.size() && v.size() == q.size() && starts.size() + 2 == q.size(),
               "k and v must have the rank of q, ", describe(q), ", and starts_q two dimensions less, got ",
               describe(k), ", ", describe(v), " and ", describe(starts));
  if (checks.failed()) return {};
  size_t rank = q.size() - 3;
  batches = Dimensions(q.begin(), rank);
  const int64_t *of_q = q.end() - 3, *of_k = k.end() - 3;
  VarlenShape shape{product(q, 0, rank), of_q[0],      of_k[0], starts.back() - 1, of_q[1], of_k[1], of_q[2], v.back(),
                    how.most_queries,    how.most_keys};
  constexpr int64_t most = (int64_t(1) << 31) - 1;
  checks
      .require(is(k, batches, {shape.keys, shape.kv_heads, shape.d}), "k must have the batches and d of q, ",
               describe(q), ", got ", describe(k))
      .require(is(v, batches, {shape.keys, shape.kv_heads, shape.values}), "v must have the shape of k, ", describe(k),
               ", except for the last dimension, got ", describe(v))
      .require(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "there must be a multiple of ", shape.kv_heads,
               " heads, got ", shape.heads)
      .require(shape.sequences >= 0 && is(x.starts_q.dimensions(), batches, {shape.sequences + 1}) &&
                   is(x.starts_k.dimensions(), batches, {shape.sequences + 1}),
               "starts_q and starts_k must have the batches of q, ", describe(q),
               ", and one number more than sequences, got ", describe(starts), " and ",
               describe(x.starts_k.dimensions()))
      .require(is(x.slopes.dimensions(), batches, {shape.heads}), "slopes must have the heads of q, ", describe(q),
               ", got ", describe(x.slopes.dimensions()))
      .require(is(x.positions.dimensions(), batches, {0}) || is(x.positions.dimensions(), batches, {shape.keys}),
               "positions must have the keys of k, ", describe(k), ", or none, got ",
               describe(x.positions.dimensions()))
      .require(shape.queries <= most && shape.keys <= most, "there may be at most 2^31 - 1 queries and keys, got ",
               describe(q), " and ", describe(k))
      .dtype("starts_q", x.starts_q, ffi::DataType::S32)
      .dtype("starts_k", x.starts_k, ffi::DataType::S32)
      .dtype("positions", x.positions, ffi::DataType::S32)
      .same_dtype("k", x.k, "q", x.q)
      .same_dtype("v", x.v, "q", x.q)
      .dtype("slopes", x.slopes, wide_of(x.q));
  return shape;
}

template <class T>
Varlen<T> bound(const VarlenArrays& x, const VarlenShape& shape, const Static& how) {
  using Wide = Accumulator<T>;
  return {shape,
          AttentionScore<Wide>(how.scale, how.softcap),
          how.scale,
          how.left,
          how.right,
          how.bottom_right,
          how.biased,
          in<T>(x.q),
          in<T>(x.k),
          in<T>(x.v),
          in<int32_t>(x.starts_q),
          in<int32_t>(x.starts_k),
          in<Wide>(x.slopes),
          x.positions.dimensions().back() > 0 ? in<int32_t>(x.positions) : nullptr};
}

ffi::Error forward_handler(Device device, Array q, Array k, Array v, Array starts_q, Array starts_k, Array slopes,
                           Array positions, Output y, Output lse, double scale, double softcap, int64_t left,
                           int64_t right, bool bottom_right, bool biased, int64_t most_queries, int64_t most_keys) {
  constexpr const char* op = "varlen_attention";
  Static how{scale, softcap, left, right, bottom_right, biased, most_queries, most_keys};
  VarlenArrays arrays{q, k, v, starts_q, starts_k, slopes, positions};
  Checks checks(op);
  Dimensions batches{};
  VarlenShape shape = checked(checks, arrays, how, batches);
  if (checks.failed()) return checks.error();
  checks
      .require(is(y->dimensions(), batches, {shape.queries, shape.heads, shape.values}),
               "the result must have the shape of q, ", describe(q.dimensions()), ", with the columns of v, got ",
               describe(y->dimensions()))
      .require(is(lse->dimensions(), batches, {shape.queries, shape.heads}), "lse must have the queries of q, ",
               describe(q.dimensions()), ", got ", describe(lse->dimensions()))
      .same_dtype("the result", *y, "q", q)
      .same_dtype("lse", *lse, "slopes", slopes);
  if (checks.failed()) return checks.error();
  switch (q.element_type()) {
#define BARACUDA_RUN(NAME, T) \
  case ffi::DataType::NAME:   \
    return to_error(op, varlen(device.executor(), bound<T>(arrays, shape, how), out<T>(y), out<Accumulator<T>>(lse)));
    BARACUDA_VARLEN(BARACUDA_RUN)
#undef BARACUDA_RUN
    default:
      return invalid(op, "q must be a float, got type ", int(q.element_type()));
  }
}

ffi::Error backward_handler(Device device, Array q, Array k, Array v, Array starts_q, Array starts_k, Array slopes,
                            Array positions, Array y, Array lse, Array dy, Array dlse, Output dq, Output dk, Output dv,
                            Output dslope, Output dot, double scale, double softcap, int64_t left, int64_t right,
                            bool bottom_right, bool biased, int64_t most_queries, int64_t most_keys) {
  constexpr const char* op = "varlen_attention_backward";
  Static how{scale, softcap, left, right, bottom_right, biased, most_queries, most_keys};
  VarlenArrays arrays{q, k, v, starts_q, starts_k, slopes, positions};
  Checks checks(op);
  Dimensions batches{};
  VarlenShape shape = checked(checks, arrays, how, batches);
  if (checks.failed()) return checks.error();
  checks
      .require(
          is(dy.dimensions(), batches, {shape.queries, shape.heads, shape.values}) && y.dimensions() == dy.dimensions(),
          "y and dy must have the shape of q, ", describe(q.dimensions()), ", with the columns of v, got ",
          describe(y.dimensions()), " and ", describe(dy.dimensions()))
      .require(is(lse.dimensions(), batches, {shape.queries, shape.heads}) && dlse.dimensions() == lse.dimensions() &&
                   dslope->dimensions() == lse.dimensions() && dot->dimensions() == lse.dimensions(),
               "lse, dlse, dslope and dot must have the queries of q, ", describe(q.dimensions()), ", got ",
               describe(lse.dimensions()), ", ", describe(dlse.dimensions()), ", ", describe(dslope->dimensions()),
               " and ", describe(dot->dimensions()))
      .require(dq->dimensions() == q.dimensions() && dk->dimensions() == k.dimensions() &&
                   dv->dimensions() == v.dimensions(),
               "dq, dk and dv must have the shapes of q, k and v, got ", describe(dq->dimensions()), ", ",
               describe(dk->dimensions()), " and ", describe(dv->dimensions()))
      .same_dtype("y", y, "q", q)
      .same_dtype("dy", dy, "q", q)
      .same_dtype("dq", *dq, "q", q)
      .same_dtype("dk", *dk, "q", q)
      .same_dtype("dv", *dv, "q", q)
      .same_dtype("lse", lse, "slopes", slopes)
      .same_dtype("dlse", dlse, "slopes", slopes)
      .same_dtype("dslope", *dslope, "slopes", slopes)
      .same_dtype("dot", *dot, "slopes", slopes);
  if (checks.failed()) return checks.error();
  switch (q.element_type()) {
#define BARACUDA_RUN(NAME, T)                                                                         \
  case ffi::DataType::NAME: {                                                                         \
    using Wide = Accumulator<T>;                                                                      \
    VarlenGradient<T> gradient{in<T>(y),   in<T>(dy),  in<Wide>(lse),     in<Wide>(dlse), out<T>(dq), \
                               out<T>(dk), out<T>(dv), out<Wide>(dslope), out<Wide>(dot)};            \
    return to_error(op, varlen_backward(device.executor(), bound<T>(arrays, shape, how), gradient));  \
  }
    BARACUDA_VARLEN(BARACUDA_RUN)
#undef BARACUDA_RUN
    default:
      return invalid(op, "q must be a float, got type ", int(q.element_type()));
  }
}

#define BARACUDA_ATTRIBUTES          \
  Attr<double>("scale")              \
      .Attr<double>("softcap")       \
      .Attr<int64_t>("left")         \
      .Attr<int64_t>("right")        \
      .Attr<bool>("bottom_right")    \
      .Attr<bool>("biased")          \
      .Attr<int64_t>("most_queries") \
      .Attr<int64_t>("most_keys")

BARACUDA_TARGET(varlen_attention, forward_handler, operands<7>().Ret<Array>().Ret<Array>().BARACUDA_ATTRIBUTES);
BARACUDA_TARGET(varlen_attention_backward, backward_handler,
                operands<11>().Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>().Ret<Array>().BARACUDA_ATTRIBUTES);

}  // namespace
}  // namespace baracuda
