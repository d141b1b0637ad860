"""Faults of batching, derivatives, exports and what else a declaration makes."""

import itertools
import types

import jax
import jax.numpy as jnp

import baracuda_jax
from baracuda_jax._core import choice, compat, derivatives, kernel
from baracuda_jax._core.compat import ad
from baracuda_jax.elementwise import _length
from baracuda_jax.moe import _gating

from .table import fault
from .ways import around, kernel_fault


def has_primitives(op):
    return bool(op.forward)


def _primitives(op):
    return [p for p in (op.forward, op.tangent, op.backward) if p]


def _halved(t):
    return t if type(t) is ad.Zero else 0.5 * t


def _each(change):
    """A change of the cotangents that are there."""
    return lambda cts: [ct if ct is None else change(ct) for ct in cts]


# ---------------------------------------------------------------------------------------------------------------------
# vmap


@fault("vmap_middle", "vmap_back")
def batching_forgets_to_move_the_axis(patch, op):
    move = compat.bdim_at_front
    patch.setattr(compat, "bdim_at_front", lambda x, dim, *size: move(x, dim if dim is None else 0, *size))


@fault("vmap_front", "vmap_of_grad", "grad_of_vmap", among=has_primitives)
def batching_forgets_that_the_result_is_mapped(patch, op):
    for p in _primitives(op):
        around(patch, compat.batching.fancy_primitive_batchers, p, lambda out: (out[0], [None] * len(out[0])))


@fault("vmap_of_grad", among=lambda op: has_primitives(op) and len(op.results) > len(op.outputs))
def only_the_first_of_several_results_is_mapped(patch, op):
    rules = compat.batching.fancy_primitive_batchers
    around(patch, rules, op.forward, lambda out: (out[0], [0, *[None] * (len(out[0]) - 1)]))


@fault("vmap_middle", among=lambda op: has_primitives(op) and len(op.operands) > 1)
@fault("vmap_front", "vmap_back", op="segment_sum", tier="changed")
def the_second_operand_of_the_first_batch_serves_all(patch, op):
    rules = compat.batching.fancy_primitive_batchers
    rule = rules[op.forward]

    def forgetful(axis, args, dims, **params):
        args, dims = list(args), list(dims)
        if dims[1] is not None and any(dim is not None for dim in (dims[0], *dims[2:])):
            args[1], dims[1] = jnp.take(args[1], 0, dims[1]), None
        return rule(axis, args, dims, **params)

    patch.setitem(rules, op.forward, forgetful)


@fault("vmap_front", "vmap_of_vmap", among=has_primitives)
def the_first_batch_serves_all(patch, op):
    first = lambda ys: [jnp.broadcast_to(y[:1], y.shape) for y in ys]
    around(patch, compat.batching.fancy_primitive_batchers, op.forward, lambda out: (first(out[0]), out[1]))


@fault("test_sharding.test_a_kernel_call_says_what_its_batches_are")
def a_kernel_call_says_nothing_of_its_batches(patch, op):
    patch.setattr(kernel, "_batch_rank", lambda dims: 0)


# ---------------------------------------------------------------------------------------------------------------------
# Derivatives


@fault("limits_of_differences", among=has_primitives)
def jvp_returns_half(patch, op):
    """The gradient, which is its transpose, halves with it: only the limit of differences knows."""
    around(patch, ad.primitive_jvps, op.forward, lambda out: (out[0], [*map(_halved, out[1])]))


@fault("vjp", among=has_primitives)
def transpose_forgets_a_sign(patch, op):
    around(patch, ad.primitive_transposes, op.tangent, _each(lambda ct: -ct))


@fault("vjp", op="repeat", tier="changed", dtype="complex64")
def transpose_conjugates(patch, op):
    around(patch, ad.primitive_transposes, op.tangent, _each(lambda ct: ct.conj()))


@fault("linear_transpose", among=has_primitives)
def a_linear_op_has_no_transpose(patch, op):
    patch.delitem(ad.primitive_transposes, op.forward)


@fault("derivative_of_the_backward_kernel", among=has_primitives)
def the_backward_kernel_is_constant_in_the_cotangent(patch, op):
    around(patch, ad.primitive_jvps, op.backward, lambda out: (out[0], [derivatives._zero(y) for y in out[0]]))


@fault("limits_of_differences", among=lambda op: has_primitives(op) and op.residuals)
@fault("limits_of_differences", "third_derivative", op="integer_pow", tier="changed")
def second_derivatives_forget_the_residuals(patch, op):
    rule = ad.primitive_jvps[op.backward]
    n = len(op.residuals)

    def linear_alone(primals, tangents, **params):
        still = [derivatives._zero(x) for x in primals[:n]]
        return rule(primals, [*still, *tangents[n:]], **params)

    patch.setitem(ad.primitive_jvps, op.backward, linear_alone)


