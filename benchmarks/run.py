"""Times our kernels beside what one writes in JAX without them, and beside PyTorch.

    python benchmarks/run.py [--platform cpu|cuda] [--op NAME] [--size small|large] [--torch] [--json FILE] [--write-table]

The programs run in one process, in turn, on the same few sets of random inputs. Before timing, results are compared
with the reference, and ten runs of the kernel with each other, bit by bit. A time is the median over the repeats of the
time of one call: on CPU from the call until its results are there, on a GPU that of its kernels.

The floor is the time that a copy needs for the bytes of operands and results, each counted once; with the backward pass,
those of the cotangents too.

--write-table also times the op's own definition in plain JAX, which is what runs where the kernel does not, and merges the
verdicts into baracuda_jax/backends.json, by which the backend is chosen.
"""

import argparse
import datetime
import functools
import json
import os
import pathlib
import sys

import jax
import jax.numpy as jnp
import times
import torch_programs
from cases import OPS, SIZES, benchmarks
from jax import lax

import baracuda_jax
from baracuda_jax._core import choice

TOLERANCE = {"float32": 1e-5, "bfloat16": 3e-2}


# ---------------------------------------------------------------------------------------------------------------------
# Programs, their checks and their times


def forward(fun, moving):
    return jax.jit(lambda dy, *arrays: (fun(*arrays),))


def forward_and_backward(fun, moving):
    """All are results, so none can be left out."""

    def program(dy, *arrays):
        y, vjp = jax.vjp(lambda *some: fun(*some, *arrays[moving:]), *arrays[:moving])
        return y, *vjp(dy)

    return jax.jit(program)


def compile_or_reason(program, arguments):
    try:
        return program.lower(*arguments).compile(), None
    except NotImplementedError as error:
        return None, f"JAX: {str(error).splitlines()[0]}"


@functools.partial(jax.jit, static_argnames="flips")
def largest_error(ours, expected, flips):
    """Relative, or in steps where these are codes; of all cells but a share."""
    wide_ours, wide = ours.astype(jnp.float32), expected.astype(jnp.float32)
    error = jnp.abs(wide_ours - wide).ravel()
    error = lax.top_k(error, 1 + int(flips * error.size))[0][-1] if flips else jnp.max(error)
    return error if is_code(ours) else error / jnp.maximum(1, jnp.max(jnp.abs(wide)))


def is_code(x):
    return x.dtype.itemsize == 1


@jax.jit
def same_bits(a, b):
    unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[a.dtype.itemsize]
    return jnp.array_equal(lax.bitcast_convert_type(a, unsigned), lax.bitcast_convert_type(b, unsigned))


def compare(ours, reference, tolerance, flips):
    for i, (a, b) in enumerate(zip(ours, reference, strict=False)):
        error = float(largest_error(a, b, flips))
        allowed = 32 if a.dtype.name.startswith("float8") else 1 if is_code(a) else tolerance
        if not error <= allowed:
            raise AssertionError(f"result {i} is wrong: error {error:.1e}, allowed {allowed:.0e}")


def check(benchmark, kind, native, inputs):
    """Outputs and gradients against our reference, outputs also against the plain program in float32."""
    allowed = TOLERANCE[benchmark.dtype], benchmark.flips
    ours = native(*inputs)
    compare(ours, kind(lambda *a: benchmark.ours(*a, prefer="xla"), benchmark.moving)(*inputs), *allowed)
    if benchmark.plain:
        wide = [x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in inputs[1:]]
        compare(ours[:1], [jax.jit(benchmark.plain)(*wide)], *allowed)
    for _ in range(9):
        if not all(bool(same_bits(a, b)) for a, b in zip(native(*inputs), ours, strict=True)):
            raise AssertionError("two runs on the same inputs differ")


def on(program, sets):
    return times.Program(lambda i: program(*sets[i % len(sets)]))


def copy_bandwidth(platform):
    """Bytes per second, read and written."""
    x = jnp.ones(1 << (22 if platform == "cpu" else 28), jnp.float32)
    program = jax.jit(jnp.negative).lower(x).compile()
    return 2 * x.nbytes / times.measure(platform, {"copy": on(program, [(x,)])}, 9)["copy"]


