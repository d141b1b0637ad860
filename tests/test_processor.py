"""What happens where the CPU lacks the instructions of the CPU module."""

import importlib.util

import pytest

from baracuda_jax._core import processor
from baracuda_jax._core.library import LIBRARIES, _load


def cpuinfo(tmp_path, flags):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: {' '.join(sorted(flags))}\nprocessor\t: 1\nflags\t\t: none\n")
    return file


def module(tmp_path, built_for):
    file = tmp_path / "_cpu.abi3.so"
    file.write_bytes(b"\x7fELF\0CPU, \0" + f"CPU, {built_for}".encode() + b"\0x86-64-v4\0")
    return file


@pytest.mark.parametrize(
    "level, has, missing",
    [
        ("v3", processor.V3 - {"avx2", "fma"}, "x86-64-v3, and this CPU has no avx2, fma:"),
        ("v2", processor.V2 - {"popcnt"}, "x86-64-v2, and this CPU has no popcnt:"),
        ("v4", processor.V3 | {"avx512f"}, "x86-64-v4, and this CPU has no avx512bw, avx512cd, avx512dq, avx512vl:"),
    ],
)
def test_missing_instructions_are_named(tmp_path, level, has, missing):
    with pytest.raises(ImportError, match=missing):
        processor.check(module(tmp_path, f"x86_64 x86-64-{level}"), cpuinfo(tmp_path, has))


@pytest.mark.parametrize(
    "built_for, has",
    [
        ("x86_64 x86-64-v3", processor.V3),
        ("x86_64 x86-64-v3", processor.V4),
        ("x86_64 x86-64-v2", processor.V2),
        ("x86_64 native", processor.V2),
        ("aarch64 native", {"fp", "asimd"}),
    ],
)
def test_a_cpu_that_has_them_passes(tmp_path, built_for, has):
    processor.check(module(tmp_path, built_for), cpuinfo(tmp_path, has))


def test_a_system_that_does_not_tell_passes(tmp_path):
    processor.check(module(tmp_path, "x86_64 x86-64-v3"), tmp_path / "none")
    (tmp_path / "empty").touch()
    processor.check(module(tmp_path, "x86_64 x86-64-v3"), tmp_path / "empty")


def test_the_text_is_in_the_compiled_module():
    """The check reads `built_for` from the file."""
    file = importlib.util.find_spec("baracuda_jax._cpu").origin
    with open(file, "rb") as bytes_of:
        assert LIBRARIES["cpu"].built_for.encode() + b"\0" in bytes_of.read()


def test_the_check_comes_before_the_module_is_loaded(monkeypatch):
    def missing(file):
        raise ImportError("this CPU has no avx2")

    monkeypatch.setattr(processor, "check", missing)
    assert _load("cpu", "_cpu").problem == "the CPU module did not load: this CPU has no avx2"
