"""The command line: pages of ops, and errors of one line."""

import pathlib
import tomllib

import pytest

from baracuda_jax.__main__ import main
from baracuda_jax._core.op import OPS
from baracuda_jax._core.traced import public

ROOT = pathlib.Path(__file__).parent.parent


def test_the_script_is_the_module():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"baracuda-jax": "baracuda_jax.__main__:main"}


def test_a_page_has_the_documentation_and_the_declaration(capsys):
    assert main(["ops", "topk", "segment_max", "gelu"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("topk(x, k, axis=-1, *, largest=True, implementation=None)\n")
    for part in (
        "    Formula:\n",
        "It is also named top_k.",
        "op topk, of the family sort",
        "op segment_max_split, of the family segment",
        "    derivative  in data, any order\n",
        "    forward     gelu\n",
        "    on cpu      forward, tangent, backward",
    ):
        assert part in text, part


def page_of(name):
    return (OPS[name].public if name in OPS else public()[name]).__name__


@pytest.mark.parametrize("name", [*OPS, *(name for name in public() if name not in OPS)])
def test_every_name_has_a_page(name, capsys):
    assert main(["ops", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3 and lines[0].startswith(f"{page_of(name)}(")


@pytest.mark.parametrize(
    "arguments, error",
    [
        (["ops", "topl"], "No such op: topl (did you mean topk"),
        (["ops", "topk", "???"], "No such op: ??? (`baracuda-jax ops` lists all)"),
        (["check", "--op", "segment_sun", "relu", "???"], "No such op: segment_sun (did you mean segment_sum or "),
        (["check", "--op", "relu", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["bench", "--platform", "cpu", "--op", "affin"], "No such op: affin (did you mean affine"),
        (["bench", "--platform", "cpu", "--op", "relu", "--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["bench", "--sweep", "--platform", "cpu", "--repeats", "-1"], "--repeats must be at least 1, got -1"),
        (["bench", "--from", "no/such.json"], "No such file: no/such.json"),
    ],
)
def test_errors_are_one_line(arguments, error, capsys):
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert not out and err.startswith(error) and err.count("\n") == 1 and len(err) < 250
