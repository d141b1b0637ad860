"""Times of programs, taken in turn: on CPU of calls that are waited for, on a GPU of the kernels that they run.

A GPU's kernels are timed by a profile: the time in which at least one of them runs. The host's time between them is left
out, since a larger program has none; a kernel that begins after all before it have ended counts a microsecond more, the gap
between two kernels of a CUDA graph. So small ops need no program that repeats them. One program's work is told from
another's by annotations of the host's, in which it is waited for.
"""

import contextlib
import dataclasses
import fcntl
import math
import pathlib
import tempfile
import time
import typing
from bisect import bisect_left
from collections.abc import Callable

import jax

MARK = "timed "
WARM_SECONDS, IN_A_ROW, CALLS = 0.01, 3, 100
GAP_NS = 1000
KERNEL_SECONDS = 0.003  # of a program, in each repeat
SLOW_SECONDS = 0.5  # of all repeats of a program, of which there are two at least


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


@contextlib.contextmanager
def alone_on_device():
    """Several of these commands may compile at a time, of which one runs programs. Yields what lets the next one run before
    this one ends."""
    with (pathlib.Path(tempfile.gettempdir()) / "baracuda_jax_bench.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(lock, fcntl.LOCK_UN)


def measure(platform, programs, repeats, calls=CALLS, after=lambda: None):
    """{name: seconds of a call, in each repeat}, of so many calls at most. `after` is called when programs have run, before
    their profile is read, which takes longer."""
    return _waited_for(programs, repeats) if platform == "cpu" else _of_kernels(programs, repeats, calls, after)


def _in_turn(programs, repeats):
    """In the other order every second time."""
    for repeat in range(repeats):
        for name in list(programs)[:: 1 if repeat % 2 else -1]:
            yield repeat, name, programs[name]


def _waited_for(programs, repeats):
    """A program runs for a while before it is timed: caches and its own threads have to warm, and those of another pool,
    PyTorch's for one, go on spinning on the cores for milliseconds after its last call."""
    times = {name: [] for name in programs}
    for repeat, name, program in _in_turn(programs, -(-repeats // IN_A_ROW)):
        end, i = time.perf_counter() + WARM_SECONDS, repeat
        while time.perf_counter() < end:
            program.seconds(1, i := i + 1)
        times[name] += [program.seconds(1, i + 1 + k) for k in range(IN_A_ROW)]
    return times


def _of_kernels(programs, repeats, most, after):
    """The first call loads a program's kernels. Slow programs need few calls, and few repeats: a profile has no noise of the
    host's."""
    calls, turns = {}, {}
    for name, program in programs.items():
        program.seconds(1)
        seconds = program.seconds(1)
        calls[name] = max(1, min(most, int(KERNEL_SECONDS / seconds)))
        turns[name] = max(2, min(repeats, int(SLOW_SECONDS / seconds)))
        if calls[name] > 1:
            program.seconds(calls[name])
    with profile() as events:
        for repeat, name, program in _in_turn(programs, repeats):
            if repeat >= turns[name]:
                continue
            with jax.profiler.TraceAnnotation(f"{MARK}{name}"):
                program.seconds(calls[name], repeat)
        after()
    spans, kernels = _spans_and_kernels(events)
    times = {name: [] for name in programs}
    kernels.sort()
    starts = [start for start, _ in kernels]
    for name, begin, end in spans:
        inside = kernels[bisect_left(starts, begin) : bisect_left(starts, end)]
        if not inside:
            raise RuntimeError(f"the profile has no kernels of {name}")
        times[name].append(1e-9 * busy_ns(inside) / calls[name])
    return times


def busy_ns(kernels):
    """Of (start, duration) in order: how long one of them at least runs, and a gap before each that finds none running. Some
    begin before the one before has ended, to wait there for what it writes."""
    busy, until = 0, -math.inf
    for start, duration in kernels:
        end = start + duration
        busy += duration + GAP_NS if start >= until else max(0, end - until)
        until = max(until, end)
    return busy


class Event(typing.NamedTuple):
    """Of a profile: what ran when, on which line of which device or host."""

    plane: str
    line: str
    name: str
    start_ns: float
    duration_ns: float


@contextlib.contextmanager
def profile():
    """Yields a list, which afterwards has the Events of what ran meanwhile."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level = 0, 1  # annotations alone
    events = []
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            yield events
        (file,) = pathlib.Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(file))
        events += [
            Event(plane.name, line.name, event.name, event.start_ns, event.duration_ns)
            for plane in data.planes
            for line in plane.lines
            for event in line.events
        ]


def _spans_and_kernels(events):
    """(name, begin, end) of what was annotated, and (start, duration) of kernels and copies, in nanoseconds."""
    spans, kernels = [], []
    for event in events:
        if event.plane.startswith("/device:GPU") and event.line.startswith("Stream"):
            kernels.append((event.start_ns, event.duration_ns))
        elif event.plane.startswith("/host") and event.name.startswith(MARK):
            spans.append((event.name.removeprefix(MARK), event.start_ns, event.start_ns + event.duration_ns))
    return spans, kernels
