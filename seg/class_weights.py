"""Logit adjustment after training with class weights: a loss weighted by w makes a network answer p_c w_c, not p_c.

Subtracting log w_c from the logits gives p_c again (logit adjustment: Menon et al. 2021, arXiv 2007.07314), at no cost
when it is folded into the last layer's bias. Rare classes are then found less often, and found ones are right more
often.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from core.errors import InputError

HEAD_BIASES = ("head.bias", "model.segmentation_head.bias", "model.segmentation_head.0.bias")
"""The bias that is added to the logits last: of our U-Net, of an SMP network at half its input's size, and at all of
it."""


def read_class_weights(training: Mapping[str, Any]) -> Tensor | None:
    """The class weights (K,) of a checkpoint's training record; None where it has none, or all are equal."""
    weights = training.get("class_weights")
    if not isinstance(weights, list) or len(set(weights)) < 2:
        return None
    return torch.tensor(weights)


def adjust_head(tensors: Mapping[str, Tensor], training: Mapping[str, Any]) -> dict[str, Tensor]:
    """A checkpoint's tensors with the logarithms of its class weights subtracted from the last bias.

    InputError where the record holds no weights, or says that this was done before.
    """
    if training.get("class_weights_undone"):
        raise InputError("the class weights of this checkpoint are adjusted for already; omit --logit-adjustment")
    weights = read_class_weights(training)
    if weights is None:
        raise InputError("this checkpoint records no class weights, so there is nothing to undo")
    name = next(name for name in HEAD_BIASES if name in tensors)
    bias = tensors[name]
    if bool((weights <= 0).any()):
        raise InputError(
            "a class weight of this checkpoint is 0: that class was never trained and cannot be weighed back"
        )
    return {**tensors, name: (bias.float() - weights.log()).to(bias.dtype)}
