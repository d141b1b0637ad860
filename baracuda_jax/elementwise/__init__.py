"""Elementwise ops. Data flow: each element of the result from one element of each operand, which broadcast. Pattern:
elementwise, with operands that are halves of an array as its rows.

An op without static parameters is a line in a table: what it computes in plain JAX, and formulas for readers. Its kernels
are a line in ffi/kernels/elementwise and one in ffi/handlers.

XLA fuses elementwise work with its neighbors, which a kernel would end, so plain JAX is the automatic choice here.
"""

import inspect

# fmt: off
# ruff: noqa: F401, I001
from ._activation import (
    gelu, gelu_backward, gelu_tanh, gelu_tanh_backward, hardsigmoid, hardsigmoid_backward, hardswish,
    hardswish_backward, mish, mish_backward, relu, relu6, relu6_backward, relu_backward, selu, selu_backward,
    sigmoid, sigmoid_backward, silu, silu_backward, softplus, softplus_backward, softsign, softsign_backward,
    tanhshrink, tanhshrink_backward
)
from ._arithmetic import (
    abs, abs_backward, add, add_backward, cbrt, cbrt_backward, cube, cube_backward, div, div_backward, hypot,
    hypot_backward, mul, mul_backward, neg, neg_backward, reciprocal, reciprocal_backward, rsqrt, rsqrt_backward,
    sign, sign_backward, sqrt, sqrt_backward, square, square_backward, sub, sub_backward
)
from ._clip import (
    clamp, clamp_backward, hardtanh, hardtanh_backward
)
from ._comparison import (
    eq, fmax, fmax_backward, fmin, fmin_backward, ge, gt, heaviside, heaviside_backward, le, lt, maximum,
    maximum_backward, minimum, minimum_backward, ne, where, where_backward
)
from ._exponential import (
    exp, exp2, exp2_backward, exp_backward, expm1, expm1_backward, ldexp, ldexp_backward, log, log10,
    log10_backward, log1p, log1p_backward, log2, log2_backward, log_backward, pow, pow_backward
)
from ._gated import (
    geglu, geglu_backward, geglu_tanh, geglu_tanh_backward, glu, glu_backward, reglu, reglu_backward, swiglu,
    swiglu_backward
)
from ._integer import (
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, ctz, left_shift, logical_and, logical_not, logical_or,
    logical_xor, population_count, right_shift
)
from ._lerp import (
    lerp, lerp_backward
)
from ._polynomial import (
    affine, affine_backward, integer_pow, integer_pow_backward, powi
)
from ._prelu import (
    prelu, prelu_backward
)
from ._rectify import (
    elu, elu_backward, leaky_relu, leaky_relu_backward, threshold, threshold_backward
)
from ._rounding import (
    ceil, ceil_backward, copysign, copysign_backward, floor, floor_backward, floor_divide, floor_divide_backward,
    fmod, fmod_backward, frac, frac_backward, mod, mod_backward, nextafter, nextafter_backward, remainder,
    remainder_backward, round, round_backward, trunc, trunc_backward
)
from ._shrink import (
    hardshrink, hardshrink_backward, softshrink, softshrink_backward
)
from ._special import (
    digamma, digamma_backward, erf, erf_backward, erfc, erfc_backward, erfinv, erfinv_backward, lgamma,
    lgamma_backward, logit, logit_backward
)
from ._ternary import (
    addcdiv, addcdiv_backward, addcmul, addcmul_backward, fma, fma_backward
)
from ._trigonometric import (
    acos, acos_backward, acosh, acosh_backward, asin, asin_backward, asinh, asinh_backward, atan, atan2,
    atan2_backward, atan_backward, atanh, atanh_backward, cos, cos_backward, cosh, cosh_backward, sin,
    sin_backward, sinh, sinh_backward, tan, tan_backward, tanh, tanh_backward
)
# fmt: on

__all__ = [name for name, fun in list(globals().items()) if inspect.isfunction(fun)]
