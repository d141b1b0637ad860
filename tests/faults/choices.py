"""Faults of preferences, the choice of a backend, and plans."""

import dataclasses
import os
import statistics

from baracuda_jax._core import call, choice, measurements, plan
from baracuda_jax._core import prefer as preference

from .table import fault


@fault("test_native.test_the_backend_is_chosen_by_call_then_context_then_environment", op="segment_sum")
def a_program_is_found_again_for_another_preference(patch, op):
    choose, known = choice.choose, {}

    def remembered(call, implementation, platforms):
        key = call.name, tuple(x.shape for x in call.operands), tuple(platforms)
        if key not in known:
            known[key] = choose(call, implementation, platforms)
        return known[key]

    patch.setattr(choice, "choose", remembered)


@fault("test_native.test_the_backend_is_chosen_by_call_then_context_then_environment", op="segment_sum")
def the_environment_goes_before_the_context(patch, op):
    resolve = preference.resolve

    def other(name, implementation):
        known = os.environ.get(preference.VARIABLE)
        return resolve(name, implementation if implementation is not None or not known else known)

    patch.setattr(preference, "resolve", other)


@fault("test_plan.test_the_compiled_program_has_the_planned_calls", op="elu", backend="native", tier="changed")
@fault("test_plan_every.test_every_argument_has_a_plan")
def a_plan_reports_another_backend(patch, op):
    patch.setattr(plan.Plan, "backend", "xla")


@fault("test_plan.test_workspace_is_that_of_the_cuda_program")
def a_plan_reports_another_workspace(patch, op):
    patch.setattr(call.Call, "workspace_bytes", 8)


@fault("test_plan_every.test_every_argument_has_a_plan")
def a_plan_forgets_the_calls_of_other_ops(patch, op):
    patch.setattr(plan.Plan, "targets", property(lambda self: self.calls[0].targets))


@fault("test_plan.test_scattering_floats_on_a_gpu_is_not_deterministic", op="segment_sum")
@fault("test_plan_choice.test_determinism_goes_before_speed", op="segment_sum")
def every_program_is_said_to_be_deterministic(patch, op):
    patch.setattr(call.Call, "is_deterministic", lambda *_: True)


@fault("test_plan_choice.test_a_workspace_that_is_too_large", op="segment_sum")
def the_limit_of_the_workspace_is_ignored(patch, op):
    patch.setattr(choice, "_exceeds", lambda *_: False)


@fault("test_plan_choice.test_a_call_is_between_cases_near_it", op="segment_sum")
def all_cases_count_alike(patch, op):
    patch.setattr(measurements, "interpolated", lambda ratios, *_: statistics.geometric_mean(ratios))


@fault("test_plan_choice.test_a_flag_is_far", op="segment_sum")
def sorted_ids_are_taken_for_others(patch, op):
    patch.setattr(measurements, "FLAG", 0.0)


@fault("test_plan_choice.test_a_derivative_has_one_backend_in_both_passes", op="segment_sum")
def the_forward_pass_of_a_derivative_is_taken_for_a_value(patch, op):
    patch.setattr(call.Call, "is_differentiated", False)


@fault("test_plan.test_equal_calls_have_equal_plans", op="segment_max")
def plans_of_several_backends_are_equal(patch, op):
    patch.setattr(preference.Planned, "__eq__", lambda self, other: True)


@fault("test_native.test_other_platforms_get_the_reference")
def the_default_holds_on_platforms_without_kernels(patch, op):
    automatic = choice._automatic
    patch.setattr(choice, "_automatic", lambda call, implementation, platform: automatic(call, implementation, "cpu"))


@fault("test_plan.test_the_context_does_not_move_a_plan", op="segment_sum")
def a_plan_asks_the_context_when_it_runs(patch, op):
    run = plan.Plan.__call__
    ask = lambda self, *arrays: run(dataclasses.replace(self, backends=None), *arrays)
    patch.setattr(plan.Plan, "__call__", ask)
