"""`patch_jax`: JAX's modules with mirrors in them.

A patched module holds stand-ins for JAX's functions. A stand-in looks at who calls it. A program gets the mirror. This
package, whose references are made of JAX's functions, gets JAX's function: so no op is computed by itself. JAX's own
library gets it too: so no trace that JAX caches for itself holds an op of baracuda_jax. Transformations stand for their
callers: the program that calls `jax.vmap(jax.numpy.cumsum)` gets the mirror.
"""

import functools
import threading

import jax

from .._core import choice, compat, library
from .._core import prefer as preference
from .._core.traced import calls_in
from .mirror import MIRRORS, PACKAGE

_lock = threading.RLock()
_patches = []  # those in force, in the order of the calls


class Patch:
    """Functions of JAX that are replaced until the context ends, or `unpatch_jax` is called.

    Args:
        names: the names of the replaced functions below `jax`.
        deterministic: whether results must be the same bits every time.
        report: takes a line of text for each call, or None.
    """

    def __init__(self, names, deterministic=False, report=None):
        self.names, self.deterministic, self._report = tuple(names), deterministic, report

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with _lock:
            if self in _patches:
                _patches.remove(self)
            _install()

    def __repr__(self):
        return f"Patch({', '.join(self.names)})"


def patch_jax(only=None, *, deterministic=False, verbose=False):
    """Replace functions of JAX with their mirrors, for programs that call them as attributes of JAX's modules.

    Args:
        only: names of functions such as "ops.segment_sum" and of namespaces such as "ops" or "numpy.linalg"; one or a list.
            By default all functions whose results and derivatives are JAX's up to rounding. A namespace stands for those
            of its functions. A function that differs must be named.
        deterministic: whether results must be the same bits every time, as is the rule in this package. By default XLA
            computes what it was measured to be faster at, in any order of a GPU's threads, as it does without the patch.
        verbose: report what is replaced and what computes each call. True prints; a function takes each line, as
            `logging.getLogger("program").info` does.

    Returns:
        A context manager. The functions are replaced at once, and until its context ends. Patches may overlap: a function is
        replaced while any of them has it.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, or for a name that has no mirror.

    All threads of the process see the effect at once. A program that is compiled within a patch stays as it is.

    Source: scikit-learn-intelex has the like for scikit-learn.
    """
    if not (isinstance(verbose, bool) or callable(verbose)):
        raise TypeError(f"patch_jax: verbose must be a bool or a function of text, got {verbose!r}")
    if not isinstance(deterministic, bool):
        raise TypeError(f"patch_jax: deterministic must be a bool, got {deterministic!r}")
    patch = Patch(_chosen(only), deterministic, print if verbose is True else verbose or None)
    with _lock:
        _patches.append(patch)
        _install()
    if patch._report:
        patch._report(f"baracuda_jax: replaced jax.{', jax.'.join(patch.names)}")
    return patch


def unpatch_jax():
    """End all patches of `patch_jax`, in all threads."""
    with _lock:
        _patches.clear()
        _install()


def _chosen(only):
    """The names of the functions."""
    if only is None:
        return [name for name, mirror in MIRRORS.items() if not mirror.differs]
    if not isinstance(only, str | list | tuple | set | frozenset) or not all(isinstance(name, str) for name in only):
        raise TypeError(f"patch_jax: only must be a name or a list of names, got {only!r}")
    found = []
    for name in [only] if isinstance(only, str) else sorted(only):
        inside = [n for n, mirror in MIRRORS.items() if n.startswith(f"{name}.") and not mirror.differs]
        if name not in MIRRORS and not inside:
            raise ValueError(f"patch_jax: only has {name!r}, which has no mirror; there are {', '.join(MIRRORS)}")
        found += [name] if name in MIRRORS else inside
    return list(dict.fromkeys(found))


def _install():
    """Makes JAX's modules what the patches in force say. A function that somebody else has put there stays."""
    wanted = {name for patch in _patches for name in patch.names}
    for name, mirror in MIRRORS.items():
        attribute = name.rpartition(".")[2]
        before, after = mirror.original, _stand_in(name)
        if name not in wanted:
            before, after = after, before
        if getattr(mirror.module, attribute) is before:
            setattr(mirror.module, attribute, after)


@functools.cache
def _stand_in(name):
    mirror = MIRRORS[name]

    @functools.wraps(mirror.original)
    def function(*args, **kwargs):
        caller = compat.calling_module(1).partition(".")[0]
        patches = [patch for patch in list(_patches) if name in patch.names]
        if caller in ("jax", PACKAGE) or not patches:
            return mirror.original(*args, **kwargs)
        deterministic = any(patch.deterministic for patch in patches)
        with preference.default(preference.PlanPreference(deterministic=deterministic)):
            for patch in patches:
                if patch._report:
                    patch._report(f"jax.{name}: {_computed_by(mirror, args, kwargs)}")
            return mirror.function(*args, **kwargs)

    return function


def _computed_by(mirror, args, kwargs):
    """What computes a call: for each op, its kernels or XLA; or JAX's function."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    positions = [i for i, x in enumerate(leaves) if isinstance(x, jax.Array)]

    def adapted(arrays):
        filled = list(leaves)
        for i, x in zip(positions, arrays, strict=True):
            filled[i] = x
        args, kwargs = jax.tree.unflatten(tree, filled)
        return mirror.adapter(*args, **kwargs)

    arrays = [leaves[i] for i in positions]
    if jax.eval_shape(lambda arrays: () if adapted(arrays) is NotImplemented else 0, arrays) == ():
        if mirror.adapter(*args, **kwargs) is NotImplemented:
            return "JAX's function, for these arguments"
        return f"{', '.join(mirror.ops)}, of a size that depends on values"
    calls = calls_in(jax.make_jaxpr(adapted)(arrays))
    said = []
    for call in calls:
        wanted = call.op.of_context(preference.resolve(call.op.name, None))
        backend, why = choice.choose(call, wanted, (library.default_platform(),))
        said.append(f"{call.name} {backend} ({why})")
    return ", ".join(dict.fromkeys(said)) or "no op"
