"""ONNX's node cases, which ONNX's authors wrote, through the ops: `onnx_adapters` says how."""

import dataclasses
import functools
import importlib
import inspect
import pathlib
import warnings
from typing import Any

import numpy as np
import onnx_adapters
import pytest

onnx = pytest.importorskip("onnx")
base = pytest.importorskip("onnx.backend.test.case.base")
node = pytest.importorskip("onnx.backend.test.case.node")
TOLERANCE = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-7}

ROUNDED = {"RoiAlign": 1e-4, "AveragePool": 1e-4}  # some of whose expected values have four decimals


@dataclasses.dataclass(frozen=True, eq=False)
class OnnxCase:
    name: str
    operator: str
    adapter: Any
    case: Any

    def __str__(self):
        return self.name

    @property
    def inputs(self):
        """Those of the node, None where one is left out."""
        given = iter(self.case.data_sets[0][0])
        return [next(given) if name else None for name in self._node.input]

    @property
    def attributes(self):
        return {a.name: onnx.helper.get_attribute_value(a) for a in self._node.attribute}

    @property
    def expected(self):
        """By the positions of the node's outputs."""
        found = zip((i for i, name in enumerate(self._node.output) if name), self.case.data_sets[0][1], strict=True)
        return dict(found)

    @property
    def _node(self):
        return self.case.model.graph.node[0]


@functools.cache
def adapters():
    """{operator: its function}"""
    found = {}
    for file in sorted(pathlib.Path(onnx_adapters.__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"onnx_adapters.{file.stem}")
        functions = inspect.getmembers(module, inspect.isfunction)
        found |= {name: fun for name, fun in functions if fun.__module__ == module.__name__ and name[0].isupper()}
    return found


@dataclasses.dataclass(frozen=True)
class Export:
    """A function of ONNX that makes cases of an operator, and computes what is expected."""

    operator: str
    name: str
    make: Any

    def __str__(self):
        return f"{self.operator}.{self.name.removeprefix('export_')}"

    def cases(self):
        node._NodeTestCases.clear()
        getattr(node, "_existing_names", {}).clear()
        np.random.seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the cases that are computed on purpose where NumPy warns
            self.make()
        for case in node._NodeTestCases:
            nodes = case.model.graph.node
            if len(nodes) == 1 and nodes[0].op_type in adapters():
                yield OnnxCase(case.name, nodes[0].op_type, adapters()[nodes[0].op_type], case)


@functools.cache
def exports():
    """Of the files of the operators. As they are imported these compute all of their cases, unless they are kept from it."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(base.Base), "__init__", type.__init__)
        for file in sorted(pathlib.Path(node.__file__).parent.glob("[a-z]*.py")):
            if not any(f'"{operator}"' in file.read_text() for operator in adapters()):
                continue
            module = importlib.import_module(f"{node.__name__}.{file.stem}")
            for operator, made in inspect.getmembers(module, inspect.isclass):
                if issubclass(made, base.Base) and made is not base.Base:
                    names = (name for name in vars(made) if name.startswith("export"))
                    found += [Export(operator, name, getattr(made, name)) for name in names]
    return found


def pytest_generate_tests(metafunc):
    if "onnx_export" in metafunc.fixturenames:
        metafunc.parametrize("onnx_export", exports(), ids=str)


def test_cases_of_onnx(onnx_export):
    ran, why = 0, "no case of one node that an op computes"
    for case in onnx_export.cases():
        try:
            found = case.adapter(*case.inputs, **case.attributes)
        except onnx_adapters.NotApplicable as reason:
            why = str(reason)
            continue
        _compare(case, found)
        ran += 1
    if not ran:
        pytest.skip(why)


def _compare(onnx_case, found):
    found = found if isinstance(found, tuple | list) else (found,)
    for i, want in onnx_case.expected.items():
        if i >= len(found):
            break  # an output that the op does not offer, such as the saved mean
        got, want = np.asarray(found[i]), np.asarray(want)
        assert got.shape == want.shape
        if want.dtype.kind not in "fc" and want.dtype.name not in TOLERANCE:
            np.testing.assert_array_equal(got, want)
            continue
        tolerance = ROUNDED.get(onnx_case.operator) or TOLERANCE.get(want.dtype.name, 1e-5)
        got, want = (x.astype(np.float32) if x.dtype.name == "bfloat16" else x for x in (got, want))
        size = max(1.0, np.abs(want[np.isfinite(want)]).max(initial=0))
        np.testing.assert_allclose(got, want, rtol=10 * tolerance, atol=tolerance * size)


def test_each_adapter_has_cases():
    operators = {operator.lower() for operator in adapters()}
    assert operators <= {export.operator.lower() for export in exports()}
