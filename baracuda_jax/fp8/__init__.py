"""Training in 8-bit floats with delayed scaling: XLA fuses the casts, and cuBLASLt computes the products, so that these ops
have no kernels."""

from ._cast import fp8_cast, fp8_dequant
from ._linear import fp8_linear
from ._recipe import fp8_recipe_update
from ._state import Fp8Scale, Fp8State, fp8_state

__all__ = ["Fp8Scale", "Fp8State", "fp8_cast", "fp8_dequant", "fp8_linear", "fp8_recipe_update", "fp8_state"]
