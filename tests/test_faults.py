"""Each law is needed: a rule that is broken on purpose is caught by the law that the table names."""

import jax.numpy as jnp
import pytest
from examples_of import Example, forget_traces
from laws import LAWS

import baracuda_jax
from baracuda_jax._core import choice, compat, kernel
from baracuda_jax._core import op as declaration
from baracuda_jax._core.compat import ad
from baracuda_jax._core.op import OPS

FAULTS = {}
CAUGHT = (AssertionError, FloatingPointError, NotImplementedError, RuntimeError, TypeError, ValueError)


def fault(*laws, op, dtype="float64"):
    """`break_(patch, op)` breaks the op; each of the laws must catch it."""

    def enter(break_):
        for law in laws:
            FAULTS[break_.__name__, law, op] = break_, dtype
        return break_

    return enter


def _around(patch, table, primitive, change):
    """A rule whose result is changed."""
    rule = table[primitive]
    patch.setitem(table, primitive, lambda *args, **params: change(rule(*args, **params)))


def _halved(t):
    return t if type(t) is ad.Zero else 0.5 * t


@fault("vmap_middle", "vmap_back", op="segment_max")
def batching_forgets_to_move_the_axis(patch, op):
    move = compat.bdim_at_front
    patch.setattr(compat, "bdim_at_front", lambda x, dim, *size: move(x, dim if dim is None else 0, *size))


@fault("vmap_front", "vmap_of_grad", "grad_of_vmap", op="lp_pool2d")
def batching_forgets_that_the_result_is_mapped(patch, op):
    for p in (op.forward, op.tangent, op.backward):
        _around(patch, compat.batching.fancy_primitive_batchers, p, lambda out: (out[0], [None] * len(out[0])))


@fault("limits_of_differences", op="lp_pool1d")
@fault("limits_of_differences", op="segment_sum")
def jvp_returns_half(patch, op):
    """The gradient, which is its transpose, halves with it: only the limit of differences knows."""
    _around(patch, ad.primitive_jvps, op.forward, lambda out: (out[0], [*map(_halved, out[1])]))


@fault("vjp", op="prelu")
@fault("vjp", op="repeat", dtype="complex64")
def transpose_forgets_a_sign(patch, op):
    _around(patch, ad.primitive_transposes, op.tangent, lambda cts: [ct if ct is None else -ct for ct in cts])


@fault("vjp", op="repeat", dtype="complex64")
def transpose_conjugates(patch, op):
    _around(patch, ad.primitive_transposes, op.tangent, lambda cts: [ct if ct is None else ct.conj() for ct in cts])


@fault("linear_transpose", op="segment_sum")
def a_linear_op_has_no_transpose(patch, op):
    patch.delitem(ad.primitive_transposes, op.forward)


@fault("derivative_of_the_backward_kernel", op="segment_mean")
def the_backward_kernel_is_constant_in_the_cotangent(patch, op):
    _around(patch, ad.primitive_jvps, op.backward, lambda out: (out[0], [declaration._zero(y) for y in out[0]]))


@fault("limits_of_differences", "third_derivative", op="powi")
def second_derivatives_forget_the_residuals(patch, op):
    rule = ad.primitive_jvps[op.backward]
    n = len(op.residuals)

    def linear_alone(primals, tangents, **params):
        still = [declaration._zero(x) for x in primals[:n]]
        return rule(primals, [*still, *tangents[n:]], **params)

    patch.setitem(ad.primitive_jvps, op.backward, linear_alone)


@fault("derivatives_of_the_definition", op="leaky_relu")
def a_kernel_gets_a_parameter_that_is_not_its_own(patch, op):
    bind = kernel._kernel.bind

    def other(*operands, attributes, **params):
        return bind(*operands, attributes=tuple((name, value / 2) for name, value in attributes), **params)

    patch.setattr(kernel._kernel, "bind", other)


@fault("debug_nans", op="hardtanh")
def a_gradient_has_a_nan_that_its_operands_have_not(patch, op):
    _around(patch, ad.primitive_transposes, op.tangent, lambda cts: [ct if ct is None else ct * jnp.nan for ct in cts])


@fault("grad_of_cond", "checkpoint", "custom_vjp", op="clamp")
def the_backward_rule_depends_on_how_often_it_was_traced(patch, op):
    count = []

    def change(cts):
        count.append(1)
        return [ct if ct is None else ct * len(count) for ct in cts]

    _around(patch, ad.primitive_transposes, op.tangent, change)


@fault("vmap_with_spmd_axis_name", op="lp_pool2d")
def a_kernel_call_says_nothing_of_its_batches(patch, op):
    patch.setattr(kernel, "_batch_rank", lambda dims: 0)


@fault("export_for_cuda", op="segment_min")
def programs_for_cuda_do_without_kernels(patch, op):
    choose = choice.choose
    patch.setattr(choice, "choose", lambda *call: ("xla", "") if "cuda" in call[-1] else choose(*call))


@fault("export_for_cpu", "export_for_both", "export_of_the_gradient", op="segment_prod")
def an_export_check_is_missing(patch, op):
    ours = {f"baracuda.{target}" for target in op.kernels["forward"]}
    known = [check for check in baracuda_jax.export_checks if not any(target in str(check) for target in ours)]
    patch.setattr(baracuda_jax, "export_checks", known)


@fault("export_for_any_batch", op="quantize_per_tensor")
def a_sharding_rule_is_wanted_where_sizes_are_not_known(patch, op):
    rule = kernel._sharding_rule

    def of_sizes(*call):
        if (text := rule(*call)) is None:
            raise ValueError("a size is not known")
        return text

    patch.setattr(kernel, "_sharding_rule", of_sizes)


@pytest.mark.parametrize("fault", FAULTS, ids="-".join)
def test_a_fault_is_caught(monkeypatch, fault):
    _, law, name = fault
    (break_, dtype), op, law = FAULTS[fault], OPS[name], LAWS[law]
    assert law.applies(op, jnp.dtype(dtype)) is None
    example = lambda: Example(op, op.cases[0], dtype)
    forget_traces()
    try:
        with monkeypatch.context() as patch, pytest.raises(CAUGHT):
            break_(patch, op)
            law.check(example())
    finally:
        forget_traces()
    law.check(example())
