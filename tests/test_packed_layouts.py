"""Weights in the layouts of other programs, written here value by value; and products of 4 bits and of single bits."""

import json
import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent

import baracuda_jax as bj

BACKENDS = pytest.mark.parametrize("implementation", ["native", "xla"])


def values(*shape, seed=0, bits=4):
    return np.random.default_rng(seed).integers(0, 2**bits, shape)


def scales_of(*shape):
    return np.random.default_rng(9).uniform(0.1, 1, shape).astype(np.float32)


def near(y, want, eps=3e-6):
    np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=0, atol=eps * np.abs(want).max())


def awq(q):
    """Words of eight columns of [rows, columns]."""
    words = np.zeros((q.shape[0], q.shape[1] // 8), np.uint32)
    for k, column in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
        words |= q[:, column::8].astype(np.uint32) << (4 * k)
    return words.view(np.int32)


@BACKENDS
@pytest.mark.parametrize("groups", [1, 3])
def test_awq(groups, implementation):
    q, zero, scales = values(96, 24), values(groups, 24, seed=1), scales_of(groups, 24)
    size = 96 // groups
    w = (q - np.repeat(zero, size, 0)) * np.repeat(scales, size, 0).astype(np.float64)
    packed = awq(q), scales, awq(zero)
    np.testing.assert_array_equal(bj.int4_awq_dequantize(*packed), w.astype(np.float32))
    assert bj.int4_awq_dequantize(*packed, dtype="bfloat16").dtype == jnp.bfloat16
    for lead in ((), (3,), (20,)):
        x = np.random.default_rng(2).standard_normal((*lead, 96)).astype(np.float32)
        near(bj.int4_awq_gemm(x, *packed, implementation=implementation), x.astype(np.float64) @ w)
    near(x @ bj.packed.from_awq(*packed).T, x.astype(np.float64) @ w)
    dx = jax.grad(lambda x: bj.int4_awq_gemm(x, *packed, implementation=implementation).sum())(sent.asarray(x))
    near(dx, np.broadcast_to(w.sum(1), x.shape))


@pytest.mark.parametrize(
    "dtype, scale_dtype",
    [("float16", "float16"), ("bfloat16", "float32"), ("float32", "bfloat16"), ("float64", "float64")],
)
@pytest.mark.parametrize("rows, columns, groups, count", [(2112, 72, 3, 17), (4096, 96, 32, 8), (64, 8, 1, 33)])
def test_awq_as_a_kernel_cuts_it(rows, columns, groups, count, dtype, scale_dtype):
    """Words that are no multiple of a block's, and rows that are cut into parts; rows of x have the bits that they have alone."""
    q, zero = awq(values(rows, columns)), awq(values(groups, columns, seed=1))
    scales = scales_of(groups, columns).astype(jnp.dtype(scale_dtype))
    w = np.asarray(
        bj.int4_awq_dequantize(q, scales, zero, dtype="float64" if dtype == "float64" else "float32"), np.float64
    )
    x = np.random.default_rng(2).standard_normal((count, rows)).astype(jnp.dtype(dtype))
    multiply = lambda x: bj.int4_awq_gemm(x, q, scales, zero, implementation="native")
    y = np.asarray(multiply(x))
    near(y, x.astype(np.float64) @ w, {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 3e-6))
    some = min(count, 16)  # a library multiplies with more on a CPU
    np.testing.assert_array_equal(np.asarray(multiply(x[:some]))[-1], np.asarray(multiply(x[some - 1])))
    dy = np.random.default_rng(3).standard_normal((count, columns)).astype(jnp.dtype(dtype))
    dx = bj.int4_awq_gemm_backward(q, scales, zero, dy, implementation="native")
    near(dx, dy.astype(np.float64) @ w.T, {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 3e-6))


@BACKENDS
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_awq_of_products_whose_sums_leave_the_range(dtype, implementation):
    """Factors bring them back; infinity and NaN go where the definition sends them."""
    q, zero = awq(values(128, 16)), awq(values(2, 16, seed=1))
    scales = np.full((2, 16), 2.0**-10, np.float32)
    w = np.asarray(bj.int4_awq_dequantize(q, scales, zero), np.float64)
    large = 2.0**13 if dtype == "float16" else 2.0**124
    for special in (large, np.inf, np.nan):
        x = np.random.default_rng(2).standard_normal((3, 128)) * large
        x[1, 17] = special
        x = x.astype(jnp.dtype(dtype))
        with np.errstate(invalid="ignore"):
            want = x.astype(np.float64) @ w
        y = np.asarray(bj.int4_awq_gemm(x, q, scales, zero, implementation=implementation), np.float64)
        np.testing.assert_array_equal(np.where(np.isfinite(y), 0, y), np.where(np.isfinite(want), 0, want))
        near(np.where(np.isfinite(want), y, 0), np.where(np.isfinite(want), want, 0), 1e-2)


def marlin(q, scales):
    """The words and scales of [K, N]: for each lane of a warp what it multiplies, tile by tile of 16 x 16."""
    rows, columns = q.shape
    words = np.zeros((rows // 16, 2 * columns), np.uint32)
    for i in range(rows // 16):
        for chunk in range(columns // 64):
            position = 0
            for lane in range(32):
                for tile in range(4):
                    fragment = [
                        q[16 * i + row, 64 * chunk + 16 * tile + lane // 4 + 8 * half]
                        for half in range(2)
                        for row in (2 * (lane % 4), 2 * (lane % 4) + 1, 2 * (lane % 4) + 8, 2 * (lane % 4) + 9)
                    ]
                    word = sum(int(fragment[k]) << (4 * n) for n, k in enumerate((0, 2, 4, 6, 1, 3, 5, 7)))
                    words[i, 128 * chunk + position] = word
                    position += 1
    wide = 64 if len(scales) > 1 else 32
    if wide == 64:
        order = [8 * j + i for i in range(8) for j in range(8)]
    else:
        order = [2 * i + j for i in range(4) for j in (0, 1, 8, 9, 16, 17, 24, 25)]
    return words.view(np.int32), scales.reshape(-1, wide)[:, order].reshape(scales.shape)


@BACKENDS
@pytest.mark.parametrize("groups", [1, 2])
def test_marlin(groups, implementation):
    q, scales = values(256, 128), scales_of(groups, 128)
    w = (q - 8) * np.repeat(scales, 256 // groups, 0).astype(np.float64)
    packed = marlin(q, scales)
    x = np.random.default_rng(2).standard_normal((3, 256)).astype(np.float32)
    near(bj.int4_marlin_gemm(x, *packed, implementation=implementation), x.astype(np.float64) @ w)
    near(x @ bj.packed.from_marlin(*packed).T, x.astype(np.float64) @ w)


def gptq(q, bits=4):
    """Words of eight rows of [rows, columns], or of four."""
    of_word = 32 // bits
    words = sum(q[k::of_word].astype(np.uint32) << (bits * k) for k in range(of_word))
    return words.astype(np.uint32).view(np.int32)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("bits", [4, 8])
def test_gptq(bits, groups, version):
    q, zero = values(96, 24, bits=bits), values(groups, 24, seed=1, bits=bits)
    scales = scales_of(groups, 24).astype(np.float16)
    size = 96 // groups
    w = (q - np.repeat(zero + 2 - version, size, 0)) * np.repeat(scales, size, 0).astype(np.float64)
    packed = gptq(q, bits), scales, np.ascontiguousarray(gptq(zero.T, bits).T), np.arange(96) // size
    found = bj.packed.from_gptq(*packed, version=version, bits=bits)
    assert found.shape == (24, 96) and found.format == f"int{bits}"
    np.testing.assert_array_equal(found.dequantize(), w.T.astype(np.float32))
    x = np.random.default_rng(2).standard_normal((3, 96)).astype(np.float32)
    near(x @ found.T, x.astype(np.float64) @ w)


def read_safetensors(path):
    """{name: array}: the length of a header in JSON, the header, and the arrays."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    dtypes = {"U8": "u1", "I8": "i1", "I32": "<i4", "F16": "<f2", "F32": "<f4", "I64": "<i8"}
    part = lambda of: data[8 + size :][slice(*of["data_offsets"])]
    header = json.loads(data[8 : 8 + size])
    return {name: np.frombuffer(part(of), dtypes[of["dtype"]]).reshape(of["shape"]) for name, of in header.items()}


def write_safetensors(path, tensors):
    names, header, at = (
        {"uint8": "U8", "int8": "I8", "int32": "I32", "float16": "F16", "float32": "F32", "int64": "I64"},
        {},
        0,
    )
    for name, x in tensors.items():
        header[name] = {"dtype": names[x.dtype.name], "shape": x.shape, "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(x.tobytes() for x in tensors.values()))


def text_of(**state):
    return np.frombuffer(json.dumps(state).encode(), np.uint8)


def bitsandbytes_of(q, absmax, **state):
    table = np.float32(bj.packed._decode.NF4)
    data = (q[:, 0::2] << 4 | q[:, 1::2]).astype(np.uint8).reshape(-1, 1)
    state = dict(quant_type="nf4", blocksize=64, dtype="float16", shape=q.shape) | state
    return {
        "a.weight": data, "a.weight.absmax": absmax, "a.weight.quant_map": table,
        "a.weight.quant_state.bitsandbytes__nf4": text_of(**state),
    }  # fmt: skip


def test_layers_of_safetensors(tmp_path):
    """Of each layout, told apart by names and shapes."""
    q, zero, scales = values(128, 24), values(2, 24, seed=1), scales_of(2, 24).astype(np.float16)
    plain = np.repeat(scales, 64, 0).astype(np.float64)
    zeros = np.repeat(zero, 64, 0)
    absmax = scales_of(48).astype(np.float32)
    code, nested = np.linspace(-1, 1, 256, dtype=np.float32), np.float32([0.25])
    rounded = np.random.default_rng(5).integers(0, 256, 48).astype(np.uint8)
    layers = {
        "awq": ({"qweight": awq(q), "scales": scales, "qzeros": awq(zero)}, (q - zeros) * plain),
        "gptq": (
            {"qweight": gptq(q), "scales": scales, "qzeros": np.ascontiguousarray(gptq(zero.T).T), "g_idx": np.arange(128, dtype=np.int32) // 64},
            (q - zeros - 1) * plain,
        ),
    }  # fmt: skip
    eight, middle = values(128, 24, seed=3, bits=8), values(2, 24, seed=4, bits=8)
    layers["gptq of eight bits"] = (
        {"qweight": gptq(eight, 8), "scales": scales, "qzeros": np.ascontiguousarray(gptq(middle.T, 8).T)},
        (eight - np.repeat(middle, 64, 0) - 1) * plain,
    )
    signed, largest = (eight.T - 128).astype(np.int8), scales_of(24)
    layers["llm.int8"] = (
        {"weight": signed, "SCB": largest, "weight_format": np.uint8(0)[None]},
        signed.T * (largest / 127),
    )
    tensors = {f"{name}.{key}": x for name, (of, _) in layers.items() for key, x in of.items()}
    of = bitsandbytes_of(q.T, absmax)
    tensors |= {f"nf4{key[1:]}": x for key, x in of.items()}
    of = bitsandbytes_of(q.T, rounded, nested_blocksize=256, nested_dtype="float32", nested_offset=0.5)
    of |= {"a.weight.nested_absmax": nested, "a.weight.nested_quant_map": code}
    tensors |= {f"nested{key[1:]}": x for key, x in of.items()}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    tensors = read_safetensors(tmp_path / "model.safetensors")
    table = np.float32(bj.packed._decode.NF4)
    want = {name: w.T for name, (_, w) in layers.items()}
    want["nf4"] = table[q.T] * np.repeat(absmax.reshape(24, 2), 64, 1)
    want["nested"] = table[q.T] * np.repeat((code[rounded] * nested + np.float32(0.5)).reshape(24, 2), 64, 1)
    x = np.random.default_rng(2).standard_normal((3, 128)).astype(np.float32)
    for name, w in want.items():
        packed = bj.packed.from_tensors(tensors, name)
        format = "int8" if "int8" in name or "eight" in name else "int4" if name in layers else "nf4"
        assert packed.shape == (24, 128) and packed.format == format
        near(packed.dequantize(), w, 3e-7)
        near(x @ packed.T, x.astype(np.float64) @ np.asarray(w, np.float64).T)


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("code", ["nf4", "fp4"])
def test_layers_of_bitsandbytes(code, is_nested):
    """What its state is saved as."""
    torch, functional = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes.functional")
    w = torch.tensor(np.random.default_rng(0).standard_normal((24, 128)), dtype=torch.float32)
    q, state = functional.quantize_4bit(w, blocksize=64, quant_type=code, compress_statistics=is_nested)
    tensors = {"a.weight": q.numpy()}
    tensors |= {f"a.weight.{name}": x.numpy() for name, x in state.as_dict(packed=True).items()}
    found = bj.packed.from_tensors(tensors, "a")
    np.testing.assert_allclose(found.dequantize(), functional.dequantize_4bit(q, state).numpy(), rtol=1e-6)


def test_layers_of_llm_int8():
    """What a layer of bitsandbytes has."""
    torch, bitsandbytes = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes")
    layer = bitsandbytes.nn.Linear8bitLt(128, 24, bias=False, has_fp16_weights=False)
    layer.weight.data = torch.tensor(np.random.default_rng(0).standard_normal((24, 128)), dtype=torch.float16)
    state = layer.to("cpu").state_dict()
    found = bj.packed.from_tensors({f"a.{key}": x.numpy() for key, x in state.items()}, "a")
    want = bitsandbytes.functional.int8_vectorwise_dequant(state["weight"], state["SCB"])
    np.testing.assert_allclose(found.dequantize(), want.numpy(), rtol=1e-6)
    x = np.random.default_rng(1).standard_normal((3, 128)).astype(np.float32)
    near(x @ found.T, x.astype(np.float64) @ want.double().numpy().T)


_LAYER = bitsandbytes_of(values(4, 64), scales_of(4))
_BYTES = {"a.weight": np.zeros((4, 64), np.int8), "a.SCB": np.ones(4, np.float32), "a.weight_format": np.uint8(0)}
_WORDS = {
    "a.qweight": np.zeros((8, 8), np.int32),
    "a.scales": np.ones((2, 8), np.float32),
    "a.qzeros": np.zeros((2, 1), np.int32),
}


@pytest.mark.parametrize(
    "match, tensors",
    [
        ("tensors must have 'a.qweight'", {}),
        ("tensors must have 'a.qzeros'", {k: v for k, v in _WORDS.items() if k != "a.qzeros"}),
        (r"from_gptq: scales must be \[groups, 8\], with groups that divide 64, got shape \(3, 8\)", _WORDS | {"a.scales": np.ones((3, 8), np.float32)}),
        (r"from_gptq: qzeros must have shape \(2, 1\), as scales, got \(1, 1\)", _WORDS | {"a.qzeros": np.zeros((1, 1), np.int32)}),
        ("from_gptq: g_idx must be groups of 32 neighbors; act-order is not packed here", _WORDS | {"a.g_idx": np.arange(64) % 2}),
        ("tensors must have 'a.weight.absmax'", {k: v for k, v in _LAYER.items() if not k.endswith("absmax")}),
        ("'a.weight.quant_map' must be the table of nf4", _LAYER | {"a.weight.quant_map": np.zeros(16, np.float32)}),
        ("'a.weight.quant_map' must be the table of nf4", _LAYER | {"a.weight.quant_map": np.zeros(3, np.float32)}),
        ("must be bitsandbytes' state of a matrix", bitsandbytes_of(values(4, 64), scales_of(4), shape=["a", 64])),
        ("must be bitsandbytes' state of a matrix", bitsandbytes_of(values(4, 64), scales_of(4), nested_offset=None, nested_blocksize=256)),
        (r"must have rows of whole groups of 64 weights, got shape \(-4, -64\)", bitsandbytes_of(values(4, 64), scales_of(4), shape=[-4, -64])),
        ("must be bitsandbytes' state of a matrix", _LAYER | {"a.weight.quant_state.bitsandbytes__nf4": text_of(shape=[4, 64])}),
        ("must be bitsandbytes' state of a matrix", _LAYER | {"a.weight.quant_state.bitsandbytes__nf4": np.frombuffer(b"{", np.uint8)}),
        (r"must have rows of whole groups of 48 weights, got shape \(4, 64\)", bitsandbytes_of(values(4, 64), scales_of(4), blocksize=48)),
        ("nested_blocksize of .* must be 256, got 128", bitsandbytes_of(values(4, 64), scales_of(4), nested_offset=0, nested_blocksize=128)),
        ("must have 256 weights and a factor for each 64, got 256 and 3 factors", bitsandbytes_of(values(4, 64), scales_of(3))),
        ("tensors must have 'a.weight'", {k: v for k, v in _BYTES.items() if k != "a.weight"}),
        (r"a.SCB must have shape \(4,\), one for each row, got \(3,\)", _BYTES | {"a.SCB": np.ones(3, np.float32)}),
        (r"'a.weight' must have rows of a multiple of 32 weights, got shape \(4, 33\)", _BYTES | {"a.weight": np.zeros((4, 33), np.int8)}),
        (r"'a.weight' must have rows of a multiple of 32 weights, got shape \(64,\)", _BYTES | {"a.weight": np.zeros(64, np.int8)}),
        ("'a.weight_format' must be 0, by rows, got 2", _BYTES | {"a.weight_format": np.uint8(2)}),
    ],
)  # fmt: skip
def test_layers_that_are_broken(match, tensors):
    with pytest.raises(ValueError, match=match):
        bj.packed.from_tensors(tensors, "a")


@pytest.mark.parametrize("name, dtype", [("a.weight", "uint8"), ("a.SCB", "int32")])
def test_bytes_of_other_dtypes(name, dtype):
    with pytest.raises(TypeError, match=f"from_tensors: {name} must have one of the dtypes .*, got {dtype}"):
        bj.packed.from_tensors(_BYTES | {name: _BYTES[name].astype(dtype)}, "a")


@pytest.mark.parametrize("dtypes", [("int4", "int4"), ("uint4", "int4"), ("uint4", "uint4")])
def test_products_of_four_bits(dtypes):
    draw = lambda dtype, *shape: np.random.default_rng(3).integers(*((-8, 8) if dtype == "int4" else (0, 16)), shape)
    a, b = draw(dtypes[0], 5, 24), draw(dtypes[1], 24, 7)
    packed = sent.asarray(a, jnp.dtype(dtypes[0])), sent.asarray(b, jnp.dtype(dtypes[1]))
    np.testing.assert_array_equal(bj.int4_gemm(*packed), a @ b)
    np.testing.assert_array_equal(bj.int4_gemm(packed[0], packed[1].T, transpose_b=True), a @ b)
    z = np.float32(0.0625) * (a @ b) + np.arange(7, dtype=np.float32)
    y = bj.int4_gemm(*packed, np.float32(0.0625), np.arange(7, dtype=np.float32), activation="relu")
    info = jnp.iinfo(dtypes[0])
    assert y.dtype == dtypes[0]
    np.testing.assert_array_equal(np.asarray(y, int), np.clip(np.rint(np.maximum(z, 0)), info.min, info.max))


@pytest.mark.parametrize("rows", [1, 16, 17, 40])
@pytest.mark.parametrize("size", [0, 3, 16])
def test_products_of_bits(rows, size):
    draw = lambda seed, n: np.random.default_rng(seed).integers(0, 256, (n, size), np.uint8)
    a, b = draw(0, rows), draw(1, 6)
    bits = lambda x: np.unpackbits(x, axis=1).astype(int)
    differ = (bits(a)[:, None] != bits(b)[None]).sum(-1)
    np.testing.assert_array_equal(bj.bin_gemm(a, b), differ)
    np.testing.assert_array_equal(bj.bin_gemm(a, b, signs=True), (1 - 2 * bits(a)) @ (1 - 2 * bits(b)).T)


def test_blocks_of_q8_1():
    """As ggml has them: d and s in half precision, and 32 integers."""
    x = np.random.default_rng(4).standard_normal((3, 96)).astype(np.float32)
    x[0, :32] = 0
    y = np.asarray(bj.quantize_q8_1(x)).reshape(3, 3, 36)
    blocks = x.reshape(3, 3, 32)
    d = np.abs(blocks).max(-1) / np.float32(127)
    q = np.rint(np.divide(blocks, d[..., None], out=np.zeros_like(blocks), where=d[..., None] > 0))
    np.testing.assert_array_equal(y[..., :2].copy().view(np.float16)[..., 0], d.astype(np.float16))
    np.testing.assert_allclose(y[..., 2:4].copy().view(np.float16)[..., 0], (q.sum(-1) * d), rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(y[..., 4:].view(np.int8), q)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, r"int4_awq_gemm: scales must be \[groups, 16\], with groups that divide 64, got shape \(3, 16\)", lambda x, q: bj.int4_awq_gemm(x, q, sent.ones((3, 16)), q[:3])),
        (ValueError, r"int4_awq_gemm: scales must have groups of a multiple of 32 rows: expected a divisor of 2 for 64, got 4", lambda x, q: bj.int4_awq_gemm(x, q, sent.ones((4, 16)), q[:4])),
        (ValueError, r"int4_awq_gemm_backward: dy must have rows of 16 elements, as the weights, got shape \(3, 64\)", lambda x, q: bj.int4_awq_gemm_backward(q, sent.ones((2, 16)), q[:2], sent.ones((3, 64)))),
        (ValueError, r"int4_awq_dequantize: qzeros must have shape \(2, 2\), as scales, got \(1, 2\)", lambda x, q: bj.int4_awq_dequantize(q, sent.ones((2, 16)), q[:1])),
        (TypeError, "int4_awq_dequantize: qweight must have one of the dtypes int32, uint32, got float32", lambda x, q: bj.int4_awq_dequantize(x, sent.ones((2, 16)), q[:2])),
        (ValueError, r"int4_marlin_gemm: qweight must be \[K / 16, 2 N\] with N a multiple of 64, got shape \(64, 2\)", lambda x, q: bj.int4_marlin_gemm(x, q, sent.ones((1, 1)))),
        (ValueError, r"quantize_q8_1: x must have rows of a multiple of 32 elements, got shape \(2, 63\)", lambda x, q: bj.quantize_q8_1(x[:, 1:])),
        (ValueError, r"bin_gemm: b must have rows of 3 bytes, as a has, got shape \(2, 4\)", lambda x, q: bj.bin_gemm(np.zeros((2, 3), np.uint8), np.zeros((2, 4), np.uint8))),
        (TypeError, "int4_gemm: a must have one of the dtypes int4, uint4, got int8", lambda x, q: bj.int4_gemm(np.zeros((2, 3), np.int8), np.zeros((3, 2), np.int8))),
    ],
)  # fmt: skip
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(np.ones((2, 64), np.float32), np.zeros((64, 2), np.int32))
