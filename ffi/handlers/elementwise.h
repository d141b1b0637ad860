// How FFI targets of elementwise ops are handled: a target has a variant for each choice of dtypes, and the one whose
// dtypes came runs. Operands broadcast, aligned at their last dimensions, to the results' shape.
#pragma once

#include "target.h"
#include BARACUDA_DRIVER(elementwise)

#include <vector>

#include "../kernels/elementwise/functor.h"

namespace baracuda {

constexpr ffi::DataType dtype_of(Type<bool>) { return ffi::DataType::PRED; }
#define BARACUDA_DTYPE_OF(NAME, TYPE) \
  constexpr ffi::DataType dtype_of(Type<TYPE>) { return ffi::DataType::NAME; }
BARACUDA_FLOATS(BARACUDA_DTYPE_OF)
BARACUDA_INTEGERS(BARACUDA_DTYPE_OF)
BARACUDA_DTYPE_OF(C64, Complex<float>)
BARACUDA_DTYPE_OF(C128, Complex<double>)
#undef BARACUDA_DTYPE_OF

using Floats = Types<float, double, Half, BFloat16>;
using Complexes = Types<Complex<float>, Complex<double>>;
using Signed = Types<int8_t, int16_t, int32_t, int64_t>;
using Unsigned = Types<uint8_t, uint16_t, uint32_t, uint64_t>;
template <class... List>
struct Joined;
template <class... T>
struct Joined<Types<T...>> {
  using type = Types<T...>;
};
template <class... A, class... B, class... More>
struct Joined<Types<A...>, Types<B...>, More...> : Joined<Types<A..., B...>, More...> {};
using Integers = Joined<Signed, Unsigned>::type;

using Dtypes = std::vector<ffi::DataType>;

// A functor on arrays of certain dtypes.
struct Variant {
  const char* const* names;  // of the operands
  Dtypes in, out;
  ElementwiseKernel kernel;
  void (*construct)(const Parameter* parameters, void* functor);
};
using Variants = std::vector<Variant>;

inline constexpr int functor_bytes = 64;

enum class Shape { any, flat, rows };

// `Stored` says what is in memory, `Functor` computes.
template <class Functor, class Stored = Functor, Shape shape = Shape::any>
Variant variant() {
  static_assert(sizeof(Functor) <= functor_bytes && std::is_trivially_copyable_v<Functor>);
  auto dtypes = []<class... T>(Types<T...>) { return Dtypes{dtype_of(Type<T>{})...}; };
  return {Stored::names, dtypes(typename Stored::Operands{}), dtypes(typename Stored::Results{}),
          elementwise_kernel<Functor, Stored, shape == Shape::flat, shape == Shape::rows>(),
          [](const Parameter* parameters, void* functor) { new (functor) Functor(made_of<Functor>(parameters)); }};
}

// On a CPU 16-bit floats are computed with by the functor of floats.
#ifdef BARACUDA_CUDA
template <class T>
using Computed = T;
#else
template <class T>
using Computed = Comparable<T>;
#endif

template <template <class> class Functor, Shape shape = Shape::any, class... T>
Variants variants(Types<T...>) {
  return {variant<Functor<Computed<T>>, Functor<T>, shape>()...};
}
// Functors that compute of signed integers what they compute of unsigned ones.
template <template <class> class Functor, Shape shape = Shape::any, class... T>
Variants variants_of_bits(Types<T...>) {
  return {variant<Functor<std::make_unsigned_t<T>>, Functor<T>, shape>()...};
}
inline Variants joined(Variants first, const Variants& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// One call of a target.
struct Call {
  const char* op;
  mutable Device device;  // whose executor borrows of it
  ffi::RemainingArgs operands;
  ffi::RemainingRets results;
  ffi::Dictionary attributes;
};

// The variant of these dtypes, or null and in `checks` why there is none.
const Variant* choose(const char* op, const Variants& variants, const Dtypes& in, const Dtypes& out, Checks& checks);

// An attribute that a functor is made of: a float64, or an int64.
struct ParameterName {
  const char* text;
  bool is_integer;
  ParameterName(const char* text, bool is_integer = false) : text(text), is_integer(is_integer) {}
};
inline ParameterName integer(const char* text) { return {text, true}; }
using Names = std::initializer_list<ParameterName>;
inline constexpr int most_parameters = 4;
ffi::Error read(const Call& call, Names names, Parameter* parameters);

// Runs the variant whose dtypes came, with the parameters of these names.
ffi::Error run(const Call& call, const Variants& variants, Names names = {});

inline auto elementwise_binding() { return operands<0>().RemainingArgs().RemainingRets().Attrs(); }

}  // namespace baracuda

// Of floats the functors op::name, of complex numbers those of that name in op::complex.
#define BARACUDA_INEXACT(NAME, ...)                               \
  joined(variants<op::NAME __VA_OPT__(, ) __VA_ARGS__>(Floats{}), \
         variants<op::complex::NAME __VA_OPT__(, ) __VA_ARGS__>(Complexes{}))
// BARACUDA_ELEMENTWISE(name, variants, parameters...): the target `name`.
#define BARACUDA_ELEMENTWISE(NAME, VARIANTS, ...)                                                       \
  static ffi::Error NAME##_call(Device device, ffi::RemainingArgs operands, ffi::RemainingRets results, \
                                ffi::Dictionary attributes) {                                           \
    static const Variants known = VARIANTS;                                                             \
    return run({#NAME, device, operands, results, attributes}, known, {__VA_ARGS__});                   \
  }                                                                                                     \
  BARACUDA_TARGET(NAME, NAME##_call, elementwise_binding())
