"""What a run takes of all tests.

default     every op's value; of its other properties, and of those of the machinery that ops share, on one op of each kind, those
            whose turn it is: RUNS successive runs meet all. Of another test with parameters a part of the items that have each value
            of each parameter once: RUNS runs have all of these. Which case, dtype and combination it is rotates too.
--changed   everything there is about the ops that a change touches (`changes.py`); where that is what all ops share, the samples
            of the next RUNS - 1 runs
--full      everything
"""

import dataclasses
import datetime
import math
import random
import subprocess
import zlib

from baracuda_jax._core.op import OPS

RUNS = 8  # successive runs in which each property of an op, and of what ops share, is met
MANY = 8  # where an op of more groups than this shows a property, it is met in RUNS runs, else in each


def seed_of(root):
    """The number of commits, so that a commit always runs the same sample; without a repository, the day."""
    try:
        count = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
        return int(count.stdout)
    except (OSError, subprocess.CalledProcessError):
        return datetime.date.today().toordinal()


def kind(op):
    """What ops share whose declarations take the same paths through the machinery, or those of JAX, where they are plain JAX."""
    if op.is_facade:
        return op.family
    star = any(name.startswith("*") for name in op.operands)
    shape = len(op.operands), len(op.results), len(op.outputs), len(op.differentiable)
    made = op.has_kernels, bool(op.made_of), bool(op.aliases), bool(op.weak)
    return op.kin or (*shape, *made, star, op.is_linear, op.quantized, bool(op.also))


def pair(xs, ys, turn):
    """One of each, all pairs of which are met once in as many successive turns, all xs and all ys in the fewest."""
    n, m = len(xs), len(ys)
    turn %= n * m
    return xs[(turn + turn // math.lcm(n, m)) % n], ys[turn % m]


def each_but_of_facades_one_of_each_kin(op):
    """JAX differentiates facades, or a rule of this package, of an op without kin."""
    return op.kin if op.is_facade and op.kin else op.name


def each_kin(op):
    """Ops of one kin differ in their functors alone."""
    return op.kin or op.name


def due(ops, key, seed, number):
    """{op: how often it was due before}: one op of each group whose turn it is, for the property of that number. In RUNS successive
    runs a property meets every group, and in as many times RUNS as a group has ops every op. Properties of successive numbers take
    turns at a group."""
    groups, found = {}, {}
    for op in ops:
        groups.setdefault(key(op), []).append(op)
    runs = RUNS if len(groups) > MANY else 1
    # One after the other, so that each run has some; apart by a number of their own, so that cases and dtypes differ.
    names = sorted(groups, key=lambda name: number_of(repr(name)))
    for i, name in enumerate(names):
        members, turn = groups[name], seed + i + RUNS * (number_of(repr(name)) % 1024)
        op, now = pair(members, range(runs), turn)
        if now == number % runs:
            found[op] = turn // (runs * len(members))
    return found


def turn_of(seed, name):
    """Where the rotation of this name starts in a run of that seed."""
    return seed + number_of(name) % 4096


def number_of(name):
    return zlib.crc32(name.encode())


# ---------------------------------------------------------------------------------------------------------------------
# Parameters of tests


# Parameters of which a sample takes one of those that are about the same.
SHARED_BY = {
    "sharded": lambda use: OPS[use.op].kin or use.op,
    "silent": lambda use: kind(OPS[use.op]),
    "onnx_export": lambda export: export.operator,
}


def _feature(name, value):
    """What one parameter of a test adds to a run."""
    if name in SHARED_BY:
        return name, SHARED_BY[name](value)
    return name, repr(value) if isinstance(value, str | bool | int | float | type(None)) else id(value)


def features(item):
    return frozenset(_feature(name, value) for name, value in item.callspec.params.items())


def covering(items, seed):
    """Few of the items of one test that together have every value of every parameter, others for another seed."""
    items = list(items)
    random.Random(seed).shuffle(items)
    wanted = {id(item): features(item) for item in items}
    missing, taken = frozenset().union(*wanted.values()), []
    for new in range(max(map(len, wanted.values())), 0, -1):  # first what adds most
        for item in items:
            if len(wanted[id(item)] & missing) >= new:
                taken.append(item)
                missing -= wanted[id(item)]
    return taken


def sample(items, seed):
    """A part of a cover, and all of it in the RUNS runs of one block; at least one item."""
    cover = covering(items, seed // RUNS)
    return cover[seed % min(RUNS, len(cover)) :: RUNS]


# ---------------------------------------------------------------------------------------------------------------------
# Tiers


@dataclasses.dataclass(frozen=True)
class Tier:
    """`ops` and `files` are run in full, of all else the samples of the seeds."""

    seeds: tuple[int, ...]
    ops: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()  # of tests

    @property
    def is_full(self):
        return self.ops == frozenset(OPS)

    def of(self, ops, sample):
        """The ops that are run in full, and those of the samples."""
        full = [op for op in ops if op.name in self.ops]
        return list(dict.fromkeys((*full, *(op for seed in self.seeds for op in sample(seed)))))

    def items(self, items):
        """All items of tests marked `exhaustive`, and of laws, whose examples are a sample already."""
        groups = {}
        for item in items:
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
        return [item for name, group in groups.items() for item in self._of_test(name, group)]

    def _of_test(self, name, group):
        if self.is_full or group[0].path.name in self.files or _is_of_a_law(group[0]):
            return group
        full, rest = [], []
        for item in group:
            (full if self.ops and _ops_of(item) & self.ops else rest).append(item)
        if not self.seeds or not rest:
            return full
        if len(rest) == 1 or rest[0].get_closest_marker("exhaustive"):
            return full + rest
        take = covering if _is_chosen(rest[0]) else sample
        samples = [take(rest, turn_of(seed, name)) for seed in self.seeds]
        return full + list({id(item): item for taken in samples for item in taken}.values())


def _is_chosen(item):
    """By `pytest_generate_tests`."""
    return any(name in item.callspec.params for name in ("op", "derivable_op", "example"))


def _is_of_a_law(item):
    return hasattr(item, "callspec") and "law" in item.callspec.params


def _op_name(value):
    """That of an op, or of what has one."""
    value = getattr(value, "op", value)
    value = getattr(value, "name", value)
    return value if isinstance(value, str) else None


def _ops_of(item):
    """The ops that a test is about: those of its parameters, else those of its file's family."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    named = {name for name in map(_op_name, values) if name in OPS}
    family = getattr(item.module, "FAMILY", item.path.stem.removeprefix("test_"))
    own = {op.name for op in OPS.values() if op.family == family}
    return named & own or named | own  # "max" may be that of segments
