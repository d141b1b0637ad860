"""Files of the format GGUF: what is in them, and what is told of broken ones."""

import struct

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


@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_are_read_or_refused(load, seed):
    """Bytes of the head are changed, removed and repeated. Whatever comes of it, no other error, and no memory beyond the file's."""
    rng, head = np.random.default_rng(seed), GOOD.index(b"experts") + 60
    outcomes = {"read": 0, "refused": 0}
    for _ in range(250):
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
