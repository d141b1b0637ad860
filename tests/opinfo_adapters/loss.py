"""PyTorch's losses, which broadcast, where those of baracuda_jax have operands of one shape."""

import numpy as np
from onnx_adapters import NotApplicable

import baracuda_jax as bj


def _alike(fun):
    """Of operands that broadcast to one shape."""
    return lambda *arrays, **kwargs: fun(*np.broadcast_arrays(*arrays), **kwargs)


def nn_functional_mse_loss(x, target, **kwargs):
    return _alike(bj.mse_loss)(x, target, **kwargs)


def nn_functional_l1_loss(x, target, **kwargs):
    return _alike(bj.l1_loss)(x, target, **kwargs)


def nn_functional_huber_loss(x, target, **kwargs):
    return _alike(bj.huber_loss)(x, target, **kwargs)


def nn_functional_smooth_l1_loss(x, target, **kwargs):
    return _alike(bj.smooth_l1_loss)(x, target, **kwargs)


def nn_functional_binary_cross_entropy(x, target, **kwargs):
    return bj.bce_loss(x, target, **kwargs)


def nn_functional_binary_cross_entropy_with_logits(x, target, **kwargs):
    return bj.bce_with_logits_loss(x, target, **kwargs)


def nn_functional_soft_margin_loss(x, target, **kwargs):
    return bj.bce_with_logits_loss(target * x, np.ones_like(x), **kwargs)


def nn_functional_kl_div(x, target, **kwargs):
    return _alike(bj.kl_div_loss)(x, target, **kwargs)


def nn_functional_poisson_nll_loss(x, target, **kwargs):
    return _alike(bj.poisson_nll_loss)(x, target, **kwargs)


def nn_functional_gaussian_nll_loss(x, target, var, **kwargs):
    """A variance may lack the last axis."""
    if np.ndim(var) and np.shape(var) != x.shape and np.shape(var) == x.shape[:-1]:
        var = var[..., None]
    return _alike(bj.gaussian_nll_loss)(x, target, var, **kwargs)


def nn_functional_hinge_embedding_loss(x, target, **kwargs):
    return _alike(bj.hinge_embedding_loss)(x, target, **kwargs)


def nn_functional_margin_ranking_loss(x1, x2, target, **kwargs):
    return _alike(bj.margin_ranking_loss)(x1, x2, target, **kwargs)


def nn_functional_nll_loss(x, target, **kwargs):
    return bj.nll_loss(x, target, **kwargs)


def nn_functional_cross_entropy(x, target, **kwargs):
    return bj.cross_entropy_loss(x, target, **kwargs)


def nn_functional_linear_cross_entropy(x, linear_weight, target, *, options=None, **kwargs):
    if linear_weight.ndim > 2:
        raise NotApplicable("classes along one axis")
    if target.dtype.kind == "f":
        raise NotApplicable("classes, no probabilities")
    chunk = {"chunk_rows": options.batch_chunk_size} if options and options.batch_chunk_size else {}
    return bj.linear_cross_entropy(x, linear_weight, target, **chunk, **kwargs)


def nn_functional_linear_cross_entropy_chunked(x, linear_weight, target, **kwargs):
    return nn_functional_linear_cross_entropy(x, linear_weight, target, **kwargs)


def nn_functional_linear_cross_entropy_chunked_none(x, linear_weight, target, **kwargs):
    return nn_functional_linear_cross_entropy(x, linear_weight, target, **kwargs)


def nn_functional_ctc_loss(x, targets, input_lengths, target_lengths, **kwargs):
    """PyTorch has frames first."""
    lengths = map(np.asarray, (input_lengths, target_lengths))
    return bj.ctc_loss(np.swapaxes(x, 0, 1), targets, *lengths, log_probs=True, **kwargs)


def _one_row(x, target):
    """PyTorch takes a scalar for a vector of one, and a target of one for a scalar."""
    return (x.reshape(1), target) if x.ndim == 0 else (x, target)


def nn_functional_multi_margin_loss(x, target, **kwargs):
    x, target = _one_row(x, target)
    return bj.multi_margin_loss(x, target.reshape(x.shape[:-1]), **kwargs)


def nn_functional_multilabel_margin_loss(x, target, **kwargs):
    x, target = _one_row(x, target)
    return bj.multilabel_margin_loss(x, target.reshape(x.shape), **kwargs)


def nn_functional_multilabel_soft_margin_loss(x, target, **kwargs):
    return bj.multilabel_soft_margin_loss(x, target, **kwargs)


def nn_functional_cosine_embedding_loss(x1, x2, target, **kwargs):
    return bj.cosine_embedding_loss(x1, x2, target, **kwargs)


def nn_functional_triplet_margin_loss(anchor, positive, negative, **kwargs):
    return bj.triplet_margin_loss(anchor, positive, negative, **kwargs)


def nn_functional_triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, **kwargs):
    if type(distance_function).__name__ != "PairwiseDistance":
        raise NotApplicable("the distance is a norm")
    given = {"p": distance_function.norm, "eps": distance_function.eps}
    return bj.triplet_margin_loss(anchor, positive, negative, **given, **kwargs)
