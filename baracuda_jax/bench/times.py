"""Times of programs, taken in turn: on CPU of calls that are waited for, on a GPU of the kernels that they run.

A GPU's kernels are timed by a profile. What passes between them is left out: it is the host's, which launches them, and a
larger program has none. So small ops need no program that repeats them. One program's work is told from another's by
annotations of the host's, in which it is waited for.
"""

import dataclasses
import pathlib
import tempfile
import time
from collections.abc import Callable

import jax

MARK = "timed "


@dataclasses.dataclass(frozen=True)
class Program:
    """Something to call again and again."""

    call: Callable[[int], object]  # on the i-th set of inputs
    wait: Callable[[object], object] = jax.block_until_ready

    def seconds(self, calls, first=0):
        """Of a call, among so many that are enqueued back to back."""
        begin = time.perf_counter()
        for i in range(first, first + calls):
            out = self.call(i)
        self.wait(out)
        return (time.perf_counter() - begin) / calls


def on(program, sets):
    """A compiled program, which takes the sets of inputs in turn."""
    return Program(lambda i: program(*sets[i % len(sets)]))


def measure(platform, programs, repeats):
    """{name: seconds of a call, in each repeat}"""
    return (_waited_for if platform == "cpu" else _of_kernels)(programs, repeats)


def _in_turn(programs, repeats):
    """In the other order every second time."""
    for repeat in range(repeats):
        for name in list(programs)[:: 1 if repeat % 2 else -1]:
            yield repeat, name, programs[name]


def _waited_for(programs, repeats):
    times = {name: [] for name in programs}
    for program in programs.values():
        program.seconds(2)
    for repeat, name, program in _in_turn(programs, repeats):
        times[name].append(program.seconds(1, repeat))
    return times


def _of_kernels(programs, repeats):
    calls = {}
    for name, program in programs.items():
        program.seconds(3)
        calls[name] = max(3, min(100, int(0.005 / program.seconds(5))))
        program.seconds(calls[name])
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for repeat, name, program in _in_turn(programs, repeats):
                with jax.profiler.TraceAnnotation(f"{MARK}{name}"):
                    program.seconds(calls[name], repeat)
        (file,) = pathlib.Path(folder).rglob("*.xplane.pb")
        spans, kernels = _events(jax.profiler.ProfileData.from_file(str(file)))
    times = {name: [] for name in programs}
    for name, begin, end in spans:
        inside = sum(duration for start, duration in kernels if begin <= start < end)
        if not inside:
            raise RuntimeError(f"the profile has no kernels of {name}")
        times[name].append(1e-9 * inside / calls[name])
    return times


def _events(profile):
    """(name, begin, end) of what was annotated, and (start, duration) of kernels and copies, in nanoseconds."""
    spans, kernels = [], []
    for plane in profile.planes:
        for line in plane.lines:
            if plane.name.startswith("/device:GPU") and line.name.startswith("Stream"):
                kernels += [(e.start_ns, e.duration_ns) for e in line.events]
            elif plane.name.startswith("/host"):
                found = [e for e in line.events if e.name.startswith(MARK)]
                spans += [(e.name.removeprefix(MARK), e.start_ns, e.start_ns + e.duration_ns) for e in found]
    return spans, kernels
