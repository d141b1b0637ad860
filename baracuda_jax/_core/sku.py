"""The names of what a plan reports, and the rules of precision that all kernels and references follow."""

import dataclasses
import enum

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike


class OpCategory(enum.StrEnum):
    """What kind of op it is."""

    GEMM = "gemm"
    UNARY_ELEMENTWISE = "unary_elementwise"
    BINARY_ELEMENTWISE = "binary_elementwise"
    TERNARY_ELEMENTWISE = "ternary_elementwise"
    GATED_ACTIVATION = "gated_activation"
    REDUCTION = "reduction"
    SCAN = "scan"
    NORMALIZATION = "normalization"
    SOFTMAX = "softmax"
    CONVOLUTION = "convolution"
    POOLING = "pooling"
    ATTENTION = "attention"
    INDEXING = "indexing"
    EMBEDDING = "embedding"
    SHAPE_LAYOUT = "shape_layout"
    SORTING = "sorting"
    QUANTIZATION = "quantization"
    RANDOM = "random"
    LOSS = "loss"
    SEGMENT_OPS = "segment_ops"
    IMAGE = "image"
    FFT = "fft"
    LINALG = "linalg"
    MOE = "moe"
    OPTIMIZER = "optimizer"
    DISTRIBUTED = "distributed"


class BackendKind(enum.StrEnum):
    """Who computes: the kernel, what XLA makes of the op's definition in plain JAX, or a library that XLA calls for that."""

    NATIVE = "native"
    XLA = "xla"
    CUDNN = "cudnn"
    CUBLASLT = "cublaslt"
    CUFFT = "cufft"
    CUSOLVER = "cusolver"

    @classmethod
    def of(cls, backend: str, library: str | None, platform: str) -> "BackendKind":
        """That of a backend; of an op without kernels, on CUDA, the library that is named for it."""
        return cls(library if library and backend == "xla" and platform == "cuda" else backend)


class ElementKind(enum.StrEnum):
    """The type of an array's elements, by JAX's name."""

    F16 = "float16"
    BF16 = "bfloat16"
    F32 = "float32"
    F64 = "float64"
    F8E4M3FN = "float8_e4m3fn"
    F8E5M2 = "float8_e5m2"
    F4E2M1FN = "float4_e2m1fn"
    I4 = "int4"
    I8 = "int8"
    I16 = "int16"
    I32 = "int32"
    I64 = "int64"
    U4 = "uint4"
    U8 = "uint8"
    U16 = "uint16"
    U32 = "uint32"
    U64 = "uint64"
    BOOL = "bool"
    C64 = "complex64"
    C128 = "complex128"

    @classmethod
    def of(cls, dtype: DTypeLike) -> "ElementKind":
        return cls(jnp.dtype(dtype).name)


class MathPrecision(enum.StrEnum):
    """What the arithmetic is done in; integers are exact up to their wrapping."""

    F32 = "float32"
    F64 = "float64"
    INTEGER = "integer"


class ArchSku(enum.StrEnum):
    """The device's architecture; CUDA where this process has no such device, or one that came later than this list."""

    CPU = "cpu"
    CUDA = "cuda"
    SM80 = "sm80"
    SM86 = "sm86"
    SM89 = "sm89"
    SM90 = "sm90"
    SM100 = "sm100"
    SM103 = "sm103"
    SM120 = "sm120"
    ROCM = "rocm"
    TPU = "tpu"

    @classmethod
    def of(cls, platform: str) -> "ArchSku":
        if platform == "cuda":
            try:
                capability = getattr(jax.devices("cuda")[0], "compute_capability", "")
            except RuntimeError:  # no such device
                capability = ""
            name = f"sm{capability.replace('.', '')}"
            return cls(name) if name in set(cls) else cls.CUDA
        return cls(platform)


@dataclasses.dataclass(frozen=True)
class PrecisionGuarantee:
    """The numerical contract of what a plan runs.

    Attributes:
        math_precision: what it computes in.
        accumulator: what it sums, multiplies or compares in.
        deterministic: the same bits in every run of a program.
        bit_stable_on_same_hardware: and in every process, on the same hardware and the same versions of software.
    """

    math_precision: MathPrecision
    accumulator: ElementKind
    deterministic: bool
    bit_stable_on_same_hardware: bool


@dataclasses.dataclass(frozen=True)
class KernelSku:
    """The identity of what a plan runs: a key for caches, and a line for logs. Ops so far have no layouts or epilogues.

    Attributes:
        category: the kind of op.
        op: the primitive, such as segment_max_split or segment_sum_backward.
        element: the type of what is computed.
        aux_element: that of the first operand whose type differs, such as ids; None where there is none.
        layout, epilogue: None.
        arch: the device's architecture.
        backend: who computes.
        precision: the numerical contract.
    """

    category: OpCategory
    op: str
    element: ElementKind
    aux_element: ElementKind | None
    layout: None
    epilogue: None
    arch: ArchSku
    backend: BackendKind
    precision: PrecisionGuarantee


def precision(dtype, is_deterministic):
    """The rule of all ops: floats of fewer than 32 bits compute in float32, all else in its own type."""
    dtype = jnp.dtype(dtype)
    is_narrow = jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize < 4
    accumulator = ElementKind.F32 if is_narrow else ElementKind.of(dtype)
    math = MathPrecision.F64 if accumulator in (ElementKind.F64, ElementKind.C128) else MathPrecision.F32
    math = math if jnp.issubdtype(dtype, jnp.inexact) else MathPrecision.INTEGER
    return PrecisionGuarantee(math, accumulator, is_deterministic, is_deterministic)
