"""baracuda-jax info | ops | check | bench, also as python -m baracuda_jax"""

import argparse
import importlib.util
import pathlib
import sys
from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser("baracuda-jax", description="What this installation is, has and computes.")
    commands = top.add_subparsers(dest="command", required=True, metavar="info | ops | check | bench")
    commands.add_parser("info", help="versions, devices and compiled modules")
    ops = commands.add_parser("ops", help="the table of ops, or all about some")
    ops.add_argument("names", nargs="*", metavar="NAME", help="show the page of this op instead of the table")
    ops.add_argument("--markdown", action="store_true", help="print a Markdown table")
    check = commands.add_parser(
        "check", help="self-test: every kernel against its reference; exit status 1 on a failure"
    )
    check.add_argument("--op", action="extend", nargs="+", metavar="NAME", help="only these ops")
    check.add_argument("--platform", action="append", choices=["cpu", "cuda"], help="only this platform")
    check.add_argument("--jobs", type=int, metavar="N", help="how many programs to compile at a time")
    bench = commands.add_parser(
        "bench", help="time kernels against the bandwidth bound, XLA and PyTorch; exit status 1 on a failure"
    )
    kind = bench.add_mutually_exclusive_group()
    kind.add_argument(
        "--sweep", action="store_true", help="time an op of each kind at sizes from 2^10 to over 2^31 elements"
    )
    kind.add_argument(
        "--overhead", action="store_true", help="time calls of tiny ops, chains of them, compiling, importing"
    )
    bench.add_argument("--op", action="extend", nargs="+", metavar="NAME", help="only these ops")
    bench.add_argument("--platform", choices=["cpu", "cuda"], help="by default the GPU if there is one")
    bench.add_argument("--size", choices=["small", "large"], help="of the arrays, by default small")
    bench.add_argument(
        "--dtype", action="extend", nargs="+", choices=["float32", "bfloat16", "int32", "bool"], help="only these"
    )
    bench.add_argument("--case", metavar="TEXT", help="only cases whose names contain TEXT, such as '[4096, 32, 32]'")
    bench.add_argument("--against", type=baselines, help="xla, torch, or xla,torch; by default xla")
    bench.add_argument(
        "--repeats", type=int, metavar="N", help="of which the median counts, by default 15; 5 of a sweep"
    )
    bench.add_argument("--from", dest="read", metavar="FILE", help="measure nothing: take the results in FILE")
    bench.add_argument("--json", metavar="FILE", help="write the results to FILE")
    bench.add_argument("--plot", metavar="FILE", help="draw them as SVG to FILE")
    bench.add_argument(
        "--write-table",
        metavar="FILE",
        nargs="?",
        const=pathlib.Path(__file__).parent / "backends.json",
        help="time both backends over a grid of sizes; merge these times into FILE, by default that of this installation",
    )
    bench.add_argument("--tune", action="store_true", help="the same, into your own table for this device")
    bench.add_argument(
        "--regret",
        type=int,
        metavar="N",
        help="time both backends at N random sizes: what is chosen, over the faster one",
    )
    return top


def baselines(text: str) -> tuple[str, ...]:
    """What native is timed against, separated by commas."""
    names = tuple(text.split(","))
    if not set(names) <= {"xla", "torch"}:
        raise argparse.ArgumentTypeError(f"expected xla, torch, or xla,torch, got {text}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if importlib.util.find_spec("rich") is None:
        print("This command prints with rich, which is not installed: pip install rich", file=sys.stderr)
        return 1
    if options.command == "info":
        from ._cli.info import info

        return info()
    if options.command == "ops":
        from ._cli.ops import ops

        return ops(options.markdown, options.names)
    if options.command == "bench":
        from .bench.command import bench

        return bench(options)
    from ._cli.check import check

    return check(options.op, options.platform, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
