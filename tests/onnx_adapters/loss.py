"""ONNX's losses."""

import jax
import numpy as np

import baracuda_jax as bj

# Where ONNX ignores no class, its class -1 counts from the end, or is not used; here it is outside.
NONE = -(2**31)


def NegativeLogLikelihoodLoss(x, target, weight=None, *, ignore_index=NONE, reduction=b"mean"):
    return bj.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=reduction.decode())


def SoftmaxCrossEntropyLoss(x, target, weight=None, *, ignore_index=NONE, reduction=b"mean"):
    loss = bj.cross_entropy_loss(x, target, weight, ignore_index=ignore_index, reduction=reduction.decode())
    return loss, np.asarray(jax.nn.log_softmax(x, 1))
