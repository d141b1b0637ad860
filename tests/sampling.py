"""What a sample takes: of the ops of one kin, which differ in a functor alone, each fourth, and of the others each second."""

from baracuda_jax._core.op import OPS


def _places():
    """Where each op stands among those of its kin."""
    kin = {}
    for op in OPS.values():
        kin.setdefault(op.kin, []).append(op.name)
    return {name: place for names in kin.values() for place, name in enumerate(names)}


_PLACES = _places()


def stride(op):
    return 4 if op.kin else 2


def is_in_turn(op, turn):
    """Whether the op is in the sample of that number: it is in one of `stride(op)` that follow each other."""
    return (_PLACES[op.name] + turn) % stride(op) == 0
