"""PyTorch's own samples of its functions, which PyTorch's authors wrote, through the ops: `opinfo_adapters` says how."""

import functools
import importlib
import inspect
import pathlib
import re
import warnings

import numpy as np
import onnx_adapters
import opinfo_adapters
import pytest
from by_torch import tensor, torch
from examples_of import close
from sampling import turn_of

pytest.importorskip("expecttest")
MOST = 3  # samples of an OpInfo in a default run


@functools.cache
def adapters():
    """{name: (family, function)}"""
    found = {}
    for file in sorted(pathlib.Path(opinfo_adapters.__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"opinfo_adapters.{file.stem}")
        for name, fun in inspect.getmembers(module, inspect.isfunction):
            if fun.__module__ == module.__name__ and not name.startswith("_"):
                found[name] = file.stem, fun
    return found


@functools.cache
def infos():
    """{name of the adapter: the OpInfo}; without the name of a variant, of several the plain one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    found = {}
    for info in op_db:
        name, variant = (re.sub(r"\W", "_", part) for part in (info.name, info.variant_test_name))
        if name not in found or not variant:
            found[name] = info
        found[f"{name}_{variant}"] = info
    return found


def pytest_generate_tests(metafunc):
    if "adapter" in metafunc.fixturenames:
        metafunc.parametrize("adapter", sorted(adapters()))


def test_samples_of_pytorch(adapter, pytestconfig):
    family, fun = adapters()[adapter]
    ran, reasons = 0, set()
    for sample in _chosen(_samples(infos()[adapter]), adapter, family, pytestconfig.tier):
        try:
            found = fun(
                *map(_drawn, (sample.input, *sample.args)), **{key: _drawn(v) for key, v in sample.kwargs.items()}
            )
        except onnx_adapters.NotApplicable as reason:
            reasons.add(str(reason))
            continue
        ran += 1
        want = infos()[adapter].op(sample.input, *sample.args, **sample.kwargs)
        for got, expected in zip(_results(found), _results(want), strict=True):
            got, expected = np.asarray(got), expected.detach().resolve_conj().numpy()
            dtype = got.dtype.name
            close(got, expected.astype(dtype), dtype, scale=100)
    if not ran:
        pytest.skip("; ".join(sorted(reasons)) or "no sample")


def _samples(info):
    torch.manual_seed(0)
    dtype = next((t for t in (torch.float64, torch.float32, torch.int64) if t in info.dtypes), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(info.sample_inputs("cpu", dtype or next(iter(info.dtypes)), requires_grad=False))


def _chosen(samples, adapter, family, tier):
    """All of a family whose ops are tested in full, of others a few, other ones for another seed."""
    from baracuda_jax._core.op import OPS

    if any(OPS[op].family == family for op in tier.ops) or len(samples) <= MOST:
        return samples
    turns = (turn_of(seed, adapter) for seed in tier.seeds)
    return [samples[(turn * MOST + i) % len(samples)] for turn in turns for i in range(MOST)]


def _drawn(value):
    if isinstance(value, torch.Tensor):
        return value.detach().resolve_conj().numpy()
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return type(value)(map(_drawn, value)) if isinstance(value, list) or type(value) is tuple else value


def _results(value):
    return value if isinstance(value, tuple | list) else (value,)


def test_each_adapter_has_an_info():
    """Of the functions of an older PyTorch, which has some of the OpInfos."""
    is_older = not hasattr(torch.nn.functional, "linear_cross_entropy")
    without = set(adapters()) - set(infos())
    assert all(is_older and "linear_cross_entropy" in name for name in without), without


def test_tensors_become_arrays():
    given = [tensor(np.ones(2)), (tensor(np.zeros(1)), torch.float32), None]
    ones, (zeros, name), nothing = _drawn(given)
    assert ones.tolist() == [1, 1] and zeros.tolist() == [0] and name == "float32" and nothing is None
