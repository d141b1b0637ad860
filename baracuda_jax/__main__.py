"""python -m baracuda_jax info | ops | check"""

import argparse
import importlib.util
import sys


def parser():
    top = argparse.ArgumentParser("python -m baracuda_jax", description="What this installation is, has and computes.")
    commands = top.add_subparsers(dest="command", required=True, metavar="info | ops | check")
    commands.add_parser("info", help="versions, devices and compiled modules")
    ops = commands.add_parser("ops", help="the table of ops")
    ops.add_argument("--markdown", action="store_true", help="print a Markdown table")
    check = commands.add_parser(
        "check", help="self-test: every kernel against its reference; exit status 1 on a failure"
    )
    check.add_argument("--op", action="append", metavar="NAME", help="only this op; may be repeated")
    check.add_argument("--platform", action="append", choices=["cpu", "cuda"], help="only this platform")
    check.add_argument("--jobs", type=int, metavar="N", help="how many programs to compile at a time")
    return top


def main(arguments=None):
    options = parser().parse_args(arguments)
    if importlib.util.find_spec("rich") is None:
        print("This command prints with rich, which is not installed: pip install 'baracuda-jax[cli]'", file=sys.stderr)
        return 1
    if options.command == "info":
        from ._cli.info import info

        return info()
    if options.command == "ops":
        from ._cli.ops import ops

        return ops(options.markdown)
    from ._cli.check import check

    return check(options.op, options.platform, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
