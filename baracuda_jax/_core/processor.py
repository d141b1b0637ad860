"""Whether this CPU has the instructions that the CPU module was compiled with. Without them SIGILL may kill the process
while the module loads. So the module's file is read before: the level it was built for is text in it."""

import mmap
import re

# As the x86-64 psABI defines its levels, by the names in /proc/cpuinfo, where lzcnt is "abm".
V2 = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}
V3 = V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
V4 = V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
LEVELS = {b"2": V2, b"3": V3, b"4": V4}
BUILT_FOR = re.compile(rb"CPU, \w+ [^\0]*x86-64-v([234])\0")


def check(module, cpuinfo="/proc/cpuinfo"):
    """Raises an ImportError that names the missing instructions. `module` is the file of the CPU module. What was built
    for "native" names no level, and systems other than Linux have no cpuinfo: these pass."""
    has = flags(cpuinfo)
    if not has or has >= V4:
        return
    with open(module, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        found = BUILT_FOR.search(text)
        level = found and found[1]
    missing = LEVELS[level] - has if level else set()
    if missing:
        raise ImportError(
            f"it was built for x86-64-v{level.decode()}, and this CPU has no {', '.join(sorted(missing))}: build it on this "
            "machine, by `pip install .` in a checkout"
        )


def flags(cpuinfo):
    """The first CPU's flags; none where the file does not tell."""
    try:
        with open(cpuinfo) as lines:
            return next((set(line.split(":")[1].split()) for line in lines if line.startswith("flags")), set())
    except OSError:
        return set()
