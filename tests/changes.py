"""Which ops a change touches: those whose declaration, functor, pattern or handler is in a changed file, or in one that includes
or imports it."""

import ast
import functools
import pathlib
import re
import subprocess

from sampling import RUNS, Tier

from baracuda_jax._core import library
from baracuda_jax._core.op import OPS

ROOT = pathlib.Path(__file__).parent.parent
FAMILIES = {op.family for op in OPS.values()}
# What no single op owns: a change of these is met by a wider sample of all.
SHARED = re.compile(
    r"baracuda_jax/(_core/|__init__)|ffi/(module\.cc|handlers/\w+\.h)|tests/(laws/|faults/|(?!test_)\w+\.py)|CMakeLists|pyproject"
)


MORE = RUNS - 1  # samples where what all ops share has changed: with that of a default run, all of its properties


def tier(base, seed):
    """What a change since a commit is tested by."""
    files = changed_files(base)
    names, is_shared = touched(files)
    tests = frozenset(name.removeprefix("tests/") for name in files if re.fullmatch(r"tests/test_\w+\.py", name))
    return Tier(tuple(seed + i for i in range(1, 1 + MORE)) if is_shared else (), frozenset(names), tests)


def changed_files(base):
    """What differs from a commit in the working tree, new files too."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(f"--changed: git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.split("\n")

    common = git("merge-base", base, "HEAD")[0]
    return {
        name for name in (*git("diff", "--name-only", common), *git("ls-files", "-o", "--exclude-standard")) if name
    }


def touched(files):
    """(the names of the ops that these files belong to, whether a file belongs to all ops)"""
    names, is_shared = set(), False
    for file in files:
        if SHARED.match(file):
            is_shared = True
            continue
        found = set().union(*map(_ops_of, _with_users(file)))
        if 2 * len(found) > len(OPS):
            is_shared = True
        else:
            names |= found
    return names, is_shared


def _with_users(file):
    """The file, and those that import or include it, directly or not."""
    reach, new = {file}, [file]
    while new:
        more = _users().get(new.pop(), set()) - reach
        reach |= more
        new += more
    return reach


@functools.cache
def _users():
    """{file: those that import or include it}"""
    users = {}
    for path in _sources("baracuda_jax", "*.py"):
        for used in _imports(path):
            users.setdefault(used, set()).add(_name(path))
    for path in (*_sources("ffi", "*.h"), *_sources("ffi", "*.cc")):
        for used in _includes(path):
            users.setdefault(used, set()).add(_name(path))
    return users


def _sources(folder, pattern):
    found = (ROOT / folder).rglob(pattern)
    # A package imports all of its modules, and no op is declared in a package.
    return [path for path in found if path.name != "__init__.py" and not re.search("/(bench|_cli)/", str(path))]


def _name(path):
    return path.relative_to(ROOT).as_posix()


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for file in (folder.with_suffix(".py"), *(folder / f"{alias.name}.py" for alias in node.names)):
                if file.exists():
                    yield _name(file)


def _includes(path):
    text = path.read_text()
    names = re.findall(r'#include "([^"]+)"', text)
    for pattern in re.findall(r"#include BARACUDA_DRIVER\((\w+)\)", text):
        names += [f"{up}patterns/{pattern}_{platform}.h" for up in ("../", "../../") for platform in ("cpu", "cuda")]
    for file in (path.parent / name for name in names):
        if file.exists():
            yield _name(file.resolve())


@functools.cache
def _ops_of(name):
    """The ops that a file names: as strings or functions where they are declared, by their targets in C++."""
    path = ROOT / name
    if not path.exists() or path.name == "__init__.py":
        return frozenset()
    if name.startswith("ffi/handlers/") and path.suffix == ".cc":
        words = set(re.findall(r"\w+", re.sub(r"//.*", "", path.read_text())))
        here = {target for target in _targets() if target in words or target.removesuffix("_backward") in words}
        return frozenset(op.name for op in OPS.values() if here & op.targets)
    if name.startswith("baracuda_jax/") and path.suffix == ".py":
        family = path.relative_to(ROOT / "baracuda_jax").parts[0].removesuffix(".py")
        nodes = list(ast.walk(ast.parse(path.read_text())))
        words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        words |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        module = name.removesuffix(".py").replace("/", ".")
        is_here = lambda op: {op.name, op.public.__name__} & words or op.public.__module__ == module
        return frozenset(op.name for op in OPS.values() if op.family == family and is_here(op))
    return frozenset()


def _targets():
    return {target.removeprefix(library.PREFIX) for target in library.LIBRARIES["cpu"].targets}
