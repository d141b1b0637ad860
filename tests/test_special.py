"""The series of the special functions are what the script next to this file fits."""

import pathlib
import re
import subprocess
import sys

import pytest

FAMILY = "elementwise"

NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?")
SCRIPT = pathlib.Path(__file__).parent / "special_coefficients.py"
SERIES = SCRIPT.parent.parent / "ffi" / "kernels" / "special" / "series.h"


def test_series_are_those_of_the_script():
    pytest.importorskip("mpmath")
    written = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True).stdout
    numbers = NUMBER.findall(written)
    assert len(numbers) > 400
    assert numbers == NUMBER.findall(SERIES.read_text())