def run(benchmark, platform, bandwidth, options):
    inputs = benchmark.inputs(count=3 if benchmark.size == "small" else 2)
    y = jax.eval_shape(lambda *a: benchmark.ours(*a, prefer="native"), *inputs[0])
    key = jax.random.key(1)
    dy = lambda i: None if is_code(y) else jax.random.normal(jax.random.fold_in(key, i), y.shape, y.dtype)
    sets = [(dy(i), *x) for i, x in enumerate(inputs)]
    size = lambda arrays: sum(x.size * x.dtype.itemsize for x in arrays)
    moved = size((*inputs[0], y))
    kinds = (
        [(forward, "forward")] if is_code(y) else [(forward, "forward"), (forward_and_backward, "forward + backward")]
    )
    for kind, title in kinds:
        make = lambda fun, kind=kind: kind(fun, benchmark.moving)
        ours = lambda backend: lambda *a: benchmark.ours(*a, prefer=backend)
        native, _ = compile_or_reason(make(ours("native")), sets[0])
        assert "baracuda." in native.as_text(), "the native program calls no kernel of ours"
        check(benchmark, kind, native, sets[0])
        programs, reason = {"native": native}, None
        if benchmark.plain:
            programs["xla"], reason = compile_or_reason(make(benchmark.plain), sets[0])
        if options.write_table or not benchmark.plain:
            programs["reference"] = make(ours("xla")).lower(*sets[0]).compile()
        timed = {name: on(program, sets) for name, program in programs.items() if program}
        if options.torch and benchmark.torch:
            timed["torch"] = torch_programs.program(benchmark, sets, kind is forward_and_backward)
        seconds = times.measure(platform, timed, options.repeats)
        seconds.setdefault("xla", None if reason else seconds.get("reference"))
        floor = moved if kind is forward else moved + size((y, *inputs[0][: benchmark.moving]))
        ms = lambda name, seconds=seconds: 1e3 * seconds[name] if seconds.get(name) else None
        yield {
            "op": benchmark.op, "pass": title, "dtype": benchmark.dtype, "case": benchmark.detail,
            "size": benchmark.size, "native_ms": ms("native"), "xla_ms": ms("xla"), "reference_ms": ms("reference"),
            "torch_ms": ms("torch"), "floor_ms": 1e3 * floor / bandwidth, "note": reason, "bytes": moved,
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
    header = ("op", "pass", "dtype", "case", "native ms", "/ floor", "XLA / native", "PyTorch / native")
    lines = [header]
    for row in rows:
        native = row["native_ms"]
        ratio = lambda name, row=row, native=native: f"{row[name] / native:.2f}" if row[name] else ""
        xla = "no gradient" if row["note"] else ratio("xla_ms")
        lines.append((
            row["op"], row["pass"], row["dtype"], row["case"], f"{native:.3f}", f"{native / row['floor_ms']:.2f}", xla,
            ratio("torch_ms"),
        ))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    justify = [str.ljust] * 4 + [str.rjust] * 4
    for line in lines:
        print("  ".join(put(cell, width) for put, cell, width in zip(justify, line, widths, strict=True)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--platform", choices=["cpu", "cuda"], help="by default the GPU if there is one")
    parser.add_argument("--op", action="append", choices=OPS, help="only this op; repeatable")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--torch", action="store_true", help="time PyTorch too")
    parser.add_argument("--json", metavar="FILE", help="also write the times to FILE")
    parser.add_argument("--write-table", action="store_true", help="merge the verdicts into baracuda_jax/backends.json")
    options = parser.parse_args()
    device = jax.devices(options.platform)[0] if options.platform else jax.devices()[0]
    platform = "cpu" if device.platform == "cpu" else "cuda"
    chosen = [b for b in benchmarks(options.size) if not options.op or b.op in options.op]
    rows, failures = [], []
    with jax.default_device(device):
        bandwidth = copy_bandwidth(platform)
        for number, benchmark in enumerate(chosen, 1):
            print(f"[{number}/{len(chosen)}] {benchmark.op} {benchmark.dtype} {benchmark.detail}", file=sys.stderr)
            try:
                rows += run(benchmark, platform, bandwidth, options)
            except AssertionError as error:
                failures.append(f"{benchmark.op} {benchmark.dtype} {benchmark.detail}: {error}")
    title = f"{device.device_kind}, jax {jax.__version__}, baracuda_jax {baracuda_jax.__version__}"
    print(f"\n{title}; medians of {options.repeats} repeats; a copy runs at {bandwidth / 1e12:.2f} TB/s")
    table(rows)
    for failure in failures:
        print(f"failed: {failure}")
    if options.json:
        about = {
            "device": device.device_kind,
            "platform": platform,
            "cpus": os.cpu_count(),
            "jax": jax.__version__,
            "baracuda_jax": baracuda_jax.__version__,
            "date": str(datetime.date.today()),
            "copy_bytes_per_s": bandwidth,
        }
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        pathlib.Path(options.json).write_text(f'{json.dumps(about)[:-1]}, "rows": [\n{lines}\n]}}\n')
    if options.write_table:
        write_table(rows, platform, device)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
