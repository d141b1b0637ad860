"""What tests of programs are made of: the call that a program is, the bits of its runs, and the time they take."""

import re
import time

import jax
import numpy as np
import sent
from examples_of import same_bits

FLOATS = ("float64", "float32", "float16", "bfloat16")


def normal(shape, dtype="float64", seed=0):
    return sent.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def wide(x):
    return np.asarray(x).astype(np.float64)


def same_bits_every_time(fun, *args):
    run = jax.jit(fun)
    first = run(*args)
    for _ in range(5):
        same_bits(run(*args), first)


def is_one_call(fun, target, *args):
    """The program is a call of the target on the arguments as they are: nothing is prepared for it."""
    text = jax.jit(fun).lower(*args).as_text()
    body = re.findall(r"^ *%\w+(?::\d+)? = \"?(\w+\.\w+)", text, re.MULTILINE)
    assert [op for op in body if op != "stablehlo.reshape"] == ["stablehlo.custom_call"], text
    (operands,) = re.findall(rf"@{re.escape(target)}\(([^)]*)\)", text)
    assert len(operands.split(", ")) == len(args)
    assert "output_operand_alias" not in text


def seconds(fun, *args):
    fun = jax.jit(fun)
    jax.block_until_ready(fun(*args))
    times = []
    for _ in range(7):
        start = time.perf_counter()
        jax.block_until_ready(fun(*args))
        times.append(time.perf_counter() - start)
    return min(times)


def ratio(measure, limit):
    """The smallest of up to three measurements: others use the machine too."""
    ratios = []
    while len(ratios) < 3 and (not ratios or ratios[-1] >= limit):
        ratios.append(measure())
    return min(ratios)
