"""The command that times kernels."""

from baracuda_jax.__main__ import main


def run(platform, *arguments):
    return main(["bench", "--platform", platform, *map(str, arguments)])
