"""Times our kernels beside what one writes in JAX without them: jax.ops.segment_*, lax.reduce_window and jnp.tile.

    python benchmarks/run.py [--platform cpu|cuda] [--op NAME] [--size small|large] [--json FILE] [--write-table]

Both programs run in one process, in turn, on the same few sets of random inputs. Before timing, results are compared
with the reference, and ten runs of the kernel with each other, bit by bit. A time is the median over the repeats of the
time of one call: on CPU of a call that is waited for, on a GPU of calls enqueued back to back, divided by their number.

--write-table also times the op's own definition in plain JAX, which is what runs where the kernel does not, and merges the
verdicts into baracuda_jax/backends.json, by which the backend is chosen.
"""

import argparse
import dataclasses
import datetime
import itertools
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import baracuda_jax
from baracuda_jax._core import choice

TOLERANCE = {"float32": 1e-5, "bfloat16": 3e-2}
SEGMENT_SIZES = {"small": (131072, 64, 8192), "large": (4194304, 64, 262144)}
REPEAT_SIZES = {"small": (1024, 256), "large": (8192, 1024)}
POOL_SIZES = {"small": (8, 32, 56, 56), "large": (32, 64, 112, 112)}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    op: str
    detail: str
    size: str
    dtype: str
    draw: Callable  # rng -> arrays on the host; floats are cast to dtype
    ours: Callable  # (*arrays, prefer) -> y
    plain: Callable  # (*arrays) -> y

    def inputs(self, count):
        """Sets of (x, *others)."""
        rng = np.random.default_rng(0)
        cast = lambda x: jnp.asarray(x, self.dtype) if x.dtype == np.float32 else jnp.asarray(x)
        return [tuple(map(cast, self.draw(rng))) for _ in range(count)]


# ---------------------------------------------------------------------------------------------------------------------
# The table


def plain_segment_mean(data, ids, segments, **options):
    ones = jnp.ones(ids.shape, jnp.int32)
    counts = jnp.maximum(jax.ops.segment_sum(ones, ids, segments, **options), 1)
    return jax.ops.segment_sum(data, ids, segments, **options) / counts[:, None].astype(data.dtype)


PLAIN_SEGMENT = {
    "segment_max": jax.ops.segment_max,
    "segment_sum": jax.ops.segment_sum,
    "segment_mean": plain_segment_mean,
    "segment_prod": jax.ops.segment_prod,
}


def segment_benchmark(op, size, dtype, is_sorted):
    rows, columns, segments = SEGMENT_SIZES[size]
    options = {"indices_are_sorted": is_sorted}

    def draw(rng):
        data = rng.standard_normal((rows, columns), np.float32)
        ids = rng.integers(0, segments, rows, np.int32)
        return 1 + 0.3 * data if op == "segment_prod" else data, np.sort(ids) if is_sorted else ids

    return Benchmark(
        op,
        f"[{rows}, {columns}] into {segments}, {'sorted' if is_sorted else 'unsorted'}",
        size,
        dtype,
        draw,
        lambda data, ids, prefer: getattr(baracuda_jax, op)(data, ids, segments, **options, prefer=prefer),
        lambda data, ids: PLAIN_SEGMENT[op](data, ids, segments, **options),
    )


