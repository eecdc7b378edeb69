"""Classifiers by name: ours and timm's."""

from typing import Any

from torch import nn

from steadyseg.classification.networks.layout import MODELS, check_classifier, options_of
from steadyseg.classification.networks.plain import alexnet, vgg
from steadyseg.classification.networks.residual import residual
from steadyseg.classification.networks.timm_network import TimmNetwork
from steadyseg.classification.networks.vit import swin, vit
from steadyseg.classification.options import ClassifierOptions
from steadyseg.core.errors import InputError

BUILDERS = {
    "alexnet": alexnet,
    "vgg": vgg,
    "prevgg": vgg,
    **dict.fromkeys(("resnet", "resnext", "wideresnet", "preresnet", "alternet"), residual),
    "vit": vit,
    "pit": vit,
    "swin": swin,
}
OWN_INITIALISATION = ("alexnet", "vit", "pit", "swin")
"""Families without BatchNorm, whose initial scale matters: torch draws AlexNet's weights, transformers their own."""


def build_classifier(options: ClassifierOptions | dict[str, Any], num_classes: int) -> nn.Module:
    """Builds a classifier: (B, 3, h, w) normalised pictures -> (B, K) logits; a dict is a checkpoint's record.

    InputError, in one line, for unknown names, wrong types and options that make no sense together.
    """
    if isinstance(options, dict):
        options = options_of(options)
    check_classifier(options)
    if num_classes < 2:
        raise InputError(f"a classifier needs two or more classes, got {num_classes}")
    if options.network not in MODELS:
        return TimmNetwork(options, num_classes)
    family, _ = MODELS[options.network]
    network = BUILDERS[family](options, num_classes)
    if family not in OWN_INITIALISATION:
        initialise(network)
    return network


def initialise(network: nn.Module) -> None:
    """Draws normal weights of variance 2 / fan-out for every convolution (He et al. 2015, arXiv 1502.01852, Eq. 14)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
