// How a call of an elementwise target runs.
#include "elementwise.h"

namespace baracuda {
namespace {

// Whether dims, aligned at the last dimension, broadcast to shape; in `repeats`, along which dimensions they do.
bool broadcasts(Dimensions dims, Dimensions shape, std::vector<bool>& repeats) {
  if (dims.size() > shape.size()) return false;
  size_t missing = shape.size() - dims.size();
  repeats.assign(shape.size(), true);
  for (size_t d = missing; d < shape.size(); ++d) {
    repeats[d] = dims[d - missing] != shape[d];
    if (repeats[d] && dims[d - missing] != 1) return false;
  }
  return true;
}

std::string described(const Dtypes& dtypes) {
  std::string text;
  for (ffi::DataType dtype : dtypes) text.append(text.empty() ? "" : ", ").append(std::to_string(int(dtype)));
  return text;
}

}  // namespace

const Variant* choose(const char* op, const Variants& variants, const Dtypes& in, const Dtypes& out, Checks& checks) {
  const Variant& any = variants.front();
  checks.require(in.size() == any.in.size(), "expected ", any.in.size(), " operands, got ", in.size())
      .require(out.size() == any.out.size(), "expected ", any.out.size(), " results, got ", out.size());
  if (checks.failed()) return nullptr;
  const Variant* near = nullptr;  // of the first operand's dtype
  for (const Variant& variant : variants) {
    if (variant.in == in && variant.out == out) return &variant;
    if (!near && variant.in[0] == in[0]) near = &variant;
  }
  if (near) {
    for (size_t i = 0; i < in.size(); ++i)
      checks.require(in[i] == near->in[i], near->names[i], " must be of type ", int(near->in[i]), ", got ", int(in[i]));
    checks.require(out == near->out, "the results must be of types ", described(near->out), ", got ", described(out));
  }
  Dtypes known;
  for (const Variant& variant : variants) known.push_back(variant.in[0]);
  checks.require(false, any.names[0], " must be of one of the types ", described(known), ", got ", int(in[0]));
  return nullptr;
}

ffi::Error read(const Call& call, Names names, Parameter* parameters) {
  Checks checks(call.op);
  for (const ParameterName& name : names) {
    auto number = call.attributes.get<double>(name.text);
    auto integer = call.attributes.get<int64_t>(name.text);
    if (name.is_integer)
      checks.require(integer.has_value(), "expected an int64 attribute ", name.text);
    else
      checks.require(number.has_value(), "expected a float64 attribute ", name.text);
    if (checks.failed()) return checks.error();
    *parameters++ = {name.is_integer ? uint64_t(*integer) : bit_cast<uint64_t>(*number)};
  }
  return ffi::Error::Success();
}

ffi::Error run(const Call& call, const Variants& variants, Names names) {
  Checks checks(call.op);
  Dtypes in, out;
  for (size_t i = 0; i < call.operands.size(); ++i) in.push_back(call.operands.get<ffi::AnyBuffer>(i)->element_type());
  for (size_t j = 0; j < call.results.size(); ++j)
    out.push_back((*call.results.get<ffi::AnyBuffer>(j))->element_type());
  const Variant* variant = choose(call.op, variants, in, out, checks);
  if (!variant) return checks.error();
  Parameter parameters[most_parameters];
  if (ffi::Error error = read(call, names, parameters); error.failure()) return error;
  int operands = variant->kernel.operands;
  ElementwiseArrays arrays{};
  Dimensions shape;
  for (int j = 0; j < variant->kernel.results; ++j) {
    auto result = *call.results.get<ffi::AnyBuffer>(j);
    auto of = result->dimensions();
    if (j == 0) shape = of;
    checks.require(of.size() == shape.size() && std::equal(of.begin(), of.end(), shape.begin()),
                   "the results must have one shape, got ", describe(shape), " and ", describe(of));
    arrays.out[j] = result->untyped_data();
  }
  std::vector<bool> repeats[elementwise_operands];
  for (int i = 0; i < operands; ++i) {
    auto operand = *call.operands.get<ffi::AnyBuffer>(i);
    checks.require(broadcasts(operand.dimensions(), shape, repeats[i]), variant->names[i],
                   " must broadcast to the result's shape, ", describe(shape), ", got ",
                   describe(operand.dimensions()));
    arrays.in[i] = operand.untyped_data();
  }
  if (checks.failed()) return checks.error();
  if (product(shape, 0, shape.size()) == 0) return ffi::Error::Success();
  ElementwiseShape folded(operands);
  for (size_t d = 0; d < shape.size(); ++d)
    checks.require(folded.push(shape[d], [&](int i) { return repeats[i][d]; }), "more than ", elementwise_rank,
                   " dimensions that broadcast in turn, in ", describe(shape));
  if (checks.failed()) return checks.error();
  alignas(16) char functor[functor_bytes];
  variant->construct(parameters, functor);
  return to_error(call.op, elementwise(call.device.executor(), variant->kernel, functor, arrays, folded));
}

}  // namespace baracuda
