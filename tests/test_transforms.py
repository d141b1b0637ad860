"""Laws of transformations: jit, vmap, scan, checkpoint and export change nothing."""

import jax
import jax.numpy as jnp
import numpy as np
from examples_of import Example, close, has_derivative, loss_of, same_bits


def _other(a):
    """Another argument of the same shape; sorted ids stay sorted."""
    if jnp.issubdtype(a.dtype, jnp.integer):
        return jnp.minimum(a, 3)
    return jnp.flip(a, 0) if a.ndim else a / 2


def test_jit_is_eager(example):
    same_bits(jax.jit(example.fun)(example.x), example.fun(example.x))


def test_vmap_is_a_stack_of_singles(example):
    """Each argument mapped or not, at the front and at the back."""
    args, call = example.args, example.call
    for mapped in np.ndindex(*(2,) * len(args)):
        if not any(mapped):
            continue
        for axis in (0, -1):
            many = [jnp.stack([a, _other(a), a], axis) if m else a for a, m in zip(args, mapped, strict=True)]
            in_axes = [axis if m else None for m in mapped]
            singles = [
                call(*(jnp.take(a, i, axis) if m else a for a, m in zip(many, mapped, strict=True))) for i in range(3)
            ]
            same_bits(jax.vmap(call, in_axes)(*many), jnp.stack(singles))
            same_bits(jax.vmap(call, in_axes, out_axes=-1)(*many), jnp.stack(singles, -1))


def test_vmap_of_vmap_is_a_stack_of_stacks(op):
    example = Example(op, op.cases[0], "float32")
    (x, *rest), call = example.args, example.call
    xs = jnp.stack([jnp.stack([x, x + 1]), jnp.stack([x + 2, x + 3]), jnp.stack([x - 1, x])])
    singles = jnp.stack([jnp.stack([call(x, *rest) for x in row]) for row in xs])
    same_bits(jax.vmap(jax.vmap(lambda x: call(x, *rest)))(xs), singles)
    if not rest:
        return
    # The outer map has the other arguments too, the inner has not: they have fewer batches than the data.
    many = [jnp.stack([r, _other(r), r]) for r in rest]
    nested = jax.vmap(lambda row, *rest: jax.vmap(lambda x: call(x, *rest))(row))
    want = jnp.stack([jnp.stack([call(x, *(m[i] for m in many)) for x in xs[i]]) for i in range(3)])
    same_bits(nested(xs, *many), want)
    if not has_derivative(op):
        return
    grad = lambda f: jax.grad(loss_of(f))
    want = jnp.stack([jnp.stack([grad(call)(x, *(m[i] for m in many)) for x in xs[i]]) for i in range(3)])
    close(grad(nested)(xs, *many), want, "float32")


def test_checkpoint_and_scan_change_nothing(derivable_op):
    example = Example(derivable_op, derivable_op.cases[0], "float32")
    loss = loss_of(example.fun)
    xs = jnp.stack([example.x, example.x * 0.9])
    want = jnp.stack([jax.grad(loss)(x) for x in xs])
    close(jnp.stack([jax.grad(jax.checkpoint(loss))(x) for x in xs]), want, "float32")
    total = lambda xs: jax.lax.scan(lambda s, x: (s + loss(x), None), 0.0, xs)[0]
    close(jax.grad(total)(xs), want, "float32")
    looped = jax.lax.fori_loop(0, 2, lambda i, s: s + loss(xs[i]), jnp.float32(0))
    close(looped, total(xs), "float32")


def test_export_round_trip(op):
    """One program for cpu and cuda: forward and gradient."""
    from baracuda_jax._core.library import PREFIX

    example = Example(op, op.cases[0], "float32")
    kernels = {PREFIX + target for targets in op.kernels.values() for target in targets}
    checks = [jax.export.DisabledSafetyCheck.custom_call(name) for name in kernels]
    for fun in (example.fun, *([jax.grad(loss_of(example.fun))] if has_derivative(op) else [])):
        exported = jax.export.export(jax.jit(fun), platforms=("cpu", "cuda"), disabled_checks=checks)(example.x)
        again = jax.export.deserialize(exported.serialize())
        same_bits(again.call(example.x), jax.jit(fun)(example.x))


def test_results_are_the_same_bits_twice(example):
    if example.has_derivative:
        run = jax.jit(lambda x, w: (example.fun(x), jax.vjp(example.fun, x)[1](w)[0]))
        args = (example.x, example.random(example.fun(example.x)))
    else:
        run, args = jax.jit(lambda x: (example.fun(x),)), (example.x,)
    first = run(*args)
    for _ in range(3):
        for a, b in zip(first, run(*args), strict=True):
            same_bits(a, b)


def test_the_backend_is_chosen_by_call_then_context_then_environment(monkeypatch):
    import baracuda_jax as bj

    ids = jnp.zeros(3, jnp.int32)
    native = lambda **kw: "baracuda." in jax.jit(lambda x: bj.segment_sum(x, ids, 2, **kw)).lower(jnp.ones(3)).as_text()
    assert native()
    assert not native(prefer="xla")
    with bj.prefer("xla"):
        assert not native()
        assert native(prefer="native")
    monkeypatch.setenv("BARACUDA_JAX_PREFER", "xla")
    assert not native()
    with bj.prefer("native"):
        assert native()
