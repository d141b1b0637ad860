"""What is said to who calls a function by a keyword that it does not have: the table of other libraries' keywords."""

from .near import near

FIRST = "the first argument"
# Another library's keyword: the arguments of baracuda_jax that may replace it, of which a function has one; or a sentence.
KEYWORDS = {
    "_random_samples": ("samples",),
    "a": (FIRST,),
    "a_max": ("max",),
    "a_min": ("min",),
    "anchors": ("anchor",),
    "ar": (FIRST,),
    "arr": (FIRST,),
    "array": (FIRST,),
    "arrays": ("xs",),
    "axes": ("axis", "axes"),
    "axis": ("axes", "broadcast_dimensions"),
    "backend": ("implementation",),
    "boundaries": ("bins", "sorted_sequence"),
    "codes": ("q",),
    "ddof": ("correction",),
    "deterministic": "use training, which is its opposite",
    "diagonal": ("k", "offset"),
    "dim": ("axis", "axes", "axis1"),
    "dim1": ("axis1",),
    "dim2": ("axis2",),
    "dims": ("axis", "axes"),
    "epsilon": ("eps",),
    "feature_group_count": ("groups",),
    "index": ("segment_ids",),
    "indices": ("index",),
    "input": (FIRST,),
    "input1": ("x1",),
    "input2": ("x2",),
    "interpolation": ("method",),
    "is_stable": "sorts are always stable",
    "keepdim": ("keepdims",),
    "kernel_size": ("window",),
    "kind": "sorts are always stable",
    "labels": ("target",),
    "largest": ("descending",),
    "log_predictions": (FIRST,),
    "logits": (FIRST,),
    "n": ("k",),
    "negatives": ("negative",),
    "norm_degree": ("p",),
    "operand": (FIRST,),
    "operands": ("xs",),
    "ord": ("norm_type",),
    "other": ("x2",),
    "out": "results are new arrays",
    "p": ("ord", "norm_type", "rate"),
    "padding_mode": ("mode",),
    "positives": ("positive",),
    "predictions": (FIRST,),
    "prefer": ("implementation",),
    "reduce": ("reduction",),
    "reps": ("repeats",),
    "replace": ("replacement",),
    "rhs_dilation": ("dilation",),
    "right": 'use side="right"',
    "self": (FIRST,),
    "shifts": ("shift",),
    "size_average": ("reduction",),
    "sorted": "the elements are always in order",
    "source": ("src",),
    "src": ("data",),
    "stable": "sorts are always stable",
    "start_indices": ("start",),
    "stride": ("strides",),
    "targets": ("target",),
    "tensor": (FIRST,),
    "tensors": ("xs",),
    "unbiased": ("correction",),
    "weights": ("weight",),
    "window_dimensions": ("window",),
    "window_shape": ("window",),
    "window_strides": ("strides",),
    "winner": ("arg",),
    "x": (FIRST,),
    "x1": (FIRST,),
    "y": ("x2",),
}


def of_keyword(keyword, parameters):
    """The sentence after the error, for a function with these parameters."""
    told = KEYWORDS.get(keyword, ())
    if isinstance(told, str):
        return told
    for name in told:
        if name == FIRST and parameters:
            return f"use {parameters[0]}"
        if name in parameters:
            return f"use {name}"
    found = near(keyword, parameters, 1)
    return f"use {found}" if found else f"it takes {', '.join(parameters)}"