def plain_lp_pool(x):
    """p = 3, window 3, stride 2."""
    total = lax.reduce_window(jnp.abs(x) ** 3, np.zeros((), x.dtype), lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    return total ** (1 / 3)


def pool_benchmark(size, dtype):
    shape = POOL_SIZES[size]
    return Benchmark(
        "lp_pool2d",
        f"{list(shape)}, p=3, window 3, stride 2",
        size,
        dtype,
        lambda rng: (rng.standard_normal(shape, np.float32),),
        lambda x, prefer: baracuda_jax.lp_pool2d(x, 3, 3, 2, prefer=prefer),
        plain_lp_pool,
    )


def repeat_benchmark(size, dtype):
    shape = REPEAT_SIZES[size]
    return Benchmark(
        "repeat",
        f"{list(shape)}, 2 x 2 copies",
        size,
        dtype,
        lambda rng: (rng.standard_normal(shape, np.float32),),
        lambda x, prefer: baracuda_jax.repeat(x, (2, 2), prefer=prefer),
        lambda x: jnp.tile(x, (2, 2)),
    )


OPS = (*PLAIN_SEGMENT, "lp_pool2d", "repeat")


def benchmarks(size):
    for op, dtype, is_sorted in itertools.product(PLAIN_SEGMENT, TOLERANCE, (False, True)):
        yield segment_benchmark(op, size, dtype, is_sorted)
    for dtype in TOLERANCE:
        yield pool_benchmark(size, dtype)
    for dtype in TOLERANCE:
        yield repeat_benchmark(size, dtype)


# ---------------------------------------------------------------------------------------------------------------------
# Programs, their checks and their times


def forward(fun):
    return jax.jit(lambda dy, *arrays: (fun(*arrays),))


def forward_and_backward(fun):
    """Both are results, so neither can be left out."""

    def program(dy, x, *others):
        y, vjp = jax.vjp(lambda x: fun(x, *others), x)
        return y, *vjp(dy)

    return jax.jit(program)


def compile_or_reason(program, arguments):
    try:
        return program.lower(*arguments).compile(), None
    except NotImplementedError as error:
        return None, f"JAX: {str(error).splitlines()[0]}"


@jax.jit
def largest_error(ours, expected):
    ours, expected = ours.astype(jnp.float32), expected.astype(jnp.float32)
    return jnp.max(jnp.abs(ours - expected) / jnp.maximum(1, jnp.abs(expected)))


@jax.jit
def same_bits(a, b):
    unsigned = {2: jnp.uint16, 4: jnp.uint32}[a.dtype.itemsize]
    return jnp.array_equal(lax.bitcast_convert_type(a, unsigned), lax.bitcast_convert_type(b, unsigned))


def compare(ours, reference, tolerance):
    for name, a, b in zip(("y", "dx"), ours, reference, strict=False):
        error = float(largest_error(a, b))
        if not error <= tolerance:
            raise AssertionError(f"{name} is wrong: error {error:.1e}, allowed {tolerance:.0e}")


def check(benchmark, kind, native, inputs):
    """Outputs and gradients against our reference, outputs also against the plain program in float32."""
    tolerance = TOLERANCE[benchmark.dtype]
    ours = native(*inputs)
    reference = kind(lambda *a: benchmark.ours(*a, prefer="xla"))(*inputs)
    compare(ours, reference, tolerance)
    _, x, *others = inputs
    compare(ours[:1], [jax.jit(benchmark.plain)(x.astype(jnp.float32), *others)], tolerance)
    for _ in range(9):
        if not all(bool(same_bits(a, b)) for a, b in zip(native(*inputs), ours, strict=True)):
            raise AssertionError("two runs on the same inputs differ")


def seconds(program, sets, calls):
    begin = time.perf_counter()
    for i in range(calls):
        out = program(*sets[i % len(sets)])
    jax.block_until_ready(out)
    return (time.perf_counter() - begin) / calls


def calls_for(platform, program, sets):
    """1 on CPU; on a GPU, as many as take about 30 ms."""
    if platform == "cpu":
        return 1
    seconds(program, sets, 3)
    return max(5, min(1000, int(0.03 / seconds(program, sets, 5))))


def measure(platform, programs, sets, repeats):
    """{name: median seconds}: the programs in turn, in the other order every second time."""
    calls = {name: calls_for(platform, program, sets) for name, program in programs.items()}
    for name, program in programs.items():
        seconds(program, sets, max(2, calls[name]))
    times = {name: [] for name in programs}
    for repeat in range(repeats):
        shifted = [*sets[repeat % len(sets) :], *sets[: repeat % len(sets)]]
        for name in list(programs)[:: 1 if repeat % 2 else -1]:
            times[name].append(seconds(programs[name], shifted, calls[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def run(benchmark, platform, repeats, with_reference):
    inputs = benchmark.inputs(count=3 if benchmark.size == "small" else 2)
    y = jax.eval_shape(lambda *a: benchmark.ours(*a, prefer="native"), *inputs[0])
    key = jax.random.key(1)
    sets = [(jax.random.normal(jax.random.fold_in(key, i), y.shape, y.dtype), *x) for i, x in enumerate(inputs)]
    for kind, title in ((forward, "forward"), (forward_and_backward, "forward + backward")):
        native, _ = compile_or_reason(kind(lambda *a: benchmark.ours(*a, prefer="native")), sets[0])
        assert "baracuda." in native.as_text(), "the native program calls no kernel of ours"
        plain, reason = compile_or_reason(kind(benchmark.plain), sets[0])
        check(benchmark, kind, native, sets[0])
        programs = {"native": native} | ({"xla": plain} if plain else {})
        if with_reference:
            programs["reference"] = kind(lambda *a: benchmark.ours(*a, prefer="xla")).lower(*sets[0]).compile()
        times = measure(platform, programs, sets, repeats)
        yield {
            "op": benchmark.op, "pass": title, "dtype": benchmark.dtype, "case": benchmark.detail,
            "size": benchmark.size, "native_ms": 1e3 * times["native"],
            "xla_ms": 1e3 * times["xla"] if plain else None, "note": reason,
            "reference_ms": 1e3 * times["reference"] if with_reference else None,
            "bytes": sum(x.size * x.dtype.itemsize for x in (*inputs[0], y)),
        }  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# The table by which the backend is chosen

TABLE = pathlib.Path(__file__).parent.parent / "baracuda_jax/backends.json"
PASSES = {"forward": "forward", "forward + backward": "backward"}


def write_table(rows, platform, device):
    """Merges rows into the table; cases of one key are one row, whose verdict is that of their total times."""
    content = json.loads(TABLE.read_text())
    key_of = lambda row: (row["op"], row["platform"], row["pass"] != "forward", row["dtype"], row["size"])
    merged = {key_of(row): row for row in content["rows"]}
    measured = {}
    for row in rows:
        new = {
            "op": row["op"], "pass": PASSES[row["pass"]], "platform": platform, "dtype": row["dtype"],
            "size": choice.size_class(row["bytes"]), "backend": None, "device": device.device_kind,
            "jax": jax.__version__, "date": str(datetime.date.today()), "against": "the reference", "cases": [],
        }  # fmt: skip
        case = {"native_ms": round(row["native_ms"], 4), "xla_ms": round(row["reference_ms"], 4)}
        measured.setdefault(key_of(new), new)["cases"].append({"case": row["case"], **case})
    for row in measured.values():
        row["backend"] = choice.verdict(*(sum(c[name] for c in row["cases"]) for name in ("native_ms", "xla_ms")))
    merged |= measured
    lines = ",\n".join(f"  {json.dumps(merged[key])}" for key in sorted(merged))
    TABLE.write_text(f'{{"about": {json.dumps(content["about"])},\n "rows": [\n{lines}\n ]}}\n')


# ---------------------------------------------------------------------------------------------------------------------
# The command


def table(rows):
    header = ("op", "pass", "dtype", "case", "native ms", "XLA ms", "XLA / native")
    lines = [header]
    for row in rows:
        native, xla = row["native_ms"], row["xla_ms"]
        other = (f"{xla:.3f}", f"{xla / native:.2f}") if xla else ("no gradient", "")
        lines.append((row["op"], row["pass"], row["dtype"], row["case"], f"{native:.3f}", *other))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    justify = [str.ljust] * 4 + [str.rjust] * 3
    for line in lines:
        print("  ".join(put(cell, width) for put, cell, width in zip(justify, line, widths, strict=True)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--platform", choices=["cpu", "cuda"], help="by default the GPU if there is one")
    parser.add_argument("--op", action="append", choices=OPS, help="only this op; repeatable")
    parser.add_argument("--size", choices=["small", "large"], default="small")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="also write the times to FILE")
    parser.add_argument("--write-table", action="store_true", help="merge the verdicts into baracuda_jax/backends.json")
    options = parser.parse_args()
    device = jax.devices(options.platform)[0] if options.platform else jax.devices()[0]
    platform = "cpu" if device.platform == "cpu" else "cuda"
    chosen = [b for b in benchmarks(options.size) if not options.op or b.op in options.op]
    rows, failures = [], []
    with jax.default_device(device):
        for number, benchmark in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {benchmark.op} {benchmark.dtype} {benchmark.detail}", file=sys.stderr)
            try:
                rows += run(benchmark, platform, options.repeats, options.write_table)
            except AssertionError as error:
                failures.append(f"{benchmark.op} {benchmark.dtype} {benchmark.detail}: {error}")
    title = f"{device.device_kind}, jax {jax.__version__}, baracuda_jax {baracuda_jax.__version__}"
    print(f"\n{title}; medians of {options.repeats} repeats")
    table(rows)
    for failure in failures:
        print(f"failed: {failure}")
    if options.json:
        about = {"device": device.device_kind, "platform": platform, "cpus": os.cpu_count(), "jax": jax.__version__}
        with open(options.json, "w") as file:
            json.dump({**about, "baracuda_jax": baracuda_jax.__version__, "rows": rows}, file, indent=1)
    if options.write_table:
        write_table(rows, platform, device)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
