"""The examples run to their end after a few steps of training, draw their picture, and say what they are short of."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
# What makes an example short, the library that has its data, and what it returns then.
SHORT = {
    "detect": ("import detect; detect.STEPS = 2", "sklearn", "the F1 score is below"),
    "digits": ("import digits; digits.EPOCHS = 1", "sklearn", "accuracy is below"),
    "generate": ("import generate, language_model; language_model.STEPS = generate.NEW = 2", "tqdm", "the loss is not below"),
    "karate": ("import karate; karate.STEPS = 2", "networkx", "0"),
    "packed_weights": ("import generate, language_model, packed_weights; language_model.STEPS = generate.NEW = 2", "tqdm", "0"),
    "rotations": ("import rotations; rotations.STEPS = 2", "tqdm", "an atom of the shape is off"),
    "speech": ("import speech; speech.STEPS = 2", "sklearn", "accuracy is below"),
}  # fmt: skip


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SHORT, "language_model", "many_hosts"}


@pytest.mark.parametrize("name", SHORT)
def test_an_example_runs(name, tmp_path):
    """In a process of its own, since it sets the number of devices."""
    setting, library, told = SHORT[name]
    for needed in ("matplotlib", "tqdm", library):
        pytest.importorskip(needed)
    code = f"{setting}\nprint('returned', {name}.main())"
    flags = " ".join(flag for flag in os.environ["XLA_FLAGS"].split() if "device_count" not in flag)
    path = os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, "XLA_FLAGS": flags},
        cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"returned {told}" in done.stdout
    assert (tmp_path / f"{name}.png").exists()
