// What functors of the elementwise pattern are made of. They compute in Comparable: float for 16-bit floats, the type
// itself otherwise. Conditions are written so that NaN comes out wherever it goes in.
//
// An op of one array is a line: its name, the result y at x, and what a cotangent (or a tangent) d of y (or x) becomes.
// An op of two is the same, of x and y, with what d becomes of each.
#pragma once

#include "../../patterns/elementwise.h"

namespace baracuda {

// A parameter of an op: a float64 or an int64 attribute.
struct Parameter {
  uint64_t bits;
  double number() const { return bit_cast<double>(bits); }
  // The value whose bytes are the first of the integer's.
  template <class T>
  T value() const {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
  }
};

template <class T, class Result = T>
struct Unary {
  using Operands = Types<T>;
  using Results = Types<Result>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x"};
};

// The cotangent of x; with a tangent for dy, that of the result.
template <class T>
struct UnaryBackward {
  using Operands = Types<T, T>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "dy"};
};

template <class T, class Result = T>
struct Binary {
  using Operands = Types<T, T>;
  using Results = Types<Result>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "y"};
};

template <class T, class Result = T>
struct Ternary {
  using Operands = Types<T, T, T>;
  using Results = Types<Result>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "y", "z"};
};

// A functor of its parameters, or without any.
template <class Op>
Op made_of(const Parameter* parameters) {
  if constexpr (std::is_constructible_v<Op, const Parameter*>)
    return Op(parameters);
  else
    return Op();
}

// Of an op with `dx` and `dy`, and of three arrays `dz`, which are linear in their last argument.
template <class Op, class T>
struct BinaryTangent {
  using Operands = Types<T, T, T, T>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "y", "x's tangent", "y's tangent"};
  Op op;
  explicit BinaryTangent(const Parameter* parameters) : op(made_of<Op>(parameters)) {}
  BARACUDA_HD W operator()(W x, W y, W of_x, W of_y) const { return op.dx(x, y, of_x) + op.dy(x, y, of_y); }
};
template <class Op, class T>
struct BinaryBackward {
  using Operands = Types<T, T, T>;
  using Results = Types<T, T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "y", "the cotangent"};
  Op op;
  explicit BinaryBackward(const Parameter* parameters) : op(made_of<Op>(parameters)) {}
  BARACUDA_HD Values<W, 2> operator()(W x, W y, W d) const { return {{op.dx(x, y, d), op.dy(x, y, d)}}; }
};
template <class Op, class T>
struct TernaryTangent {
  using Operands = Types<T, T, T, T, T, T>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "y", "z", "x's tangent", "y's tangent", "z's tangent"};
  Op op;
  explicit TernaryTangent(const Parameter* parameters) : op(made_of<Op>(parameters)) {}
  BARACUDA_HD W operator()(W x, W y, W z, W of_x, W of_y, W of_z) const {
    return op.dx(x, y, z, of_x) + op.dy(x, y, z, of_y) + op.dz(x, y, z, of_z);
  }
};
template <class Op, class T>
struct TernaryBackward {
  using Operands = Types<T, T, T, T>;
  using Results = Types<T, T, T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "y", "z", "the cotangent"};
  Op op;
  explicit TernaryBackward(const Parameter* parameters) : op(made_of<Op>(parameters)) {}
  BARACUDA_HD Values<W, 3> operator()(W x, W y, W z, W d) const {
    return {{op.dx(x, y, z, d), op.dy(x, y, z, d), op.dz(x, y, z, d)}};
  }
};

#define BARACUDA_UNARY(NAME) \
  template <class T>         \
  struct NAME : Unary<T>
#define BARACUDA_UNARY_BACKWARD(NAME) \
  template <class T>                  \
  struct NAME : UnaryBackward<T>

// The result is of type RESULT, and has no derivative.
#define BARACUDA_UNARY_VALUE(NAME, RESULT, Y)                          \
  template <class T>                                                   \
  struct NAME : Unary<T, RESULT> {                                     \
    using W = Comparable<T>;                                           \
    BARACUDA_HD Comparable<RESULT> operator()(W x) const { return Y; } \
  };
#define BARACUDA_BINARY_VALUE(NAME, RESULT, Z)                              \
  template <class T>                                                        \
  struct NAME : Binary<T, RESULT> {                                         \
    using W = Comparable<T>;                                                \
    BARACUDA_HD Comparable<RESULT> operator()(W x, W y) const { return Z; } \
  };

#define BARACUDA_UNARY_OP(NAME, Y, DX)                                                        \
  BARACUDA_UNARY_VALUE(NAME, T, Y)                                                            \
  template <class T>                                                                          \
  struct NAME##_backward : UnaryBackward<T> {                                                 \
    using W = Comparable<T>;                                                                  \
    BARACUDA_HD W operator()([[maybe_unused]] W x, [[maybe_unused]] W d) const { return DX; } \
  };
// NAME_tangent and NAME_backward of an op that says what a cotangent becomes.
#define BARACUDA_DERIVATIVES(NAME, ARITY)            \
  template <class T>                                 \
  using NAME##_tangent = ARITY##Tangent<NAME<T>, T>; \
  template <class T>                                 \
  using NAME##_backward = ARITY##Backward<NAME<T>, T>;
#define BARACUDA_BINARY_OP(NAME, Z, DX, DY)                                                                 \
  template <class T>                                                                                        \
  struct NAME : Binary<T> {                                                                                 \
    using W = Comparable<T>;                                                                                \
    BARACUDA_HD W operator()(W x, W y) const { return Z; }                                                  \
    BARACUDA_HD W dx([[maybe_unused]] W x, [[maybe_unused]] W y, W d) const { return DX; }                  \
    BARACUDA_HD W dy([[maybe_unused]] W x, [[maybe_unused]] W y, [[maybe_unused]] W d) const { return DY; } \
  };                                                                                                        \
  BARACUDA_DERIVATIVES(NAME, Binary)

}  // namespace baracuda
