"""Files of the format GGUF: what is in them, what is written, and what is told of broken ones."""

import os
import struct

import jax.numpy as jnp
import numpy as np
import pytest

import baracuda_jax as bj
from baracuda_jax.packed._family import random_blocks
from baracuda_jax.packed._formats import GGUF

FLOAT32, FLOAT16, BFLOAT16 = 0, 1, 30


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def array(kind, *values):
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)


PAIRS = (
    pair("general.name", 8, text("a model")),
    pair("a.bool", 7, b"\1"),
    pair("an.int8", 1, b"\xff"),
    pair("a.uint64", 10, struct.pack("<Q", 2**63)),
    pair("a.float", 6, struct.pack("<f", 0.5)),
    pair("a.double", 12, struct.pack("<d", -0.25)),
    pair("tokens", 9, array(8, text("<s>"), text("é"))),
    pair("scores", 9, array(6, *(struct.pack("<f", v) for v in (1, 2, 3)))),
    pair("lists", 9, array(9, array(4, struct.pack("<I", 7)), array(4))),
    pair("flags", 9, array(7, b"\0", b"\1")),
)
METADATA = {
    "general.name": "a model", "a.bool": True, "an.int8": -1, "a.uint64": 2**63, "a.float": 0.5, "a.double": -0.25,
    "tokens": ["<s>", "é"], "scores": [1.0, 2.0, 3.0], "lists": [[7], []], "flags": [False, True],
}  # fmt: skip


def info(name, sizes, kind, offset):
    rank = len(sizes)
    return text(name) + struct.pack(f"<I{rank}QIQ", rank, *sizes, kind, offset)


def contents(tensors, pairs=PAIRS, version=3, alignment=32, magic=b"GGUF"):
    """A file of {name: (sizes as in the file, number of the type, bytes)}."""
    body, infos = b"", b""
    for name, (sizes, kind, data) in tensors.items():
        infos += info(name, sizes, kind, len(body))
        body += data + b"\0" * (-len(data) % alignment)
    head = magic + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs) + infos
    return head + b"\0" * (-len(head) % alignment) + body


def packed(format, rows=3, weights=512):
    return random_blocks(np.random.default_rng(0), format, rows, weights // GGUF[format].block)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
TENSORS = {
    "x": ((4, 3), FLOAT32, X.tobytes()),
    "half": ((4, 3), FLOAT16, X.astype(np.float16).tobytes()),
    "brain": ((12,), BFLOAT16, (X.view(np.uint32) >> 16).astype(np.uint16).tobytes()),
    "w": ((512, 3), 12, packed("Q4_K").tobytes()),
    "experts": ((32, 2, 4), 8, random_blocks(np.random.default_rng(1), "Q8_0", 4, 2, 1).tobytes()),
}


@pytest.fixture
def load(tmp_path):
    def from_bytes(data):
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        return bj.gguf.load(path)

    return from_bytes


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_and_tensors(load, version):
    file = load(contents(TENSORS, version=version))
    assert file.version == version and dict(file.metadata) == METADATA
    assert list(file) == list(TENSORS) and len(file) == 5
    for name in ("x", "half", "brain"):
        np.testing.assert_array_equal(np.asarray(file[name], np.float32).reshape(3, 4), X)
    assert file.tensors["half"].format == "F16" and file["brain"].dtype == "bfloat16"
    w = file["w"]
    assert isinstance(w, bj.PackedWeight) and w.shape == (3, 512) == file.tensors["w"].shape
    np.testing.assert_array_equal(w.dequantize(), bj.gguf_dequantize(packed("Q4_K"), "Q4_K"))
    assert file["experts"].shape == (4, 2, 32)


def test_nothing_is_copied_before_it_is_used(load):
    file = load(contents(TENSORS))
    for tensor in file.tensors.values():
        base = tensor.data
        while base.base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap) and not base.flags.writeable


