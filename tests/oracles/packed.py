"""Packed weights, one by one: Python's integers take the bits of each out of its block."""

import numpy as np

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)  # by the definition of the format: 1 bit of sign, 2 of exponent, 1 of mantissa
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
FP4 = (0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)


def _half(b, at):
    return float(np.frombuffer(bytes(b[at : at + 2]), "<f2")[0])


def _nibble(byte, high):
    return byte >> 4 if high else byte & 15


def _fifth(b, at, i):
    return (b[at + i // 8] >> (i % 8) & 1) << 4


def q4_0(b, i):
    return _half(b, 0) * (_nibble(b[2 + i % 16], i // 16) - 8)


def q4_1(b, i):
    return _half(b, 0) * _nibble(b[4 + i % 16], i // 16) + _half(b, 2)


def q5_0(b, i):
    return _half(b, 0) * ((_nibble(b[6 + i % 16], i // 16) | _fifth(b, 2, i)) - 16)


def q5_1(b, i):
    return _half(b, 0) * (_nibble(b[8 + i % 16], i // 16) | _fifth(b, 4, i)) + _half(b, 2)


def _signed(byte):
    return byte - 256 * (byte > 127)


def q8_0(b, i):
    return _half(b, 0) * _signed(b[2 + i])


def _pair(b, at, i):
    half, field, k = i // 128, i // 32 % 4, i % 32
    return b[at + 32 * half + k] >> (2 * field) & 3


def q2_k(b, i):
    s = b[i // 16]
    return _half(b, 80) * (s & 15) * _pair(b, 16, i) - _half(b, 82) * (s >> 4)


def q3_k(b, i):
    k = i // 16
    scale = _nibble(b[96 + k % 8], k // 8) | (b[104 + k % 4] >> (2 * (k // 4)) & 3) << 4
    is_high = b[i % 32] >> (i // 32) & 1
    return _half(b, 108) * (scale - 32) * (_pair(b, 32, i) - (0 if is_high else 4))


def _six_bits(s, k):
    if k < 4:
        return s[k] & 63, s[k + 4] & 63
    return s[k + 4] & 15 | s[k - 4] >> 6 << 4, s[k + 4] >> 4 | s[k] >> 6 << 4


def _of_k(b, i, q):
    scale, lowest = _six_bits(b[4:16], i // 32)
    return _half(b, 0) * scale * q - _half(b, 2) * lowest


def q4_k(b, i):
    return _of_k(b, i, _nibble(b[16 + i // 64 * 32 + i % 32], i // 32 % 2))


def q5_k(b, i):
    high = (b[16 + i % 32] >> (i // 32) & 1) << 4
    return _of_k(b, i, _nibble(b[48 + i // 64 * 32 + i % 32], i // 32 % 2) | high)


def q6_k(b, i):
    half, quarter, k = i // 128, i // 32 % 4, i % 32
    low = _nibble(b[64 * half + 32 * (quarter % 2) + k], quarter // 2)
    high = (b[128 + 32 * half + k] >> (2 * quarter) & 3) << 4
    return _half(b, 208) * _signed(b[192 + i // 16]) * ((low | high) - 32)


def q8_k(b, i):
    return float(np.frombuffer(bytes(b[:4]), "<f4")[0]) * _signed(b[4 + i])


def iq4_nl(b, i):
    return _half(b, 0) * IQ4[_nibble(b[2 + i % 16], i // 16)]


def iq4_xs(b, i):
    k = i // 32
    scale = _nibble(b[4 + k // 2], k % 2) | ((b[2] | b[3] << 8) >> (2 * k) & 3) << 4
    return _half(b, 0) * (scale - 32) * IQ4[_nibble(b[8 + 16 * k + i % 16], i // 16 % 2)]


def mxfp4(b, i):
    q = _nibble(b[1 + i % 16], i // 16)
    return 2.0 ** (b[0] - 127) * E2M1[q % 8] * (-1) ** (q // 8)


SIZES = {
    "Q4_0": (32, 18), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24), "Q8_0": (32, 34), "IQ4_NL": (32, 18),
    "MXFP4": (32, 17), "Q2_K": (256, 84), "Q3_K": (256, 110), "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
    "Q8_K": (256, 292), "IQ4_XS": (256, 136),
}  # fmt: skip


def gguf_weights(data, format):
    """float64 [..., weights of a row]"""
    weight, (count, size) = globals()[format.lower()], SIZES[format]
    blocks = np.asarray(data).reshape(-1, size).tolist()
    y = [weight(b, i) for b in blocks for i in range(count)]
    return np.array(y, np.float64).reshape(*data.shape[:-1], data.shape[-1] // size * count)


def _of_two(high_first):
    return lambda row, i: _nibble(int(row[i // 2]), (i % 2 == 0) == high_first)


def scaled_weights(data, scale, values, integer, bits=4):
    """The same of formats with a scale for each group; `values(q, group)`, with the group's index and q = integer(row, i)."""
    y = np.zeros((*data.shape[:-1], 8 // bits * data.shape[-1]))
    size = y.shape[-1] // scale.shape[-1] if scale.shape[-1] else 1
    for at in np.ndindex(y.shape):
        q = integer(data[at[:-1]], at[-1])
        group = (*at[:-1], at[-1] // size)
        y[at] = np.float32(values(q, group) * float(scale[group]))  # rounded once
    return y


def nf4_weights(data, absmax, code="nf4"):
    table = np.float32(NF4 if code == "nf4" else (*FP4, *(-x for x in FP4)))
    return scaled_weights(data, absmax, lambda q, _: float(table[q]), _of_two(True))


def int4_weights(data, scale, zero=None, bits=4):
    middle, integer = (8, _of_two(False)) if bits == 4 else (0, lambda row, i: _signed(int(row[i])))
    values = lambda q, group: q - (middle if zero is None else float(zero[group]))
    return scaled_weights(data, scale, values, integer, bits)


def weights(name, arrays, options):
    kind = name.partition("_")[0]
    if kind == "gguf":
        return gguf_weights(arrays[0], options["format"])
    return nf4_weights(*arrays, **options) if kind == "nf4" else int4_weights(*arrays, **options)


def awq_weights(q, scales, zeros):
    """[K, N], column by column of a word."""
    field = lambda words, k, n: int(words[k, n // 8]) >> (4 * (0, 4, 1, 5, 2, 6, 3, 7)[n % 8]) & 15
    rows, columns, size = q.shape[0], 8 * q.shape[1], q.shape[0] // scales.shape[0]
    of = lambda k, n: np.float32((field(q, k, n) - field(zeros, k // size, n)) * float(scales[k // size, n]))
    return np.array([[of(k, n) for n in range(columns)] for k in range(rows)], np.float64)


def marlin_weights(q, scales):
    """[K, N]: each lane of a warp has, of a tile of 16 x 16, four rows of two columns."""
    w = np.zeros((16 * q.shape[0], q.shape[1] // 2))
    grouped = len(scales) > 1
    for (i, position), word in np.ndenumerate(q):
        chunk, rest = divmod(position, 128)
        lane, tile = divmod(rest, 4)
        for n, k in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            row = 2 * (lane % 4) + k % 2 + 8 * (k % 4 // 2)
            w[16 * i + row, 64 * chunk + 16 * tile + lane // 4 + 8 * (k // 4)] = (int(word) >> (4 * n) & 15) - 8
    order = np.array([8 * j + i for i in range(8) for j in range(8)])
    if not grouped:
        order = np.array([2 * i + j for i in range(4) for j in (0, 1, 8, 9, 16, 17, 24, 25)])
    plain = np.zeros_like(scales).reshape(-1, order.size)
    plain[:, order] = scales.reshape(-1, order.size)
    return np.float32(w * np.repeat(plain.reshape(scales.shape), len(w) // len(scales), 0))


def q8_1(x):
    blocks = x.astype(np.float64 if x.dtype == np.float64 else np.float32).reshape(*x.shape[:-1], -1, 32)
    d = np.abs(blocks).max(-1, keepdims=True) / blocks.dtype.type(127)
    q = np.rint(blocks / d)
    halves = [part.astype(np.float16).view(np.uint8) for part in (d, q.sum(-1, keepdims=True) * d)]
    return np.concatenate([*halves, q.astype(np.int8).view(np.uint8)], -1).reshape(*x.shape[:-1], -1)


def by_expert(x, w, experts):
    return np.stack([x[t] @ w[e].T if 0 <= e < len(w) else np.zeros(w.shape[1]) for t, e in enumerate(experts)])


def value(name, *arrays, shape=None, numerics="exact", dtype="float32", **options):
    if name == "quantize_q8_1":
        return q8_1(*arrays)
    if name == "int4_awq_dequantize":
        return awq_weights(*arrays)
    if name == "int4_awq_gemm":
        return np.asarray(arrays[0], np.float64) @ awq_weights(*arrays[1:])
    if name == "int4_marlin_gemm":
        return np.asarray(arrays[0], np.float64) @ marlin_weights(*arrays[1:])
    if name == "gguf_mmvq_batched":
        x, data, experts = arrays
        return by_expert(np.asarray(x, np.float64), gguf_weights(data, options["format"]), experts)
    if name.endswith("_dequantize"):
        y = weights(name, arrays, options)
        return y if shape is None else y.reshape(shape)
    x, *packed = arrays
    return np.asarray(x, np.float64) @ weights(name, packed, options).T
