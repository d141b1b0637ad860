"""Weights as files of models have them: the arrays of a layer, by the names that they have there."""

import json
from collections.abc import Mapping

import numpy as np
from jax.typing import ArrayLike

from .._core import checks
from . import _arguments as arguments
from . import _decode
from ._awq import from_awq
from ._formats import FORMATS
from ._layouts import gptq_rows
from ._scaled import NESTED_GROUP, NestedAbsmax, absmax_of
from ._weight import PackedWeight

_STATE = "quant_state.bitsandbytes__"


def from_gptq(
    qweight: ArrayLike,
    scales: ArrayLike,
    qzeros: ArrayLike,
    g_idx: ArrayLike | None = None,
    *,
    version: int = 1,
    bits: int = 4,
) -> PackedWeight:
    """The transpose [N, K] of a matrix in GPTQ's layout, for `x @ w.T`.

    Args:
        qweight: int32 or uint32 [K / 8, N], eight rows of a column in a word, the first in the lowest four bits; with eight
            bits [K / 4, N].
        scales: floats [groups, N].
        qzeros: int32 or uint32 [groups, N / 8], or [groups, N / 4], columns in a word. They are less by one in version 1.
        g_idx: integers [K], the group of each row; None for groups of neighbors. Other orders (act-order) are an error.
        version: of the checkpoint's format, 1 ("gptq") or 2 ("gptq_v2").
        bits: of a weight, 4 or 8.

    Returns:
        PackedWeight of the format "int4" or "int8".

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.
    """
    op = "from_gptq"
    qweight, qzeros = arguments.words(op, "qweight", qweight), arguments.words(op, "qzeros", qzeros)
    scales = checks.floats(op, "scales", scales)
    format, of_word = arguments.integers(op, bits), 32 // bits
    rows, columns = of_word * qweight.shape[0], qweight.shape[1]
    if scales.ndim != 2 or scales.shape[1] != columns or (scales.shape[0] == 0 or rows % scales.shape[0]):
        raise ValueError(
            f"{op}: scales must be [groups, {columns}], with groups that divide {rows}, got shape {tuple(scales.shape)}"
        )
    checks.shape(op, "qzeros", qzeros, (scales.shape[0], -(-columns // of_word)), "as scales")
    if version not in (1, 2):
        raise ValueError(f"{op}: version must be 1 or 2, got {version!r}")
    if g_idx is not None:
        expected = np.arange(rows) // (rows // scales.shape[0])
        if not np.array_equal(np.asarray(g_idx), expected):
            raise ValueError(
                f"{op}: g_idx must be groups of {rows // scales.shape[0]} neighbors; act-order is not packed here"
            )
    return PackedWeight(format, *gptq_rows(qweight, scales, qzeros, less=2 - version, bits=bits))


def from_tensors(tensors: Mapping[str, ArrayLike], name: str, *, version: int = 1) -> PackedWeight:
    """The weight [N, K] of a layer, from what a `.safetensors` file of a quantized model has, in the layout of AWQ, of GPTQ
    with four bits or eight, or of bitsandbytes with four bits or eight (LLM.int8), which the names and shapes tell apart.

    Args:
        tensors: {name: array}, as safetensors.numpy.load_file returns them.
        name: of the layer, such as "model.layers.0.mlp.up_proj".
        version: of GPTQ's format, as for `from_gptq`.

    Returns:
        PackedWeight, for `x @ w.T`.

    Raises:
        TypeError, ValueError: for a layer that is not there, or is in none of the layouts, naming what is missing.
    """
    op = "from_tensors"
    state = [key for key in tensors if key.startswith(f"{name}.weight.{_STATE}")]
    if state:
        return _from_bitsandbytes(op, tensors, f"{name}.weight", state[0])
    if f"{name}.SCB" in tensors:
        return _from_bytes(op, tensors, name)
    qweight, scales, qzeros = (_tensor(op, tensors, f"{name}.{of}") for of in ("qweight", "scales", "qzeros"))
    if np.ndim(qweight) == 2 == np.ndim(scales) and np.shape(scales)[1] == 8 * np.shape(qweight)[1]:
        return from_awq(qweight, scales, qzeros)
    columns, words = np.shape(scales)[-1:], np.shape(qzeros)[-1:]
    bits = 8 if columns and words == (-(-columns[0] // 4),) != (-(-columns[0] // 8),) else 4
    return from_gptq(qweight, scales, qzeros, tensors.get(f"{name}.g_idx"), version=version, bits=bits)


def _tensor(op, tensors, name):
    if name not in tensors:
        raise ValueError(f"{op}: tensors must have {name!r}")
    return tensors[name]


def _from_bitsandbytes(op, tensors, name, state_name):
    code = state_name.rsplit("__", 1)[1]
    checks.choice(op, f"the format of {name!r}", code, arguments.TABLES)
    try:
        state = json.loads(np.asarray(tensors[state_name], np.uint8).tobytes())
        size, (rows, columns) = int(state["blocksize"]), map(int, state["shape"])
        offset = float(state.get("nested_offset", 0))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{op}: {state_name!r} must be bitsandbytes' state of a matrix: {error}") from None
    table = np.asarray(_tensor(op, tensors, f"{name}.quant_map"))
    if table.shape != (16,) or not np.allclose(table, _decode.TABLES[code], rtol=1e-6):
        raise ValueError(f"{op}: {name + '.quant_map'!r} must be the table of {code}")
    if size < 1 or columns % size or min(rows, columns) < 0:
        raise ValueError(
            f"{op}: {name!r} must have rows of whole groups of {size} weights, got shape {(rows, columns)}"
        )
    absmax = _tensor(op, tensors, f"{name}.absmax")
    if "nested_offset" in state:
        if state.get("nested_blocksize") != NESTED_GROUP:
            raise ValueError(
                f"{op}: nested_blocksize of {state_name!r} must be {NESTED_GROUP}, got {state.get('nested_blocksize')}"
            )
        nested = (_tensor(op, tensors, f"{name}.{of}") for of in ("nested_quant_map", "nested_absmax"))
        absmax = absmax_of(op, NestedAbsmax(absmax, *nested, np.float32(offset)))
    data, absmax = arguments.data(op, name, _tensor(op, tensors, name)), checks.floats(op, f"{name}.absmax", absmax)
    if 2 * data.size != rows * columns or absmax.size * size != rows * columns:
        raise ValueError(
            f"{op}: {name!r} must have {rows * columns} weights and a factor for each {size}, got {2 * data.size} and "
            f"{absmax.size} factors"
        )
    return PackedWeight(code, data.reshape(rows, columns // 2), absmax.reshape(rows, columns // size))


def _from_bytes(op, tensors, name):
    """Of bitsandbytes' LLM.int8: signed bytes, and the largest absolute value of each row, which is 127."""
    weight = np.asarray(_tensor(op, tensors, f"{name}.weight"))
    largest = checks.floats(op, f"{name}.SCB", tensors[f"{name}.SCB"])
    checks.dtype(op, f"{name}.weight", weight, ("int8",))
    block = FORMATS["int8"].block
    if weight.ndim != 2 or weight.shape[1] % block:
        raise ValueError(
            f"{op}: {name + '.weight'!r} must have rows of a multiple of {block} weights, got shape {weight.shape}"
        )
    checks.shape(op, f"{name}.SCB", largest, weight.shape[:1], "one for each row")
    order = np.asarray(tensors.get(f"{name}.weight_format", 0))
    if order.size != 1 or order.item() != 0:
        raise ValueError(f"{op}: {name + '.weight_format'!r} must be 0, by rows, got {order.tolist()}")
    return PackedWeight(
        "int8", arguments.data(op, name, weight.view(np.uint8)), arguments.as_float32(largest)[:, None] / 127
    )
