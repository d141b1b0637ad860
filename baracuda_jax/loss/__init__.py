"""Losses. XLA fuses the terms and reductions of most, and computes them at the bandwidth bound: those have no kernels.
Sums over alignments, row by row of a lattice, have (pattern: lattice), and cross entropy, of long rows (pattern: reduce)."""

from ._classes import cross_entropy_soft_loss, multi_margin_loss, nll_loss
from ._cross_entropy import cross_entropy_loss, cross_entropy_terms, cross_entropy_terms_backward
from ._ctc import ctc_loss, ctc_loss_backward, ctc_loss_cudnn
from ._elementwise import (
    bce_loss,
    bce_with_logits_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div_loss,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from ._labels import multilabel_margin_loss, multilabel_soft_margin_loss
from ._linear import fused_linear_cross_entropy, linear_cross_entropy
from ._rnnt import rnnt_loss, rnnt_loss_backward
from ._soft_dtw import soft_dtw, soft_dtw_backward
from ._vectors import cosine_embedding_loss, triplet_margin_loss

__all__ = [
    "bce_loss",
    "bce_with_logits_loss",
    "cosine_embedding_loss",
    "cross_entropy_loss",
    "cross_entropy_soft_loss",
    "cross_entropy_terms",
    "cross_entropy_terms_backward",
    "ctc_loss",
    "ctc_loss_backward",
    "ctc_loss_cudnn",
    "fused_linear_cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div_loss",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "rnnt_loss",
    "rnnt_loss_backward",
    "smooth_l1_loss",
    "soft_dtw",
    "soft_dtw_backward",
    "triplet_margin_loss",
]