@fault("third_derivative", op="hypot", tier="changed", dtype="float64")
def a_slope_is_made_of_a_maximum(patch, op):
    """Its second derivative is wrong at ties alone."""
    patch.setattr(_length, "length", jnp.hypot)


@fault("test_value.test_value_is_the_oracles", op="elu")
@fault("derivatives_of_the_definition", op="elu", tier="changed", dtype="float32")
@fault("derivatives_of_the_definition", op="leaky_relu", tier="changed", dtype="float32")
def a_kernel_gets_a_parameter_that_is_not_its_own(patch, op):
    targets = " ".join(itertools.chain(*op.kernels.values()))
    kernel_fault(patch, targets, attributes=lambda **given: {name: value / 2 for name, value in given.items()})


@fault("debug_nans")
def a_gradient_has_a_nan_that_its_operands_have_not(patch, op):
    around(patch, ad.primitive_transposes, op.tangent, _each(lambda ct: ct * jnp.nan))


@fault("grad_of_cond", "checkpoint", "custom_vjp")
def the_backward_rule_depends_on_how_often_it_was_traced(patch, op):
    count = itertools.count(1)
    around(patch, ad.primitive_transposes, op.tangent, _each(lambda ct: ct * next(count)))


@fault("derivative_in_one_argument")
def a_symbolic_zero_is_taken_for_ones(patch, op):
    def tangent(t, output):
        return jnp.ones(t.aval.shape, output.dtype) if type(t) is ad.Zero else t

    patch.setattr(derivatives, "_tangent", tangent)


# ---------------------------------------------------------------------------------------------------------------------
# Values, types and exports


@fault("jit", among=has_primitives)
def a_program_differs_from_the_op_run_alone(patch, op):
    run = op.forward.impl
    patch.setattr(op.forward, "impl", lambda *args, **params: [y + y.dtype.type(1) for y in run(*args, **params)])


@fault("test_weak_types.test_a_kernels_result_is_not_weak")
def a_result_is_as_weak_as_the_operand(patch, op):
    rule = compat.with_type

    def as_weak(avals, *of):
        return rule(avals, *of).update(weak_type=avals[0].weak_type)

    patch.setattr(compat, "with_type", as_weak)


@fault("strict_promotion", among=has_primitives)
def a_kernel_mixes_dtypes(patch, op):
    def mixed(ys, *_, **__):
        other = lambda y: jnp.ones((), "float32" if y.dtype == jnp.int32 else "int32")
        return [(y * other(y)).astype(y.dtype) for y in ys]

    kernel_fault(patch, " ".join(op.kernels["forward"]), results=mixed)


@fault("same_bits_in_ten_runs", among=has_primitives)
def a_kernel_keeps_state(patch, op):
    count = itertools.count()

    def at_times(ys, *_, **__):
        is_fifth = jax.pure_callback(lambda: jnp.bool_(next(count) % 5 == 0), jax.ShapeDtypeStruct((), bool))
        return [jnp.where(is_fifth, y, jnp.zeros_like(y)) for y in ys]

    kernel_fault(patch, op.kernels["forward"][-1], results=at_times)


@fault("export_for_cuda")
def programs_for_cuda_do_without_kernels(patch, op):
    choose = choice.choose
    patch.setattr(choice, "choose", lambda *call: ("xla", "") if "cuda" in call[-1] else choose(*call))


@fault("export_for_cpu", "export_for_both", "export_of_the_gradient", among=has_primitives)
def an_export_check_is_missing(patch, op):
    targets = {f"baracuda.{target}" for target in itertools.chain(*op.kernels.values())}
    known = [check for check in baracuda_jax.export_checks if not any(target in str(check) for target in targets)]
    patch.setattr(baracuda_jax, "export_checks", known)


@fault("export_for_any_batch")
def a_sharding_rule_is_wanted_where_sizes_are_not_known(patch, op):
    rule = kernel._sharding_rule

    def of_sizes(*call):
        if (text := rule(*call)) is None:
            raise ValueError("a size is not known")
        return text

    patch.setattr(kernel, "_sharding_rule", of_sizes)


@fault("test_small_shapes.test_any_size_may_be_0", op="moe_gating_topk", tier="changed")
def a_size_is_inferred_where_others_may_be_0(patch, op):
    patch.setattr(_gating, "math", types.SimpleNamespace(prod=lambda sizes: -1))
