"""Two processes on one machine, each with half of the devices, compute what one does."""

import os
import pathlib
import socket
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples/many_hosts.py"


def _start(devices, *arguments):
    settings = {
        "BARACUDA_JAX_PREFER": "native",
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, EXAMPLE, *arguments]
    return subprocess.Popen(
        command, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _printed(processes):
    try:
        outputs = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors[-3000:]
    # The transport's threads print too, at times into one another's lines.
    return [[line for line in output.splitlines() if line.startswith("loss")] for output, _ in outputs]


def test_two_processes_compute_what_one_does():
    (alone,) = _printed([_start(1)])
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    several = ("--coordinator", coordinator, "--processes", "2", "--process")
    first, second = _printed([_start(4, *several, str(i)) for i in range(2)])
    assert len(alone) == 1 and first == alone and second == []