def test_other_alignments(load):
    pairs = (*PAIRS, pair("general.alignment", 4, struct.pack("<I", 128)))
    file = load(contents(TENSORS, pairs, alignment=128))
    np.testing.assert_array_equal(file["x"], X)
    assert len(load(contents({}))) == 0


def test_files_of_the_package_gguf(tmp_path):
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    writer.add_tensor("norm", X)
    data = packed("Q6_K")
    writer.add_tensor("w", data, raw_dtype=gguf.GGMLQuantizationType.Q6_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = bj.gguf.load(path)
    assert file.metadata["general.architecture"] == "llama" and file.metadata["llama.block_count"] == 2
    assert file.metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    np.testing.assert_array_equal(file["norm"], X)
    np.testing.assert_array_equal(file["w"].dequantize(), gguf.quants.dequantize(data, gguf.GGMLQuantizationType.Q6_K))


def test_formats_that_are_known_by_their_size(load):
    file = load(contents({"w": ((256,), 16, b"\0" * 66), "x": TENSORS["x"]}))
    np.testing.assert_array_equal(file["x"], X)
    with pytest.raises(bj.gguf.GGUFError, match="tensor 'w' has the type IQ2_XXS, which is not unpacked here"):
        file["w"]


def _of(sizes, kind=FLOAT32, offset=0, data=b"\0" * 64):
    """A file of one tensor."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info("w", sizes, kind, offset)
    return head + b"\0" * (-len(head) % 32) + data


GOOD = contents(TENSORS)


@pytest.mark.parametrize(
    "match, data",
    [
        ("the file is empty", b""),
        (r"at byte 0: the magic number must be b'GGUF', got b'GGML'", contents({}, magic=b"GGML")),
        ("the magic number takes 4 bytes, and 2 are left", b"GG"),
        ("at byte 4: the version must be 2 or 3, got 1", contents({}, version=1)),
        ("got 50331648; the file is big-endian", contents({}, version=3 << 24)),
        ("18446744073709551615 tensors and 0 pairs of metadata takes .* bytes, and 0 are left", b"GGUF" + struct.pack("<IQQ", 3, 2**64 - 1, 0)),
        ("'k' takes .* bytes, and .* are left", contents({}, (pair("k", 8, struct.pack("<Q", 2**63)),))),
        ("'k' of 1152921504606846976 elements takes", contents({}, (pair("k", 9, struct.pack("<IQ", 8, 2**60)),))),
        ("'k' takes .* bytes", contents({}, (pair("k", 9, struct.pack("<IQ", 10, 2**61)),))),
        ("'k' has the unknown type 13", contents({}, (pair("k", 13, b"\0" * 8),))),
        ("'k' has the unknown type 77", contents({}, (pair("k", 9, struct.pack("<IQ", 77, 0)),))),
        ("'k' has lists in lists deeper than 8", contents({}, (pair("k", 9, array(9, array(9, array(9, array(9, array(9, array(9, array(9, array(9, array(9)))))))))),))),
        ("'k' must be a bool, 0 or 1, got 2", contents({}, (pair("k", 7, b"\2"),))),
        ("'k' is not UTF-8", contents({}, (pair("k", 8, text(b"\xff")),))),
        ("the key 'k' is there twice", contents({}, (pair("k", 7, b"\1"),) * 2)),
        ("general.alignment must be a power of two of at least 8, got 24", contents({}, (pair("general.alignment", 4, struct.pack("<I", 24)),))),
        ("general.alignment must be a power of two of at least 8, got 'x'", contents({}, (pair("general.alignment", 8, text("x")),))),
        (r"the rank of tensor 'w' must be in 1 \.\.\. 4, got 5", _of((1,) * 5)),
        (r"the rank of tensor 'w' must be in 1 \.\.\. 4, got 0", _of(())),
        ("tensor 'w' has the unknown type 99", _of((4,), 99)),
        ("tensor 'w' of type Q4_K must have rows of a multiple of 256 weights, got 128", _of((128,), 12)),
        ("the offset of tensor 'w' must be a multiple of 32, got 8", _of((4,), offset=8)),
        ("tensor 'w' must end in the file", _of((17,))),
        ("tensor 'w' must end in the file", _of((4,), offset=2**64 - 32)),
        (r"the shape of tensor 'w' must have at most 2\^60 elements", _of((2**32, 2**32, 2**32))),
        (r"the shape of tensor 'w' must have at most 2\^60 elements", _of((0, 2**63))),
        ("tensor 'w' is there twice", b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + info("w", (4,), 0, 0) * 2 + b"\0" * 99),
        ("tensor 'v' must have bytes of its own, but begins in those of 'w'", b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + info("w", (9,), 0, 0) + info("v", (4,), 0, 32) + b"\0" * 99),
        ("the file is cut off|must end in the file", GOOD[: len(GOOD) // 3]),
        ("tensor 'experts' must end in the file", GOOD[:-80]),
    ],
)  # fmt: skip
def test_broken_files(load, match, data):
    with pytest.raises(bj.gguf.GGUFError, match=match):
        load(data)


def test_every_prefix_of_a_file_is_cut_off(load):
    end = GOOD.index(b"experts")
    for size in range(1, end, 7):
        with pytest.raises(bj.gguf.GGUFError):
            load(GOOD[:size])


FEW, MANY = [(seed, 250) for seed in range(4)], [(seed, 10_000) for seed in range(4, 14)]


@pytest.mark.parametrize("seed, count", [*FEW, *(pytest.param(*of, marks=pytest.mark.large) for of in MANY)])
def test_mutated_files_are_read_or_refused(load, seed, count):
    """Bytes of the head are changed, removed and repeated. Whatever comes of it, no other error, and no memory beyond the file's."""
    rng, head = np.random.default_rng(seed), GOOD.index(b"experts") + 60
    outcomes = {"read": 0, "refused": 0}
    for _ in range(count):
        data = bytearray(GOOD)
        for _ in range(rng.integers(1, 3)):
            at, how = int(rng.integers(0, head)), rng.integers(0, 12)
            if how > 2:
                data[at] ^= 1 << int(rng.integers(0, 8))
            elif how == 1:
                data[at : at + 8] = rng.integers(0, 256, 8, np.uint8).tobytes()
            elif how == 0:
                del data[at : at + int(rng.integers(1, 16))]
            else:
                data[at:at] = data[at : at + int(rng.integers(1, 16))]
        try:
            file = load(bytes(data))
        except bj.gguf.GGUFError as error:
            assert "model.gguf" in str(error)
            outcomes["refused"] += 1
            continue
        assert sum(tensor.data.nbytes for tensor in file.tensors.values()) <= len(file.tensors) * len(data)
        for tensor in file.tensors.values():
            np.asarray(tensor.data).sum()
        outcomes["read"] += 1
    assert min(outcomes.values()) > 10


# ---------------------------------------------------------------------------------------------------------------------
# Writing

TYPED = METADATA | {
    "an.int8": np.int8(-1), "a.double": np.float64(-0.25), "scores": np.float32([1, 2, 3]), "lists": [[7], []],
}  # fmt: skip
VALUES = {
    "x": X, "half": X.astype(np.float16), "brain": X.ravel().astype(jnp.bfloat16), "w": bj.PackedWeight("Q4_K", packed("Q4_K")),
    "experts": bj.PackedWeight("Q8_0", random_blocks(np.random.default_rng(1), "Q8_0", 4, 2, 1).reshape(4, 2, 34)),
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "written.gguf"


def test_bytes_are_those_of_the_format(path):
    """Which `contents` writes by itself."""
    bj.gguf.save(path, VALUES, TYPED)
    assert path.read_bytes() == GOOD
    bj.gguf.save(path, VALUES, TYPED | {"general.alignment": 128})
    pairs = (*PAIRS, pair("general.alignment", 4, struct.pack("<I", 128)))
    assert path.read_bytes() == contents(TENSORS, pairs, alignment=128)
    bj.gguf.save(path, {})
    assert path.read_bytes() == contents({}, ())


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"])
def test_plain_numbers_come_back(path, dtype):
    names = {"BF16": "bfloat16", "F": "float", "I": "int"}
    name = names.get(dtype) or names[dtype[0]] + dtype[1:]
    x = np.arange(-6, 18).reshape(2, 3, 4).astype(name)
    bj.gguf.save(path, {"x": x, "swapped": x.T, "none": x[:0], "vector": x[0, 0], "on the device": jnp.asarray(x)})
    file = bj.gguf.load(path)
    assert file.tensors["x"].format == dtype == file.tensors["none"].format
    for tensor, want in (("x", x), ("swapped", x.T), ("none", x[:0]), ("vector", x[0, 0])):
        np.testing.assert_array_equal(file.tensors[tensor].data, want)
    assert (np.asarray(file["on the device"]) == x).all()


@pytest.mark.parametrize("format", ["Q8_0", "Q4_0", "Q4_K"])
def test_packed_weights_come_back(path, format):
    w = np.random.default_rng(0).standard_normal((2, 6, 256)).astype(np.float32)
    packed = bj.pack_weight(w, format)
    bj.gguf.save(path, {"w": packed})
    found = bj.gguf.load(path)["w"]
    assert found.format == format and found.shape == w.shape
    np.testing.assert_array_equal(found.data, packed.data)


@pytest.mark.parametrize(
    "value, kind",
    [
        (0, 4), (2**32 - 1, 4), (-1, 5), (2**32, 11), (-(2**31) - 1, 11), (2**64 - 1, 10), (True, 7), (np.True_, 7), (0.1, 6),
        (np.uint8(3), 0), (np.int16(-3), 3), (np.float64(0.1), 12), ("", 8), ("é", 8), (np.str_("a"), 8),
    ],
)  # fmt: skip
def test_types_of_metadata(path, value, kind):
    """Those of single values, and of lists of them."""
    bj.gguf.save(path, {}, {"k": value, "several": [value, value], "nested": ((value,), [])})
    data = path.read_bytes()
    assert data[24:].startswith(text("k") + struct.pack("<I", kind))
    assert text("several") + struct.pack("<IIQ", 9, kind, 2) in data
    want = float(np.float32(value)) if kind == 6 else value
    assert dict(bj.gguf.load(path).metadata) == {"k": want, "several": [want] * 2, "nested": [[want], []]}


def test_lists_of_several_types_of_numbers(path):
    bj.gguf.save(
        path,
        {},
        {"mixed": [1, 0.5], "wide": [-1, 2**40], "vector": np.arange(3, dtype=np.int16), "bools": np.array([True])},
    )
    found = bj.gguf.load(path).metadata
    assert dict(found) == {"mixed": [1.0, 0.5], "wide": [-1, 2**40], "vector": [0, 1, 2], "bools": [True]}


def test_the_package_gguf_reads_what_is_written(path):
    gguf = pytest.importorskip("gguf")
    w = np.random.default_rng(0).standard_normal((6, 256)).astype(np.float32)
    weights = {format: bj.pack_weight(w, format) for format in ("Q8_0", "Q4_0", "Q4_K")}
    metadata = {"general.architecture": "llama", "llama.block_count": 2, "a.list": [1.0, 2.0], "tokens": ["a", "é"]}
    bj.gguf.save(path, {"norm": X, "half": X.astype(np.float16), **weights}, metadata)
    reader = gguf.GGUFReader(path)
    assert {key: reader.fields[key].contents() for key in metadata} == metadata
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert list(tensors) == ["norm", "half", "Q8_0", "Q4_0", "Q4_K"]
    np.testing.assert_array_equal(tensors["norm"].data, X)
    np.testing.assert_array_equal(tensors["half"].data, X.astype(np.float16))
    for format, packed in weights.items():
        assert tensors[format].tensor_type.name == format and tensors[format].shape.tolist() == [256, 6]
        unpacked = gguf.quants.dequantize(tensors[format].data, tensors[format].tensor_type)
        np.testing.assert_array_equal(unpacked, packed.dequantize())


def test_a_file_is_written_over_while_it_is_open(load, path):
    """With its own tensors, also those of formats that are known by their size alone."""
    file = load(contents({"w": ((256,), 16, bytes(range(66))), "x": TENSORS["x"]}))
    same = path.with_name("model.gguf")
    bj.gguf.save(same, {**file.tensors, "more": X}, file.metadata)
    again = bj.gguf.load(same)
    assert list(again) == ["w", "x", "more"] and dict(again.metadata) == METADATA
    for both in (file, again):
        assert both.tensors["w"].data.tobytes() == bytes(range(66))
        np.testing.assert_array_equal(both["x"], X)


def test_nothing_is_left_where_a_file_cannot_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        bj.gguf.save(tmp_path / "w.gguf", {"x": X})
    assert not list(tmp_path.iterdir())


def _nested(levels):
    return [_nested(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "error, match, tensors, metadata",
    [
        (ValueError, r"gguf.save: tensors\['w'\] must have one of the formats Q4_0, .*, got 'nf4'", {"w": bj.PackedWeight("nf4", packed("Q8_0"), X)}, {}),
        (TypeError, r"gguf.save: tensors\['x'\] must be a PackedWeight or an array of float32, .*, got dtype uint8", {"x": np.zeros(3, np.uint8)}, {}),
        (TypeError, "got dtype complex64", {"x": X.astype(np.complex64)}, {}),
        (ValueError, r"gguf.save: tensors\['x'\] must have rank 1 to 4, got shape \(\)", {"x": np.float32(1)}, {}),
        (ValueError, r"must have rank 1 to 4, got shape \(1, 1, 1, 3, 4\)", {"x": X[None, None, None]}, {}),
        (ValueError, "names of tensors must be strings of at most 63 bytes, got 'éééé", {"é" * 32: X}, {}),
        (ValueError, "names of tensors must be strings of at most 63 bytes, got 3", {3: X}, {}),
        (TypeError, "keys of metadata must be strings, got 3", {}, {3: 3}),
        (TypeError, r"metadata\['k'\] must be numbers, bools, strings, or lists of one type of these, got None", {}, {"k": None}),
        (TypeError, r"metadata\['k'\] must be .* got 1, True", {}, {"k": [1, True]}),
        (TypeError, r"metadata\['k'\] must be .* got 1, np.int8\(1\)", {}, {"k": [1, np.int8(1)]}),
        (TypeError, r"metadata\['k'\] must be .* got 'a', 1", {}, {"k": ["a", 1]}),
        (TypeError, r"metadata\['k'\] must be numbers of 8 to 64 bits, or bools, got dtype float16", {}, {"k": np.float16([1])}),
        (ValueError, r"metadata\['k'\] must be a vector where it is an array, got shape \(3, 4\)", {}, {"k": X}),
        (ValueError, r"metadata\['k'\] must be integers of 64 bits, got -1, 18446744073709551615", {}, {"k": [-1, 2**64 - 1]}),
        (ValueError, r"metadata\['k'\] must have lists in lists of at most 8 levels", {}, {"k": _nested(9)}),
        (ValueError, r"metadata\['general.alignment'\] must be a power of two of at least 8, got 24", {}, {"general.alignment": 24}),
    ],
)  # fmt: skip
def test_what_cannot_be_written(tmp_path, error, match, tensors, metadata):
    with pytest.raises(error, match=match):
        bj.gguf.save(tmp_path / "w.gguf", tensors, metadata)
    assert not list(tmp_path.iterdir())


def test_the_deepest_lists_come_back(path):
    bj.gguf.save(path, {}, {"k": _nested(7)})
    assert bj.gguf.load(path).metadata["k"] == _nested(7)
