"""The table of what XLA's libraries compute."""

import importlib.util
import pathlib

import pytest

FILE = pathlib.Path(__file__).parent.parent / "benchmarks/libraries.py"


@pytest.fixture(scope="module")
def libraries():
    spec = importlib.util.spec_from_file_location("libraries", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_are_of_ops_without_kernels_and_of_matrices_too_large_for_them(libraries):
    found = {(row["op"], row["case"]) for row in libraries.rows_of(libraries.results.read(libraries.FILE)["rows"])}
    assert {("conv2d", "[64, 128, 112, 112], window 3"), ("qr", "[2, 512, 512]")} <= found
    assert ("qr", "[4096, 32, 32]") not in found and "segment_sum" not in {op for op, _ in found}


def test_a_row_has_microseconds_mebibytes_and_the_ratio_to_plain_jax(libraries):
    row = {
        "op": "fft", "pass": "forward", "dtype": "float32", "case": "[4]", "native_ms": 1.5, "xla_ms": 2.0,
        "torch_ms": None, "temporary_bytes": 2**19, "xla_temporary_bytes": 0,
    }  # fmt: skip
    assert libraries.fields(row) == (
        "fft",
        "forward",
        "float32",
        "[4]",
        "1,500.00",
        "2,000.00",
        "",
        "0.75",
        "0.50",
        "0.00",
    )
