"""Ways to break a rule or a kernel."""

from baracuda_jax._core import kernel


def around(patch, table, primitive, change):
    """A rule whose result is changed, of an op that has it."""
    if rule := table.get(primitive):
        patch.setitem(table, primitive, lambda *args, **params: change(rule(*args, **params)))


def kernel_fault(patch, targets, *, operands=None, attributes=None, results=None, workspace=None):
    """Other operands, attributes, results or bytes of workspace of the calls of some targets: operands(*operands, out, **attributes),
    attributes(**attributes) for those that change, results(results, *operands, **attributes); without the workspace."""
    bind, names = kernel._kernel.bind, targets.split()

    def changed(*xs, target, **params):
        if target not in names:
            return bind(*xs, target=target, **params)
        skipped = int(params["dims_out"][0][-1:] == ("workspace",))
        given = dict(params["attributes"])
        if attributes:
            given |= attributes(**given)
            params["attributes"] = tuple(sorted(given.items()))
        if workspace and skipped:
            ((*batches, size), dtype), *out = params["out"]
            params["out"] = (((*batches, workspace(size)), dtype), *out)
        if operands:
            xs = operands(*xs, out=params["out"][skipped:], **given)
        ys = bind(*xs, target=target, **params)
        return [*ys[:skipped], *results(ys[skipped:], *xs, **given)] if results else ys

    patch.setattr(kernel._kernel, "bind", changed)
